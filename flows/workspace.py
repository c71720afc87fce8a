"""One round for a person, the client's model and the client itself; then a prompt and a resource that ask, too."""

from pydantic import BaseModel

from mrtr_flow import Flow, ask, confirm, flow, gather, list_roots, sample, step


class Setup(BaseModel):
    project: str
    private: bool = False


def has_license(uri: str) -> bool:
    return uri.endswith("exporter")


@flow(
    examples={
        "setup": {"project": "Exporter"},
        "tagline": "Moves your data where you need it.",
        "roots": ["file:///home/ada/exporter", "file:///home/ada/docs"],
        "confirm": True,
    }
)
def describe_workspace() -> Flow[str]:
    """Describe the workspace the client works in."""
    setup, tagline, roots = yield from gather(
        ask("What is this project?", Setup, key="setup"),
        sample("A tagline for a data exporter, please.", max_tokens=30, key="tagline"),
        list_roots(),
    )
    licensed: list[str] = []
    for root in roots:
        if (yield from step(has_license, root.uri)):
            licensed.append(root.uri)
    if not (yield from confirm(f"{len(licensed)} of {len(roots)} roots have a licence. Go on?")):
        return "Nothing described"
    return f"{setup.project}: {tagline.text} ({'private' if setup.private else 'public'}, {len(roots)} roots)"


@flow.prompt(examples={"language": "Python", "focus": "errors"})
def review(language: str) -> Flow[list[str]]:
    """A prompt for a code review, about what matters to the person who asks."""
    focus = yield from ask(f"What should a review of {language} code look at?", str, key="focus")
    return [f"Review this {language} code.", f"Look at {focus} first."]


@flow.resource(
    "statements://{account}/{year}", mime_type="application/json", examples={"account": "A-1", "year": 2026, "ok": True}
)
def statement(account: str, year: int) -> Flow[dict[str, int]]:
    """A year's statement, for who confirms to want it."""
    if not (yield from confirm(f"Read the {year} statement of {account}?", key="ok")):
        return {}
    return {"year": year, "total": 4200}
