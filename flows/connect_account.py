"""Connect an account: consent to open a page is not completion, so a step asks the provider, a few times at most."""

import asyncio
import secrets

from pydantic import BaseModel

from mrtr_flow import CapabilityMissing, Declined, Flow, ask_url, confirm, current, flow, step

MAX_CHECKS = 3


class Attempt(BaseModel):
    """What the provider must echo, and what redeems it: sealed in the token, where the client cannot read it."""

    state: str
    verifier: str


def start(provider: str) -> Attempt:
    return Attempt(state=secrets.token_urlsafe(12), verifier=secrets.token_urlsafe(32))


async def finished(provider: str, attempt: Attempt, check: int) -> bool:
    """Ask the provider, waiting a moment first, so that a person has time and rounds are not burnt."""
    await asyncio.sleep(0.01)
    return check >= 2  # the demonstration's provider is done at the second look


def redeem(provider: str, attempt: Attempt) -> str:
    return f"{provider}-{current().idempotency_key[:6]}"


@flow(examples={"provider": "calendar", "url": "open", "confirm": [True, True]})
def connect_account(provider: str) -> Flow[str]:
    """Connect an account at a provider, on the provider's own page."""
    attempt = yield from step(start, provider)
    page = f"https://{provider}.example.com/connect?state={attempt.state}"
    try:
        yield from ask_url(f"Sign in to {provider} to connect it.", page)
    except (Declined, CapabilityMissing):
        return f"{provider} is not connected"
    for check in range(1, MAX_CHECKS + 1):
        if (yield from step(finished, provider, attempt, check).options(key=f"check {check}")):
            account = yield from step(redeem, provider, attempt)
            return f"Connected as {account}"
        if not (yield from confirm(f"{provider} has not heard from you yet. Are you done on its page?")):
            break
    return f"{provider} is not connected yet; start again when you are done"
