"""Provision a database: a wizard whose pages depend on earlier ones, and a price that is fixed when it is shown."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from mrtr_flow import Flow, Reply, ask, flow, step
from tests.corpus.forms import choice, form, text, titled, whole
from tests.corpus.world import done

QUOTE_MINUTES = 15
REGIONS = ("eu-north", "eu-west", "us-east", "ap-south")
ELSEWHERE = {"eu-north": "us-east", "eu-west": "us-east", "us-east": "eu-west", "ap-south": "eu-west"}


class Quota(BaseModel):
    vcpu: int
    vcpu_used: int
    storage_gib: int
    storage_used_gib: int


class Profile(BaseModel):
    team: str
    cost_centre: str
    quota: Quota
    allowed_regions: list[str]


class Residency(BaseModel):
    source: Annotated[str, Field(alias="from")]
    to: str
    verdict: Literal["free", "owner_required", "forbidden"]
    policy: str


class Quote(BaseModel):
    quote: str
    currency: str
    lines: list[tuple[str, int]]
    total_minor: int
    valid_until: str


class Cluster(BaseModel):
    cluster: str
    operation: str
    state: str


class Create(BaseModel):
    create: Annotated[bool, Field(title="Create the database", json_schema_extra={"default": False})]
    tags: Annotated[
        str | None, Field(title="Extra tags", description="comma separated key=value pairs", max_length=200)
    ] = None


class Provisioned(BaseModel):
    cluster: str | None = None
    operation: str | None = None
    quote: str
    total_minor: int
    pages: int


BASICS = form(
    ("environment", "engine", "region"),
    environment=choice(
        "Environment",
        titled(sandbox="Sandbox, deleted after 7 days", staging="Staging", production="Production"),
        default="sandbox",
    ),
    engine=choice("Engine", titled(relational="Relational", document="Document", keyvalue="Key-value")),
    region=choice("Region", REGIONS, default="eu-north"),
    name=text("Short name", 24, 3, description="Lower case, digits and dashes"),
)
RECOVERY = form(
    ("standby", "backup_hour_utc", "retention_days"),
    standby=choice(
        "Standby", titled(none="None", same="Same region, other zone", cross="Other region"), default="same"
    ),
    backup_hour_utc=whole("Daily backup hour, UTC", 0, 23, default=2),
    retention_days=whole("Keep backups, days", 7, 365, default=35),
    deletion_guard={"type": "boolean", "title": "Refuse deletion while clients are connected", "default": True},
)
APPROVER = form(
    ("owner_email", "data_class"),
    owner_email={"type": "string", "title": "Data owner", "maxLength": 120, "format": "email"},
    data_class=choice("Data class", titled(public="Public", internal="Internal", restricted="Restricted")),
    justification=text("Why does it leave the region?", 600, 20),
)


def sizing(engine: str, quota: Quota) -> dict[str, Any]:
    """Page 2: what the engine needs, within what the team has left."""
    if engine == "keyvalue":
        return form(
            ("ttl_seconds", "eviction"),
            ttl_seconds=whole("Keep entries, seconds", 1, 31_536_000),
            eviction=choice("When full", ["refuse", "oldest", "least-used"], default="refuse"),
        )
    size = {
        "vcpu": whole("vCPU", 2, quota.vcpu - quota.vcpu_used, default=4),
        "storage_gib": whole("Storage, GiB", 20, quota.storage_gib - quota.storage_used_gib, default=100),
    }
    if engine == "document":
        return form(("vcpu", "storage_gib"), **size)
    extensions = ["pg_trgm", "postgis", "pgcrypto", "hstore", "pg_partman", "vector"]
    return form(
        ("major", "vcpu", "storage_gib"),
        major=choice("Major version", ["15", "16", "17"], default="17"),
        **size,
        collation=choice("Collation", ["C.UTF-8", "und-x-icu", "en-x-icu"], default="C.UTF-8"),
        extensions={
            "type": "array",
            "title": "Extensions",
            "items": {"type": "string", "enum": extensions},
            "maxItems": 4,
        },
    )


def team_profile(team: str) -> Profile:
    return done("team_profile", Profile)


def residency_check(source: str, to: str) -> Residency:
    return done("residency_check", Residency)


def price_quote(*pages: dict[str, Any]) -> Quote:
    return done("price_quote", Quote)


def create_cluster(name: str, quote: str, tags: str | None) -> Cluster:
    return done("create_cluster", Cluster)


def register_owner(cluster: str, approver: dict[str, Any]) -> dict[str, str]:
    return done("register_owner", dict[str, str])


@flow(name="provision_database")
def provision(team: str, purpose: str) -> Flow[Reply[Provisioned]]:
    """Create a database for a team, page by page."""
    profile = yield from step(team_profile, team)
    quota = profile.quota
    basics = yield from ask(f"What should be created for the {team} team?", BASICS, key="basics")
    name, engine, region = basics.get("name", team), basics["engine"], basics["region"]
    if region not in profile.allowed_regions:
        return Reply.error(f"The {team} team may not use {region}; nothing was created.")
    options = yield from ask(f"{engine.capitalize()} options for {name}", sizing(engine, quota), key=engine)
    pages = 2
    recovery: dict[str, Any] = {"standby": "none"}
    residency: Residency | None = None
    approver: dict[str, Any] | None = None
    if basics["environment"] == "production":
        used = quota.storage_used_gib + options.get("storage_gib", 0)
        recovery = yield from ask(
            f"Production needs a recovery plan. Storage quota after this request: {used} of {quota.storage_gib} GiB.",
            RECOVERY,
            key="production",
        )
        pages += 1
    if recovery["standby"] == "cross":
        residency = yield from step(residency_check, region, ELSEWHERE[region])
        if residency.verdict == "forbidden":
            return Reply.error(f"{residency.policy} forbids a standby in {residency.to}; nothing was created.")
        if residency.verdict == "owner_required":
            approver = yield from ask(
                f"A cross-region standby sends data to {residency.to}, so a data owner has to be named.",
                APPROVER,
                key="approver",
            )
            pages += 1
    quote = yield from step(price_quote, basics, options, recovery)
    lines = ", ".join(
        f"{amount // 100} {quote.currency} {'backups' if what == 'backup' else what}" for what, amount in quote.lines
    )
    total = f"{quote.total_minor // 100} {quote.currency}"
    last = yield from ask(
        f"Monthly estimate: {lines}; {total} in total, charged to {profile.cost_centre}. "
        f"The quote is fixed for {QUOTE_MINUTES} minutes. Create it?",
        Create,
        key="quote",
    )
    pages += 1
    if not last.create:
        return Reply(Provisioned(quote=quote.quote, total_minor=quote.total_minor, pages=pages), "Nothing was created.")
    made = yield from step(create_cluster, name, quote.quote, last.tags)
    if approver is not None:
        yield from step(register_owner, made.cluster, approver)
    standby = {
        "none": "",
        "same": " with a standby in another zone",
        "cross": f" with a warm standby in {residency.to}" if residency else "",
    }
    return Reply(
        Provisioned(
            cluster=made.cluster,
            operation=made.operation,
            quote=quote.quote,
            total_minor=quote.total_minor,
            pages=pages,
        ),
        f"{made.cluster} is being created in {region}{standby[recovery['standby']]} (operation {made.operation}). "
        f"Estimated {total} a month on {profile.cost_centre}.",
    )
