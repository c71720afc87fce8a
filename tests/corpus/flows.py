"""The flows of the corpus, by the name of their call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mrtr_flow import Definition
from tests.corpus.archive import archive
from tests.corpus.interview import interview
from tests.corpus.inventory import inventory
from tests.corpus.migration import migrate
from tests.corpus.provision import provision
from tests.corpus.release import readiness
from tests.corpus.review import review
from tests.corpus.statement import statement

__all__ = ("FLOWS",)

FLOWS: Final[Mapping[str, Definition[..., Any]]] = {
    "confirm_archive": archive,
    "provision_database_wizard": provision,
    "release_readiness_parallel": readiness,
    "code_review_sampling": review,
    "needs_interview_25": interview,
    "drop_columns_single_use": migrate,
    "read_statement_resource": statement,
    "workspace_inventory_roots": inventory,
}
