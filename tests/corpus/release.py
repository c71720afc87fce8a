"""Is a release ready? Independent questions are asked together: of people, of the model, of the client's roots."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from mrtr_flow import Flow, Reply, ask, flow, gather, list_roots, sample, step
from tests.corpus.forms import choice, form, titled, whole
from tests.corpus.world import done, stored

CANARY_MINUTES = 60
SLOTS = {"am": ("08:00", "10:00"), "noon": ("11:00", "13:00"), "pm": ("15:00", "17:00")}
Verdict = Annotated[Literal["go", "go-with-conditions", "no-go"], Field(title="Verdict")]


class Candidate(BaseModel):
    image: str
    digest: str
    built: datetime


class OpsRepo(BaseModel):
    root: str
    head: str
    runbooks: list[str]
    merge_flag_present: bool


class Budget(BaseModel):
    service: str
    window_days: int
    left_percent: int


class Change(BaseModel):
    change: str
    state: str
    starts: datetime


class Engineering(BaseModel):
    verdict: Verdict
    conditions: Annotated[str | None, Field(title="Conditions", max_length=400)] = None


class Support(BaseModel):
    verdict: Verdict
    macro_ready: Annotated[bool, Field(title="Reply template is ready")]
    contact: Annotated[str | None, Field(title="Reachable at", max_length=60)] = None


class Ready(BaseModel):
    change: str | None = None
    engineering: str
    support: str
    canary: int


WINDOW = form(
    ("day", "slot"),
    day={"type": "string", "title": "Day", "format": "date"},
    slot=choice("Slot", titled(**{name: f"{start} to {end} UTC" for name, (start, end) in SLOTS.items()})),
    canary=whole("Canary share, percent", 1, 50, default=5),
    freeze_ok={"type": "boolean", "title": "No change freeze that day", "default": False},
)


def find_candidate(service: str, version: str) -> Candidate:
    return done("candidate", Candidate)


def read_ops_repo(root: str) -> OpsRepo:
    return done("read_ops_repo", OpsRepo)


def error_budget(service: str) -> Budget:
    return done("error_budget", Budget)


def open_change(digest: str, window: dict[str, Any], risk: str, notice: str) -> Change:
    return done("open_change", Change)


@flow(name="release_readiness")
def readiness(service: str, candidate: str) -> Flow[Reply[Ready]]:
    """Collect what a release needs, and schedule it."""
    image = yield from step(find_candidate, service, candidate).options(key="candidate")
    release = stored("releases", image.digest)
    merged = "\n".join(f"- {change}" for change in release["merged"])
    window, risk, checkouts = yield from gather(
        ask(f"When may {service} {candidate} go out?", WINDOW, key="window"),
        sample(
            f"Merged since {release['since']}:\n{merged}\n\nWrite a short risk note for the release manager: "
            "what can break, how to see it, how to go back.",
            system_prompt="You write terse release notes for operators. Plain text, no headings, at most 150 words.",
            max_tokens=300,
            model_preferences={"hints": [{"name": "fast"}], "intelligencePriority": 0.4, "speedPriority": 0.7},
            key="risk",
        ),
        list_roots(key="checkouts"),
    )
    if not window["freeze_ok"]:
        return Reply.error(f"There is a change freeze on {window['day']}.")
    root = next((root for root in checkouts if root.uri.endswith(f"/{service}-ops")), None)
    if root is None:
        return Reply.error(f"Open a checkout of {service}-ops first.")
    ops = yield from step(read_ops_repo, root.uri)
    budget = yield from step(error_budget, service)
    if budget.left_percent <= 0:
        return Reply.error(f"{service} has no error budget left.")
    day, (start, end), removed = date.fromisoformat(window["day"]), SLOTS[window["slot"]], release["removed"]
    engineering, support, notice = yield from gather(
        ask(
            f"Engineering sign-off for {day}, {start} UTC, {window['canary']} percent canary",
            Engineering,
            key="engineering",
        ),
        ask(
            f"Support sign-off: the {removed['still_used_by']} still sends {removed['parameter']}=",
            Support,
            key="support",
        ),
        sample(
            f"Draft the customer notice for a search outage risk of a few minutes on {day.day} {day:%B %Y} between "
            f"{start} and {end} UTC and for the removal of the {removed['parameter']} parameter. "
            "Friendly, two paragraphs.",
            system_prompt="You write short customer notices. No marketing language.",
            max_tokens=350,
            temperature=0.3,
            key="notice",
        ),
    )
    ready = Ready(engineering=engineering.verdict, support=support.verdict, canary=window["canary"])
    if "no-go" in (ready.engineering, ready.support):
        return Reply(ready, "No go.")
    change = yield from step(open_change, image.digest, window, risk.text, notice.text)
    paused = f"merges paused for the first {CANARY_MINUTES} minutes, " if ops.merge_flag_present else ""
    return Reply(
        ready.model_copy(update={"change": change.change}),
        f"{change.change} {change.state} for {change.starts:%Y-%m-%d %H:%M} UTC: "
        f"{ready.canary} percent canary, {paused}notice text attached.",
    )
