"""Templates, and what Sessions keep of them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0006"
down_revision = "0005"

JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the tables; Sessions that are there were prepared with nothing."""
    op.create_table(
        "frozen_templates",
        sa.Column("digest", sa.String(), nullable=False, comment="SHA-256 of the document"),
        sa.Column("document", sa.Text(), nullable=False, comment="canonical JSON"),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_frozen_templates")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "templates",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("outline", JSON, nullable=False, comment="the document without the bytes of files"),
        sa.Column("document", sa.Text(), nullable=False, comment="canonical JSON"),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name=op.f("fk_templates_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_templates")),
        sa.UniqueConstraint("project", "name", name=op.f("uq_templates_project_name")),
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("sessions") as sessions:
        sessions.add_column(sa.Column("template", JSON, nullable=True))
        sessions.add_column(sa.Column("template_digest", sa.String(), nullable=True))
        sessions.add_column(sa.Column("setup_network", sa.String(), nullable=True))
        sessions.create_foreign_key(
            op.f("fk_sessions_template_digest"), "frozen_templates", ["template_digest"], ["digest"]
        )
