"""An expense report: lines are collected until there are no more, then checked against the policy and submitted."""

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mrtr_flow import Flow, ask, confirm, current, flow, step


class Line(BaseModel):
    what: Annotated[str, Field(min_length=1, max_length=60)]
    category: Literal["travel", "meals", "lodging", "other"]
    amount: Annotated[Decimal, Field(gt=0)]
    another: Annotated[bool, Field(description="Add another line after this one?")] = False


class Verdict(BaseModel):
    limit: Decimal
    approver: str | None


def check_policy(employee: str, total: Decimal) -> Verdict:
    """The policy service's answer: not the client's business, so it is never compressed beside the client's words."""
    limit = Decimal("250.00")
    return Verdict(limit=limit, approver="E-10022" if total > limit else None)


def submit(employee: str, lines: list[Line], approver: str | None) -> str:
    return f"EXP-{employee[-3:]}-{len(lines)}-{current().idempotency_key[:6]}"


@flow(
    examples={
        "employee": "E-20417",
        "line": [
            {"what": "Train to Milan", "category": "travel", "amount": 89.5, "another": True},
            {"what": "Dinner with the warehouse team", "category": "meals", "amount": "184.50"},
        ],
        "confirm": True,
    }
)
def expense(employee: str) -> Flow[str]:
    """File an expense report, one line at a time."""
    lines: list[Line] = []
    while not lines or lines[-1].another:
        total = sum((line.amount for line in lines), Decimal())
        lines.append((yield from ask(f"Line {len(lines) + 1} (total so far {total:.2f})", Line, key="line")))
    total = sum((line.amount for line in lines), Decimal())
    verdict = yield from step(check_policy, employee, total)
    approval = f", for approval by {verdict.approver}" if verdict.approver else ""
    if not (yield from confirm(f"Submit {len(lines)} lines, {total:.2f} in all{approval}?")):
        return "Nothing was submitted"
    number = yield from step(submit, employee, lines, verdict.approver)
    return f"Report {number}: {total:.2f}"
