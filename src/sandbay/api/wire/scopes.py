"""Scopes."""

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field

from sandbay.api.wire.base import NO_NUL, In, Listing, Out, Revision
from sandbay.domain.reference import Malformed
from sandbay.domain.scope import Scope, is_agent_name, parse_scope


def _scope(text: str) -> str:
    parsed = parse_scope(text)
    if isinstance(parsed, Malformed):
        raise ValueError(parsed.why)  # noqa: TRY004 - the type is right, the text is not
    return text


def _agent(text: str) -> str:
    if not is_agent_name(text):
        raise ValueError("an agent's name has letters, digits and . _ -, at most 63, and starts with no sign")
    return text


ScopeText = Annotated[str, Field(max_length=256, pattern=NO_NUL), AfterValidator(_scope)]
"""`kind:ref`, such as `team:growth`."""
AgentText = Annotated[str, Field(max_length=256, pattern=NO_NUL), AfterValidator(_agent)]


class OwnScopeIn(In):
    """A scope of the project, as it should be."""

    parent: ScopeText = Field(description="The scope that it stands below, one of the project's own.")
    expected_revision: Revision | None = Field(
        default=None, description="Refuse if it has another one by now; 0: if it is registered."
    )


class ScopeIn(In):
    """A scope as it should be."""

    parent: ScopeText | None = Field(default=None, description="The scope that it stands below; null for none.")
    project: Annotated[str, Field(min_length=1, max_length=512, pattern=NO_NUL)] | None = Field(
        default=None, description="Whose it is, by name or id, for good; null when every project may name it."
    )
    expected_revision: Revision | None = Field(
        default=None, description="Refuse if it has another one by now; 0: if it is registered."
    )


class ScopeOut(Out):
    """Where in an organisation Sessions act."""

    name: str = Field(description="kind:ref, unique in the installation.")
    parent: str | None = Field(description="The scope that it stands below.")
    project: str | None = Field(description="The id of the project whose it is; null when every project may name it.")
    created_at: datetime = Field(description="When it was registered.")
    revision: int = Field(description="Rises with every move.")


class ScopeList(Listing[ScopeOut]):
    """Scopes by name."""


def scope_out(scope: Scope) -> ScopeOut:
    """From the domain."""
    return ScopeOut(
        name=scope.name,
        parent=scope.parent,
        project=scope.project,
        created_at=scope.created_at,
        revision=scope.revision,
    )
