"""Triage an issue: the client's model drafts, a person decides, in a bounded loop; without a model, a person writes."""

from typing import Literal

from pydantic import BaseModel

from mrtr_flow import ask, confirm, current, flow, sample, step

MAX_DRAFTS = 3


class Issue(BaseModel):
    number: int
    title: str
    body: str


class Decision(BaseModel):
    severity: Literal["low", "medium", "high"]
    labels: list[Literal["bug", "regression", "docs", "question"]] = []


def load(number: int) -> Issue:
    return Issue(number=number, title="Export stops at 1000 rows", body="Since 4.3.0 the nightly export is cut short.")


def reply(number: int, text: str, decision: Decision) -> str:
    return f"#{number}-{decision.severity}-{current().idempotency_key[:6]}"


@flow(
    examples={
        "number": 17,
        "decision": {"severity": "high", "labels": ["bug", "regression"]},
        "sample": ["Thanks for the report.", "Thanks for the report! We can reproduce it and are on it."],
        "confirm": [False, True],
    }
)
async def triage(number: int) -> str:
    """Triage an issue and answer its author."""
    issue = await step(load, number).options(public=True)
    decision = await ask(f"How severe is #{number}, {issue.title!r}?", Decision, key="decision")
    for draft in range(1, MAX_DRAFTS + 1):
        text = f"Draft {draft}: answer the author of this {decision.severity} issue in two sentences.\n\n{issue.body}"
        answer = await sample(text, max_tokens=200, temperature=0.7, if_unsupported=None)
        words = answer.text if answer else await ask("There is no model here. What shall we answer?", str)
        if await confirm(f"Send this?\n\n{words}"):
            return f"Answered: {await step(reply, number, words, decision)}"
    return f"Nothing was sent to the author of #{number}"
