"""Why a variant is wished for on a node."""

from typing import Literal

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the column. A wish of before came of demand, for all that anybody can tell now."""
    # As in 0005: made anew, the table reads as every other.
    recreate: Literal["always", "never"] = "always" if op.get_bind().dialect.name == "sqlite" else "never"
    with op.batch_alter_table("wishes", recreate=recreate, table_kwargs={"sqlite_with_rowid": False}) as wishes:
        wishes.add_column(
            sa.Column(
                "why",
                sa.Integer(),
                nullable=False,
                server_default="2",
                comment="a member of Why: what there was before this column came of demand",
            )
        )
