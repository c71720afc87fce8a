"""Review a change with the client's model, let the person pick findings, have a patch drafted and tried."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from mrtr_flow import Flow, Reply, ask, flow, sample, step
from tests.corpus.forms import choice, form, text, titled
from tests.corpus.world import done, stored

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


class Diff(BaseModel):
    change: str
    files: int
    added: int
    removed: int
    head: str


class Findings(BaseModel):
    """Findings of the first (a) and the second (b) file: counts, and titles by id."""

    a: int
    b: int
    high: int
    medium: int
    low: int
    findings: dict[str, str]


class Suite(BaseModel):
    run: int
    failed: int
    seconds: int


class Trial(BaseModel):
    applies: bool
    tests: Suite
    callers_to_change: list[str]


class Pushed(BaseModel):
    branch: str
    commit: str
    files: int


class Apply(BaseModel):
    apply: Annotated[bool, Field(title="Create the branch", json_schema_extra={"default": False})]
    message: Annotated[str | None, Field(title="Commit subject", min_length=10, max_length=72)] = None


class Reviewed(BaseModel):
    branch: str | None = None
    commit: str | None = None
    addressed: int = 0
    open: list[str]


def load_diff(change: str, base: str, files: list[str]) -> Diff:
    return done("load_diff", Diff)


def parse_findings(reviews: list[str]) -> Findings:
    return done("parse_findings", Findings)


def try_patch(head: str, patch: str) -> Trial:
    return done("try_patch", Trial)


def push_branch(head: str, patch: str, subject: str | None) -> Pushed:
    return done("push_branch", Pushed)


def subject_of(title: str) -> str:
    """What a finding is about, in a word: the last one of its title before the severity."""
    return title.rpartition(" (")[0].split()[-1]


@flow(name="review_change")
def review(change: str, base: str, files: list[str]) -> Flow[Reply[Reviewed]]:
    """Review a change, and put a patch for the findings on a branch."""
    diff = yield from step(load_diff, change, base, files)
    diffs = stored("diffs", diff.head)  # a commit never changes, so its text is looked up and not recorded
    reviews: list[str] = []
    for file in files:
        said = yield from sample(
            f"Review this change. List numbered findings with a severity in parentheses.\n\n{diffs[file]}",
            system_prompt="You are a careful reviewer of concurrent code. Plain text. "
            "Name the failing case for each finding.",
            max_tokens=1200,
            model_preferences={"hints": [{"name": "large"}], "intelligencePriority": 0.9},
            key=f"review:{file.rpartition('/')[2]}",
        )
        reviews.append(said.text)
    found = yield from step(parse_findings, reviews).options(public=True)  # the form shows all of it
    titles, total = found.findings, len(found.findings)
    picked = yield from ask(
        f"{total} findings ({found.high} high, {found.medium} medium, {found.low} low). "
        "Which should the patch address?",
        form(
            ("findings", "style"),
            findings={
                "type": "array",
                "title": "Findings",
                "items": {"anyOf": titled(**titles)},
                "minItems": 1,
                "maxItems": total,
            },
            style=choice(
                "Patch style", titled(minimal="Smallest change", clean="Tidy up as needed"), default="minimal"
            ),
            remark=text("Anything else", 400),
        ),
        key="pick",
    )
    chosen, remark = picked["findings"], picked.get("remark", "")
    left = [finding for finding in titles if finding not in chosen]
    terms = ["tidy style" if picked["style"] == "clean" else "smallest change"]
    if "tests" in (subject_of(titles[finding]) for finding in left):
        terms.append("no tests")
    terms += [f"{finding} as a docstring" for finding in left if f"{finding} a docstring" in remark]
    patch = yield from sample(
        f"Write one unified diff for the findings {' '.join(chosen)} ({'; '.join(terms)}). "
        "After the diff, mention what callers must change.",
        system_prompt="You write small correct patches in the style of the surrounding code.",
        max_tokens=2000,
        model_preferences={"hints": [{"name": "large"}], "intelligencePriority": 1.0},
        key="patch",
    )
    trial = yield from step(try_patch, diff.head, patch.text)
    if not trial.applies:
        return Reply.error("The patch does not apply.")
    passed, branch = trial.tests.run - trial.tests.failed, f"review/{change}"
    answer = yield from ask(
        f"The patch applies cleanly and {passed} of {trial.tests.run} existing tests pass. Put it on branch {branch}?",
        Apply,
        key="apply",
    )
    if not answer.apply:
        return Reply(Reviewed(open=list(titles)), "No branch was created.")
    pushed = yield from step(push_branch, diff.head, patch.text, answer.message)
    rest = " and ".join(subject_of(titles[finding]) for finding in left)
    return Reply(
        Reviewed(branch=pushed.branch, commit=pushed.commit, addressed=len(chosen), open=left),
        f"Branch {pushed.branch} created ({pushed.commit}). "
        f"{NUMBERS[len(chosen)].capitalize()} findings addressed, {rest or 'nothing'} left open. "
        f"Callers to change: {', '.join(trial.callers_to_change)}.",
    )
