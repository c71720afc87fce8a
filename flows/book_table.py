"""Book a table: a form of its own type, and a loop for as long as the date is full. The `await` spelling."""

from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mrtr_flow import ask, confirm, current, flow, gather, step

FULL = {date(2026, 12, 24): "the kitchen is closed", date(2026, 12, 31): "every table is taken"}


class Guests(BaseModel):
    people: Annotated[int, Field(gt=0, le=12, description="How many of you?")]
    seating: Literal["inside", "terrace", "bar"] = "inside"
    high_chairs: Annotated[int, Field(ge=0, le=4)] = 0


def why_full(day: date) -> str | None:
    """Why there is no table that day, or None if there is one."""
    return FULL.get(day)


async def reserve(name: str, day: date, guests: Guests) -> str:
    return f"{name[:3].upper()}-{day:%m%d}-{guests.people}-{current().idempotency_key[:4]}"


@flow(
    title="Book a table",
    examples={
        "restaurant": "Trattoria Ada",
        "guests": {"people": 4, "seating": "terrace"},
        "date": ["2026-12-24", "2026-12-31", "2027-01-02"],
        "confirm": True,
    },
)
async def book_table(restaurant: str) -> str:
    """Book a table at a restaurant."""
    guests, day = await gather(
        ask(f"Who is coming to {restaurant}?", Guests, key="guests"),
        ask("Which day?", date, key="date"),
    )
    while reason := await step(why_full, day):
        day = await ask(f"{day} is full: {reason}. Which other day?", date, key="date")
    if not await confirm(f"{guests.people} people, {guests.seating}, on {day}?"):
        return "No table was booked"
    code = await step(reserve, restaurant, day, guests)
    return f"A table for {guests.people} on {day}, code {code}"
