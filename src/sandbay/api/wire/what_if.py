"""What would change if …."""

from typing import Annotated

from pydantic import Field, model_validator

from sandbay.api.wire.base import NO_NUL, In, Labels, Out, Reference
from sandbay.api.wire.scopes import AgentText, ScopeText
from sandbay.api.wire.standing import BindingOut, binding_out
from sandbay.app.bindings import Bound
from sandbay.domain.binding import Mode
from sandbay.domain.ceiling import AllowList
from sandbay.domain.impact import Answer, AskerKind, Impact

_Name = Annotated[str, Field(min_length=1, max_length=512, pattern=NO_NUL)]
_Number = Annotated[int, Field(ge=1, le=999_999_999)]
_SUBJECT = "deployment, project:NAME, scope:KIND:REF or agent:PROJECT:NAME."


class SupposedBinding(In):
    """A binding that is not written."""

    subject: _Name = Field(description=f"Whose word it would be: {_SUBJECT}")
    runtime_image_id: Reference | None = Field(description="An image reference; null: there were no binding.")
    mode: Annotated[Mode, Field(strict=False)] = Field(default=Mode.PREFER, description="`prefer` or `enforce`.")


class SupposedAllowList(In):
    """An allow-list that is not written."""

    subject: _Name = Field(description="Whose list it would be: deployment, project:NAME or scope:KIND:REF.")
    absent: bool = Field(default=False, description="Whether there were none: everything is allowed.")
    everything: bool = Field(default=False, description="Whether every image is allowed.")
    images: Annotated[list[_Name], Field(max_length=1_000)] = Field(default=[], description="Names or ids of images.")
    labels: Annotated[list[Labels], Field(max_length=1_000)] = Field(
        default=[], description="Selectors; an image that has all labels of one of them is allowed."
    )

    def allowed(self) -> AllowList | None:
        """As the domain has it."""
        selectors = tuple(dict(it) for it in self.labels)
        return None if self.absent else AllowList(self.everything, frozenset(self.images), selectors)


class SupposedChannel(In):
    """A channel that is not moved."""

    image: _Name = Field(description="The image, by name or id.")
    channel: _Name = Field(description="The channel's name.")
    release: _Number = Field(description="The number of the release that it would point at.")


class SupposedRetirement(In):
    """A retirement that is not done."""

    image: _Name = Field(description="The image, by name or id.")
    release: _Number | None = Field(default=None, description="Of this release only; null for the whole image.")


Supposed = SupposedBinding | SupposedAllowList | SupposedChannel | SupposedRetirement


class WhatIfIn(In):
    """Exactly one thing that could be written."""

    binding: SupposedBinding | None = Field(default=None, description="A binding written or taken away.")
    allow_list: SupposedAllowList | None = Field(default=None, description="An allow-list written or taken away.")
    channel: SupposedChannel | None = Field(default=None, description="A channel moved.")
    retire: SupposedRetirement | None = Field(default=None, description="An image or a release retired.")

    @model_validator(mode="after")
    def _one(self) -> "WhatIfIn":
        if len(self._all) != 1:
            raise ValueError("say exactly one of binding, allow_list, channel and retire")
        return self

    @property
    def said(self) -> Supposed:
        """The one that is said."""
        return self._all[0]

    @property
    def _all(self) -> list[Supposed]:
        return [it for it in (self.binding, self.allow_list, self.channel, self.retire) if it is not None]


class OwnWhatIfIn(In):
    """A preference that is not written: of an agent, of a scope, or without either of the project itself."""

    runtime_image_id: Reference | None = Field(description="An image reference; null: there were no preference.")
    agent: AgentText | None = Field(default=None, description="An agent of the project.")
    scope: ScopeText | None = Field(default=None, description="A scope of the project, as `team:growth`.")

    @model_validator(mode="after")
    def _one(self) -> "OwnWhatIfIn":
        if self.agent is not None and self.scope is not None:
            raise ValueError("say an agent or a scope, not both")
        return self


class AnswerOut(Out):
    """What a Session comes to."""

    image: str | None = Field(description="The release that it runs, as `web:7`.")
    reason: str | None = Field(description="Why it runs none.")


class ImpactOut(Out):
    """One whose Sessions come to another answer."""

    kind: AskerKind = Field(description="What its Sessions name: a Template, an agent, a scope, or nothing.")
    name: str = Field(description="Its name.")
    project: str | None = Field(description="Its project's name; null for a scope that every project may name.")
    before: AnswerOut = Field(description="As it is.")
    after: AnswerOut = Field(description="As it would be.")


class WhatIfOut(Out):
    """Whose answers would change. Nothing is written."""

    changes: list[ImpactOut] = Field(description="Projects with their Templates and agents by name, then scopes.")


def _answer(answer: Answer) -> AnswerOut:
    return AnswerOut(image=answer.image, reason=None if answer.reason is None else answer.reason.value)


def impact_out(impact: Impact) -> ImpactOut:
    """From the domain."""
    asker = impact.asker
    return ImpactOut(
        kind=asker.kind,
        name=asker.name,
        project=asker.path.project_name,
        before=_answer(impact.before),
        after=_answer(impact.after),
    )


class BoundOut(BindingOut):
    """A binding that was written, and whose image changed by it."""

    changes: list[ImpactOut] = Field(description="Projects with their Templates and agents by name, then scopes.")


def bound_out(bound: Bound, subject: str, upgrade: str | None) -> BoundOut:
    """From the use case; `subject` is what it is called."""
    changes = [impact_out(it) for it in bound.changes]
    return BoundOut(**binding_out(bound.binding, subject, upgrade).model_dump(), changes=changes)
