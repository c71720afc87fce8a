"""Drop columns: the database's name is typed, a change is named, and the approval works once."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mrtr_flow import Flow, Reply, ask, flow, step
from tests.corpus.forms import choice, form, text, titled
from tests.corpus.world import done, first_time

KEPT_DAYS = 14


class Lock(BaseModel):
    table: str
    mode: str
    estimate_ms: int


class Plan(BaseModel):
    migration: str
    digest: str
    statements: int
    sql: str
    locks: list[Lock]
    rows_lost: dict[str, int]
    readers_last_day: list[str]


class Recheck(BaseModel):
    digest: str
    matches: bool


class ChangeRecord(BaseModel):
    change: str
    state: str
    covers: str
    requested_by_same_person: bool


class Snapshot(BaseModel):
    snapshot: str
    bytes: int
    seconds: int
    lag_s: float


class Approval(BaseModel):
    approval: str
    plan_digest: str
    expires_in_s: int


class Spent(BaseModel):
    approval: str
    spent: bool
    first: bool


class Applied(BaseModel):
    applied: bool
    seconds: int
    schema_version: int
    rows_deleted: int


class Typed(BaseModel):
    database: Annotated[
        str, Field(title="Database name", description="Exactly as shown above", min_length=1, max_length=63)
    ]


class Run(BaseModel):
    run: Annotated[bool, Field(title="Run the migration", json_schema_extra={"default": False})]
    watch: Annotated[str | None, Field(title="Who is watching?", max_length=80)] = None


class Migrated(BaseModel):
    database: str
    schema_version: int | None = None
    approval: str | None = None
    snapshot: str


TICKET = form(
    ("change", "window"),
    change=text("Change number", 16, 6),
    window=choice("Window", titled(now="Right now", tonight="Tonight, 01:00 to 03:00 UTC")),
    rollback=choice(
        "If it fails", titled(snapshot="Restore the snapshot", forward="Repair by hand"), default="snapshot"
    ),
)


def dry_run(database: str, migration: str, mode: str) -> Plan:
    return done("dry_run", Plan)


def check_change(change: str, database: str) -> ChangeRecord:
    return done("check_change", ChangeRecord)


def take_snapshot(database: str) -> Snapshot:
    return done("take_snapshot", Snapshot)


def mint_approval(digest: str) -> Approval:
    return done("mint_approval", Approval)


def dry_run_again(database: str, migration: str, digest: str) -> Recheck:
    return done("dry_run_again", Recheck)


def spend_approval(approval: str) -> Spent:
    """The store of approvals: it knows what was spent, which no token can."""
    first = first_time("spend_approval")
    return done("spend_approval", Spent).model_copy(update={"first": first})


def run_migration(database: str, migration: str, window: str, rollback: str) -> Applied:
    return done("run_migration", Applied)


@flow(name="apply_migration", annotations={"destructiveHint": True})
def migrate(database: str, migration: str, mode: Literal["online", "offline"]) -> Flow[Reply[Migrated]]:
    """Apply a destructive migration, after a snapshot and an approval."""
    plan = yield from step(dry_run, database, migration, mode)
    columns, tables = plan.sql.count("drop column"), plan.sql.count("drop table")
    message = (
        f"This removes {columns} columns and {tables} tables (about {sum(plan.rows_lost.values()) / 1e6:.0f} million "
        f"rows) from {database}. Type the database name to go on."
    )
    for attempt in (1, 2):
        typed = yield from ask(message, Typed, key=f"name#{attempt}")
        if typed.database == database:
            break
        message = (
            f"That is not the name of this database. Nothing was changed. Type {database} to go on, or decline. "
            "One attempt is left."
        )
    else:
        return Reply.error("The name was not typed; nothing was changed.")
    ticket = yield from ask("Which change covers this, and when may it run?", TICKET, key="ticket")
    change = yield from step(check_change, ticket["change"], database)
    if change.state != "approved" or change.covers != database or change.requested_by_same_person:
        return Reply.error(f"{change.change} does not cover this; nothing was changed.")
    snapshot = yield from step(take_snapshot, database)
    approval = yield from step(mint_approval, plan.digest)
    answer = yield from ask(
        f"Snapshot {snapshot.snapshot} is complete ({snapshot.bytes / 2**30:.0f} GiB). "
        f"Plan {approval.plan_digest[:15]}. Replication lag {snapshot.lag_s} s. Run {migration} now? "
        f"This approval is valid for {approval.expires_in_s // 60} minutes and for one run.",
        Run,
        key="approve",
    )
    if not answer.run:
        return Reply(Migrated(database=database, snapshot=snapshot.snapshot), "Nothing was changed.")
    live = yield from step(dry_run_again, database, migration, plan.digest)
    if not live.matches:
        return Reply.error("The plan has changed since; nothing was changed.")
    spent = yield from step(spend_approval, approval.approval)
    if not spent.first:
        return Reply.error(f"Approval {spent.approval} was spent before; nothing was run.")
    applied = yield from step(run_migration, database, migration, ticket["window"], ticket["rollback"])
    return Reply(
        Migrated(
            database=database,
            schema_version=applied.schema_version,
            approval=spent.approval,
            snapshot=snapshot.snapshot,
        ),
        f"{migration} ran on {database} in {applied.seconds} s; the schema is at version {applied.schema_version}. "
        f"Snapshot {snapshot.snapshot} is kept for {KEPT_DAYS} days. Approval {spent.approval} is spent.",
    )
