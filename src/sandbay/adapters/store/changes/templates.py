"""Templates."""

from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from sandbay.adapters.store.changes.dispatch import Writes
from sandbay.adapters.store.changes.guards import (
    refuse_beyond,
    refuse_taken,
    refuse_unless,
    replace_next,
    value_there,
)
from sandbay.adapters.store.tables import templates
from sandbay.domain.template import Template
from sandbay.ports.changes import AddTemplate, ChangeTemplate, DropTemplate

_BY_NAME = select(templates.c.id).where(
    templates.c.project == bindparam("project"),
    templates.c.name == bindparam("name"),
    templates.c.id != bindparam("key"),
)
_COUNT = select(func.count()).select_from(templates).where(templates.c.project == bindparam("project"))
_REVISION = select(templates.c.revision).where(templates.c.id == bindparam("key"))
_CHANGED = ("name", "updated_at", "outline", "document", "revision")
_UPDATE = (
    update(templates)
    .where(templates.c.id == bindparam("key"))
    .values({name: bindparam(name, type_=templates.c[name].type) for name in _CHANGED})
)
_DROP = delete(templates).where(templates.c.id == bindparam("key"))


def _row(template: Template) -> dict[str, Any]:
    return {
        "name": template.name,
        "updated_at": template.updated_at,
        "outline": template.content.outline,
        "document": template.content.document.decode(),
        "revision": template.revision,
    }


def _add_template(connection: Connection, change: AddTemplate) -> None:
    it = change.template
    refuse_taken(connection, _BY_NAME, {"project": it.project, "name": it.name, "key": ""}, change)
    refuse_beyond(change.limit, connection.execute(_COUNT, {"project": it.project}).scalar_one(), change)
    row = {**_row(it), "id": it.id, "project": it.project, "created_at": it.created_at}
    connection.execute(insert(templates), row)


def _change_template(connection: Connection, change: ChangeTemplate) -> None:
    it = change.template
    refuse_taken(connection, _BY_NAME, {"project": it.project, "name": it.name, "key": it.id}, change)
    replace_next(connection, _REVISION, _UPDATE, {"key": it.id, **_row(it)}, change)


def _drop_template(connection: Connection, change: DropTemplate) -> None:
    stored = value_there(connection, _REVISION, {"key": change.template}, change)
    refuse_unless(stored == change.revision, stored, change)
    connection.execute(_DROP, {"key": change.template})


WRITES: Writes = {
    AddTemplate: _add_template,
    ChangeTemplate: _change_template,
    DropTemplate: _drop_template,
}
