"""Which network modes a node enforces."""

from typing import Literal

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0005"
down_revision = "0004"

JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    """Add the column. Every node says hello when it starts, and with it what it enforces."""
    # SQLite writes an added column into the table's text in its own way: made anew, the table reads as every other.
    recreate: Literal["always", "never"] = "always" if op.get_bind().dialect.name == "sqlite" else "never"
    with op.batch_alter_table("nodes", recreate=recreate, table_kwargs={"sqlite_with_rowid": False}) as nodes:
        nodes.add_column(
            sa.Column(
                "networks",
                JSON,
                nullable=False,
                server_default='["disabled"]',
                comment="of a node that has not said hello since there is this column, what every node enforces",
            )
        )
