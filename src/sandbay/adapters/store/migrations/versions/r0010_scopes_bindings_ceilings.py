"""Scopes, bindings and ceilings; what keys are held to; where Sessions stand."""

from contextlib import AbstractContextManager
from typing import Literal

import sqlalchemy as sa
from alembic import op
from alembic.operations import BatchOperations
from sqlalchemy.dialects.postgresql import JSONB

revision = "0010"
down_revision = "0009"

JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the tables. What a project preferred is its binding from now on."""
    op.create_table(
        "scopes",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("parent", sa.String(), nullable=True),
        sa.Column("project", sa.String(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["parent"], ["scopes.name"], name=op.f("fk_scopes_parent")),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name=op.f("fk_scopes_project")),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_scopes")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_scopes_parent"), "scopes", ["parent"])
    op.create_index(op.f("ix_scopes_project"), "scopes", ["project"])
    _under(
        "bindings", sa.Column("mode", sa.String(), nullable=False), sa.Column("reference", sa.String(), nullable=False)
    )
    _under("allow_lists", sa.Column("allowed", JSON, nullable=False))
    _under("overrides", sa.Column("override", sa.String(), nullable=False))
    _under(
        "grants",
        sa.Column("image", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["image"], ["images.id"], name=op.f("fk_grants_image")),
        key=("subject", "image"),
    )
    op.execute(
        "INSERT INTO bindings (subject, mode, reference, author, at, revision)"
        " SELECT 'project:' || id, 'prefer', runtime_image_id, 'migration', created_at, 1 FROM projects"
        " WHERE runtime_image_id IS NOT NULL"
    )
    _alter()


def _alter() -> None:
    with _altered("projects", rowid=False) as projects:
        projects.drop_column("runtime_image_id")
        projects.add_column(sa.Column("scope_required", sa.Boolean(), nullable=False, server_default=sa.false()))
    with _altered("images", rowid=False) as images:
        images.add_column(sa.Column("tier", sa.String(), nullable=False, server_default="standard"))
    with _altered("keys", rowid=False) as keys:
        keys.add_column(sa.Column("confinement", JSON, nullable=False, server_default='{"agents":null,"scope":null}'))
    with _altered("sessions", rowid=True) as sessions:
        sessions.add_column(sa.Column("scope", sa.String(), nullable=True))
        sessions.add_column(sa.Column("agent", sa.String(), nullable=True))


def _under(name: str, *content: sa.schema.SchemaItem, key: tuple[str, ...] = ("subject",)) -> None:
    op.create_table(
        name,
        sa.Column("subject", sa.String(), nullable=False),
        *content,
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint(*key, name=op.f(f"pk_{name}")),
        sqlite_with_rowid=False,
    )


def _altered(name: str, *, rowid: bool) -> AbstractContextManager[BatchOperations]:
    """As in 0005: made anew, the table reads as every other."""
    recreate: Literal["always", "never"] = "always" if op.get_bind().dialect.name == "sqlite" else "never"
    options = {} if rowid else {"sqlite_with_rowid": False}
    return op.batch_alter_table(name, recreate=recreate, table_kwargs=options)
