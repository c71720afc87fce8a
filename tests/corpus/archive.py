"""Archive a project after one question, whose text was counted before and is not counted again."""

from __future__ import annotations

from pydantic import BaseModel

from mrtr_flow import Flow, Reply, ask, flow, step
from tests.corpus.world import done


class Project(BaseModel):
    id: str
    title: str
    boards: int
    open_cards: int
    scheduled_exports: int
    members: int
    etag: str


class Receipt(BaseModel):
    archived_at: str
    restorable_until: str
    etag: str


class Archived(BaseModel):
    project_id: str
    archived: bool
    notified: bool = False
    restorable_until: str | None = None


def load_project(project_id: str) -> Project:
    return done("load_project", Project)


def archive_project(project_id: str, etag: str, reason: str, notify: bool) -> Receipt:
    return done("archive_project", Receipt)


@flow(name="archive_project")
def archive(project_id: str, reason: str) -> Flow[Reply[Archived]]:
    """Archive a project."""
    project = yield from step(load_project, project_id)
    answer = yield from ask(
        f"Archive project {project.id} ({project.title})? {project.boards} boards, {project.open_cards} open cards and "
        f"{project.scheduled_exports} scheduled exports become read-only.",
        # a raw schema, not a model, because a title depends on the project
        {
            "type": "object",
            "properties": {
                "confirm": {
                    "type": "boolean",
                    "title": "Archive this project",
                    "description": "Unarchiving is possible for 30 days.",
                    "default": False,
                },
                "notify": {"type": "boolean", "title": f"Tell the {project.members} members", "default": True},
            },
            "required": ["confirm"],
        },
        key="confirm",
    )
    if not answer["confirm"]:
        return Reply(Archived(project_id=project.id, archived=False), f"{project.id} was not archived.")
    receipt = yield from step(archive_project, project.id, project.etag, reason, answer["notify"])
    told = "were" if answer["notify"] else "were not"
    until = receipt.restorable_until
    return Reply(
        Archived(project_id=project.id, archived=True, notified=answer["notify"], restorable_until=until),
        f"Archived {project.id}. It can be restored until {until}; members {told} notified.",
    )
