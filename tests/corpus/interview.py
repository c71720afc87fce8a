"""An interview of twenty-five questions, one in a round: more rounds than common clients play."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

from pydantic import BaseModel, Field

from mrtr_flow import Flow, Reply, ask, flow, step
from tests.corpus.forms import choice, form, text, titled, whole
from tests.corpus.world import done

Question = tuple[str, str, Any]  # key, words, and what is asked: a type, or a raw form for choices and for two fields


def number(title: str, least: int, most: int) -> Any:
    return Annotated[int, Field(title=title, ge=least, le=most)]


def sentences(most: int) -> Any:
    return Annotated[str, Field(title="In a few sentences", max_length=most)]


def value(field: dict[str, Any], **more: dict[str, Any]) -> dict[str, Any]:
    return form(["value"], value=field, **more)


def several(title: str, items: dict[str, Any], **limits: int) -> dict[str, Any]:
    return {"type": "array", "title": title, "items": items, **limits}


def among(*options: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(options)}


def day(title: str) -> dict[str, Any]:
    return {"type": "string", "title": title, "format": "date"}


def yes(title: str) -> dict[str, Any]:
    return {"type": "boolean", "title": title}


GROUPS = among("small children", "school classes", "students", "job seekers", "older readers", "newcomers")
ROOMS = titled(study="Study cells", group="Group rooms", maker="Workshop", music="Practice room", talk="Small hall")
LANGUAGES = among("Arabic", "English", "French", "Polish", "Turkish", "Ukrainian", "Vietnamese")
AREAS = titled(entrance="Entrance", stairs="Stairs", computers="Computer tables", children="Children's area")
BUDGETS = titled(s="Below 100 000", m="100 000 to 500 000", l="Above 500 000", **{"?": "Not known"})
STAFFLESS = titled(none="No", foyer="Foyer and lockers", ground="Whole ground floor")

LIBRARY_NEEDS: list[Question] = [
    ("place", "Which building is this about?", Annotated[str, Field(title="Building", min_length=2, max_length=80)]),
    ("floor_area", "How large is the public area, in square metres?", number("Square metres", 20, 20000)),
    ("opened", "When was it last rebuilt?", Annotated[date, Field(title="Date")]),
    ("visitors", "How many people come on a normal weekday?", number("Visitors", 0, 20000)),
    ("peak", "When is it busiest?", value(choice("Time of day", ["morning", "midday", "afternoon", "evening"]))),
    ("groups", "Who uses it most?", value(several("Groups", GROUPS, minItems=1, maxItems=4))),
    ("works_well", "What works well today?", sentences(1200)),
    ("hurts", "What do people complain about?", sentences(1200)),
    ("noise_where", "Where is the noise worst?", value(choice("Area", AREAS))),
    ("quiet_seats", "How many quiet seats are there?", number("Seats", 0, 500)),
    ("quiet_wanted", "How many would be enough?", number("Seats", 0, 500)),
    ("rooms", "Which rooms are missing?", value(several("Rooms", {"anyOf": ROOMS}, maxItems=5))),
    (
        "stepfree",
        "Can every public area be reached without steps?",
        value(yes("Step-free"), gap=text("If not, where is the step?", 300)),
    ),
    ("signage", "How do people find their way?", sentences(800)),
    ("languages", "Which languages should signs have?", value(several("Languages", LANGUAGES, minItems=1, maxItems=4))),
    (
        "light",
        "How is the light?",
        value(choice("Light", ["too dark", "uneven", "good", "too bright"]), lux=whole("Measured, lux", 0, 5000)),
    ),
    (
        "air",
        "How is the air in the afternoon?",
        value(choice("Air", ["stale", "acceptable", "fresh"]), ppm=whole("Measured CO2, ppm", 300, 6000)),
    ),
    ("power", "How many tables have a power socket?", number("Tables", 0, 500)),
    (
        "wifi",
        "Is the wireless network fast enough?",
        value(choice("Network", titled(no="No", sometimes="Most of the day", yes="Yes"))),
    ),
    ("events", "What events do you hold, and what do they need?", sentences(1500)),
    (
        "hours",
        "Would you open longer if the building allowed it?",
        value(yes("Open longer"), until=choice("Until", ["20:00", "21:00", "22:00"])),
    ),
    (
        "staffless",
        "Could part of it open without staff?",
        value(choice("Open without staff", STAFFLESS), worry=text("What worries you about it?", 600)),
    ),
    ("budget", "What budget was mentioned so far?", value(choice("Range", BUDGETS))),
    ("deadline", "Is there a date by which it must be ready?", value(day("Date"), why=text("Because", 200))),
    ("anything", "What did we forget to ask?", sentences(2000)),
]
SCRIPTS = {("library-needs", 7): LIBRARY_NEEDS}


class Opened(BaseModel):
    interview: str
    script: str
    questions: int


class Closed(BaseModel):
    interview: str
    answers: int
    state: str


class Interviewed(BaseModel):
    interview: str
    answers: int
    themes: list[str]


def open_interview(script: str, version: int, language: str) -> Opened:
    return done("open_interview", Opened)


def checkpoint(interview: str, answers: dict[str, Any]) -> dict[str, Any]:
    return done(f"checkpoint:{len(answers)}", dict[str, Any])


def close_interview(interview: str, answers: dict[str, Any]) -> Closed:
    return done("close_interview", Closed)


@flow(name="needs_interview")
def interview(script: str, version: int, language: str) -> Flow[Reply[Interviewed]]:
    """Ask a script of questions, one by one."""
    opened = yield from step(open_interview, script, version, language)
    said: dict[str, Any] = {}
    for nth, (key, question, answer) in enumerate(SCRIPTS[script, version], start=1):
        if nth % 10 == 0:
            saving = step(checkpoint, opened.interview, said)
            yield from saving.options(key=f"checkpoint:{len(said)}")
        said[key] = yield from ask(f"Question {nth} of {opened.questions}. {question}", answer, key=key)
    closed = yield from step(close_interview, opened.interview, said)
    themes: dict[str, str] = {}
    have, wanted = said["quiet_seats"], said["quiet_wanted"]
    if have < wanted:
        themes["quiet seats"] = f"quiet seats ({have} of {wanted} wanted)"
    if {"study", "group"} & set(said["rooms"]["value"]):
        themes["rooms"] = "rooms with doors"
    themes["noise"] = f"{said['noise_where']['value']} noise"
    if said["air"]["value"] != "fresh":
        themes["air"] = f"{said['air']['value']} air in the afternoon"
    if "garden" in said["anything"].lower():
        themes["garden"] = "garden reopening"
    return Reply(
        Interviewed(interview=closed.interview, answers=closed.answers, themes=list(themes)),
        f"Interview {closed.interview} is {closed.state}: {closed.answers} answers. "
        f"Main themes: {', '.join(themes.values())}.",
    )
