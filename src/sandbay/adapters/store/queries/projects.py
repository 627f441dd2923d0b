"""Projects and keys."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, or_, select

from sandbay.adapters.store.queries.dispatch import Answers
from sandbay.adapters.store.rows import columns_of, noun
from sandbay.adapters.store.tables import keys, projects
from sandbay.domain.project import Key, Project
from sandbay.ports.store import KeyOf, Keys, ProjectOf, Projects

_KEYS = select(*columns_of(Key, keys))
_KEY_BY_HASH = _KEYS.where(keys.c.hash == bindparam("hash"))
_KEYS_IN_ORDER = _KEYS.order_by(keys.c.created_at, keys.c.id)
_KEYS_OF_PROJECT = _KEYS_IN_ORDER.where(keys.c.project == bindparam("project"))
_KEYS_OF_ADMINISTRATOR = _KEYS_IN_ORDER.where(keys.c.project.is_(None))
_PROJECTS = select(*columns_of(Project, projects)).order_by(projects.c.name)
_PROJECT = _PROJECTS.where(or_(projects.c.id == bindparam("wanted"), projects.c.name == bindparam("wanted")))


def _key_of(connection: Connection, query: KeyOf) -> Key | None:
    row = connection.execute(_KEY_BY_HASH, {"hash": query.hash}).first()
    return None if row is None else noun(Key, row)


def _keys(connection: Connection, query: Keys) -> Sequence[Key]:
    if query.project is None:
        rows = connection.execute(_KEYS_OF_ADMINISTRATOR)
    else:
        rows = connection.execute(_KEYS_OF_PROJECT, {"project": query.project})
    return tuple(noun(Key, row) for row in rows)


def _project_of(connection: Connection, query: ProjectOf) -> Project | None:
    row = connection.execute(_PROJECT, {"wanted": query.name_or_id}).first()
    return None if row is None else noun(Project, row)


def _projects(connection: Connection, _: Projects) -> Sequence[Project]:
    return tuple(noun(Project, row) for row in connection.execute(_PROJECTS))


ANSWERS: Answers = {KeyOf: _key_of, Keys: _keys, ProjectOf: _project_of, Projects: _projects}
