"""A project's secrets: what its Sessions have in their environment, and nobody is ever told again."""

import re
from dataclasses import dataclass, field
from datetime import datetime

from sandbay.domain.ids import ProjectId

SECRET_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$"  # noqa: S105 - what names look like
SECRETS = 500
"""Of one project."""


@dataclass(frozen=True, slots=True)
class Secret:
    """As it is kept: sealed, under a name of its project's. It opens for that name of that project only."""

    project: ProjectId
    name: str
    sealed: str = field(repr=False)
    updated_at: datetime

    @property
    def context(self) -> str:
        """What it was sealed for."""
        return f"project:{self.project}:{self.name}"


def is_secret_name(text: str) -> bool:
    """Letters, digits and `_.-`, at most 128, beginning with a letter or a digit."""
    return re.fullmatch(SECRET_NAME, text) is not None
