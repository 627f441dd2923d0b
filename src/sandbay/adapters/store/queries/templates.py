"""Templates, and what Sessions keep of them."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, or_, select

from sandbay.adapters.store.queries.dispatch import Answers
from sandbay.adapters.store.rows import frozen_template_of, preparation_of
from sandbay.adapters.store.tables import frozen_templates, templates
from sandbay.domain.template import FrozenTemplate, Template
from sandbay.ports.store import FrozenTemplateOf, TemplateOf, Templates

_HEAD = (templates.c.id, templates.c.project, templates.c.name, templates.c.created_at, templates.c.updated_at)
_TEMPLATE = select(*_HEAD, templates.c.document, templates.c.revision).where(
    templates.c.project == bindparam("project"),
    or_(templates.c.id == bindparam("wanted"), templates.c.name == bindparam("wanted")),
)
_OUTLINES = (
    select(*_HEAD, templates.c.outline, templates.c.revision)
    .where(templates.c.project == bindparam("project"))
    .order_by(templates.c.name)
)
_FROZEN = select(frozen_templates.c.document).where(frozen_templates.c.digest == bindparam("digest"))


def _template_of(connection: Connection, query: TemplateOf) -> Template | None:
    row = connection.execute(_TEMPLATE, {"project": query.project, "wanted": query.name_or_id}).first()
    return None if row is None else Template(*row[:5], preparation_of(row[5]), row[6])


def _templates(connection: Connection, query: Templates) -> Sequence[Template]:
    statement = _OUTLINES.limit(query.page.limit)
    if query.page.after is not None:
        statement = statement.where(templates.c.name > query.page.after)
    return tuple(Template(*row) for row in connection.execute(statement, {"project": query.project}))


def _frozen_template_of(connection: Connection, query: FrozenTemplateOf) -> FrozenTemplate | None:
    document = connection.execute(_FROZEN, {"digest": query.digest}).scalar()
    return None if document is None else frozen_template_of(document, query.digest)


ANSWERS: Answers = {FrozenTemplateOf: _frozen_template_of, TemplateOf: _template_of, Templates: _templates}
