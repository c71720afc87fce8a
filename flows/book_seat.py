"""Book a seat: a step before the first question, a loop over what the traveller answers, and a payment at the end."""

from mrtr_flow import Flow, ask, confirm, current, flow, step

TAKEN = {"LH 431": {1, 2, 3, 14}}


def quote(flight: str) -> int:
    """The fare today, in euros. Asked again tomorrow it may be another: that is why it is a step."""
    return 420 if flight.startswith("LH") else 199


def is_taken(flight: str, row: int) -> bool:
    return row in TAKEN.get(flight, {13})


async def pay(flight: str, row: int, fare: int) -> str:
    """Charges once, even if the round is sent again: the payment service knows the idempotency key."""
    return f"{flight.replace(' ', '')}-{row}-{current().idempotency_key[:6]}"


@flow(title="Book a seat", examples={"flight": "LH 431", "ask": [2, 14, 12], "confirm": True})
def book(flight: str) -> Flow[str]:
    """Book a seat, asking the traveller as it goes."""
    fare = yield from step(quote, flight)
    row = yield from ask("Which row?", int)
    while (yield from step(is_taken, flight, row)):
        row = yield from ask(f"Row {row} is taken. Another?", int)
    if not (yield from confirm(f"Pay {fare} for row {row}?")):
        return "Nothing booked"
    ticket = yield from step(pay, flight, row, fare)
    return f"Row {row}, ticket {ticket}"
