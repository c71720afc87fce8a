"""An inventory of a large workspace: the client's roots are many, and what is needed of them later is little."""

from __future__ import annotations

from pydantic import BaseModel

from mrtr_flow import Flow, Reply, ask, flow, list_roots, step
from tests.corpus.forms import choice, form, titled, whole
from tests.corpus.world import done

MONOREPO = "file:///srv/monorepo/"
REPORT = "inventory.md"


class Summary(BaseModel):
    total: int
    by_area: dict[str, int]
    shared: int
    unnamed: int
    digest: str


class Scan(BaseModel):
    packages: int
    stale: list[str]
    ownerless: list[str]
    seconds: int


class Report(BaseModel):
    path: str
    bytes: int


class Inventory(BaseModel):
    packages: int
    stale: int
    ownerless: int
    roots: int


def summarise_roots(uris: list[str]) -> Summary:
    return done("summarise_roots", Summary)


def scan(domains: list[str], depth: int, shared: bool, stale_days: int) -> Scan:
    return done("scan", Scan)


def write_report(root: str, found: Scan, owners: str) -> Report:
    return done("write_report", Report)


@flow(name="workspace_inventory")
def inventory(depth: int, include_shared: bool) -> Flow[Reply[Inventory]]:
    """List the packages of a workspace, and those that nobody looks after."""
    roots = yield from list_roots(key="workspace")
    seen = yield from step(summarise_roots, [root.uri for root in roots])
    places = [root.uri.removeprefix(MONOREPO).split("/") for root in roots if root.uri.startswith(MONOREPO)]
    domains = sorted({domain for _, domain, *_ in places})
    focus = yield from ask(
        f"{seen.total} folders in {len(seen.by_area)} areas and {len(domains)} domains, {seen.shared} shared. "
        "Which domains should be listed?",
        form(
            ["domains"],
            domains={
                "type": "array",
                "title": "Domains",
                "items": {"anyOf": titled(**{domain: domain.capitalize() for domain in domains})},
                "minItems": 1,
                "maxItems": len(domains),
            },
            shared={"type": "boolean", "title": "Include shared folders", "default": include_shared},
            stale_days=whole("Mark as stale after days without commit", 7, 730, default=180),
        ),
        key="focus",
    )
    found = yield from step(scan, focus["domains"], depth, focus["shared"], focus["stale_days"])
    counts = f"{len(found.stale)} of them stale, {len(found.ownerless)} without an owner"
    output = yield from ask(
        f"Found {found.packages} packages, {counts}. Write the report?",
        form(
            ["write"],
            write={"type": "boolean", "title": f"Write {REPORT} to the first root", "default": False},
            owners=choice(
                "Packages without owner",
                titled(list="List them", guess="Guess from the history", skip="Leave out"),
                default="list",
            ),
        ),
        key="output",
    )
    listed = Inventory(
        packages=found.packages, stale=len(found.stale), ownerless=len(found.ownerless), roots=seen.total
    )
    if not output["write"]:
        return Reply(listed, f"Found {found.packages} packages; no report was written.")
    report = yield from step(write_report, roots[0].uri, found, output["owners"])
    return Reply(
        listed,
        f"{report.path} written: {found.packages} packages in {len(focus['domains'])} domains, "
        f"{len(found.stale)} stale, {len(found.ownerless)} without an owner ({', '.join(found.ownerless)}).",
    )
