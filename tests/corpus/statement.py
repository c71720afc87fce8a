"""Read an account's statement: a resource that asks what it is for and how much may be shown."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mrtr_flow import Flow, ask, current, flow, step
from tests.corpus.forms import choice, form, text, titled
from tests.corpus.world import done, stored

COLUMNS: tuple[str, ...] = ("day", "account", "posting", "amount_minor", "balance_minor")


class Access(BaseModel):
    account: str
    role: str
    may_unredact: bool


class Found(BaseModel):
    postings: int
    payroll_lines: int
    persons: int
    revision: str


class Extent(BaseModel):
    payroll: Annotated[Literal["total", "omit"], Field(title="Payroll", json_schema_extra={"default": "total"})]
    format: Annotated[Literal["csv", "markdown"], Field(title="Format", json_schema_extra={"default": "csv"})]


PURPOSE = form(
    ("purpose", "redaction"),
    purpose=choice("Purpose", titled(review="Monthly review", audit="Audit sample", dispute="A single posting")),
    redaction=choice(
        "Names in postings",
        titled(withheld="Withhold all", parties="Withhold persons only", none="Show"),
        default="withheld",
    ),
    ticket=text("Reference", 32),
)


def acl(account: str, principal: str | None) -> Access:
    return done("acl", Access)


def count_postings(account: str, month: str) -> Found:
    return done("count_postings", Found)


def log_access(account: str, month: str, lines: int, redaction: str) -> dict[str, str | int]:
    return done("log_access", dict[str, str | int])


@flow.resource("ledger://statements/{account}/{month}", name="statement", mime_type="text/csv")
def statement(account: str, month: str) -> Flow[str]:
    """The postings of an account in a month."""
    access = yield from step(acl, account, current().principal)
    first = date.fromisoformat(f"{month}-01")
    why = yield from ask(f"Account {account}, {first:%B %Y}. What is it for?", PURPOSE, key="purpose")
    found = yield from step(count_postings, account, month)
    extent = yield from ask(
        f"{found.postings} postings. Include payroll as one total or leave it out?", Extent, key="extent"
    )
    redaction = why["redaction"] if access.may_unredact else "withheld"
    ledger = stored("statements", found.revision)  # a revision never changes: its lines are not recorded
    lines: list[tuple[str, ...]] = []
    balance = ledger["opening"]
    for day, posting, name, amount in ledger["postings"]:
        balance += amount
        if extent.payroll == "omit" and posting.startswith("payroll"):
            continue
        if name is not None:
            posting = f"{posting}, {name if redaction == 'none' else 'reference withheld'}"
        lines.append((day, account, posting, str(amount), str(balance)))
    yield from step(log_access, account, month, len(lines), redaction)
    if extent.format == "markdown":
        rows = [COLUMNS, ("---",) * len(COLUMNS), *lines]
        return "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return "".join(f"{','.join(row)}\n" for row in (COLUMNS, *lines))
