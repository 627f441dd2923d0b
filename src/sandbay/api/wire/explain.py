"""What admission would decide."""

from typing import Annotated

from pydantic import Field

from sandbay.api.wire.base import NO_NUL, In, Out, Reference, RefusalOut, Requires, refusal_of, requirements_of
from sandbay.api.wire.scopes import AgentText, ScopeText
from sandbay.api.wire.sessions import FrozenImageOut, StepOut, TemplateName, decided_by_out, trail_out
from sandbay.app.explain import Explanation
from sandbay.app.select import Wish
from sandbay.domain.choosing import Selected
from sandbay.domain.placement import Placed, Unplaced
from sandbay.flow.locate import Whereabouts

ProjectName = Annotated[str, Field(min_length=1, max_length=512, pattern=NO_NUL)]


class ExplainIn(In):
    """A hypothetical Session."""

    runtime_image_id: Reference | None = Field(default=None, description="An image reference.")
    platform: Annotated[str, Field(max_length=128, pattern=NO_NUL)] | None = Field(
        default=None, description="os/architecture[/variant]; the Template's or the deployment's when omitted."
    )
    template: TemplateName | None = Field(default=None, description="A Template of the project, by name or id.")
    requires: Requires = Field(
        default=[], description="Tools that the image must have, verified, such as `node>=20` or `git`."
    )

    scope: ScopeText | None = Field(default=None, description="The narrowest scope that it acts in, as `team:growth`.")
    agent: AgentText | None = Field(default=None, description="The agent that it runs for.")

    def wish(self) -> Wish:
        """As the use case takes it, without its Template."""
        return Wish(
            *(self.runtime_image_id, self.platform),
            requires=requirements_of(self.requires),
            whereabouts=Whereabouts(self.scope, self.agent),
        )


class AdminExplainIn(ExplainIn):
    """A hypothetical Session of a project."""

    project: ProjectName = Field(description="The project, by name or id.")


class PlacementOut(Out):
    """Where it would go now."""

    pool: str | None = Field(description="The pool that would take it; null when none can.")
    reason: str | None = Field(description="Why none can.")
    pools: dict[str, dict[str, int]] = Field(description="Pool → why a node fell out → how many.")


class ExplanationOut(Out):
    """What admission would decide now. Nothing is made."""

    resolved: FrozenImageOut | None = Field(description="The image that it would run.")
    refusal: RefusalOut | None = Field(description="Why there is none.")
    trail: list[StepOut] = Field(description="What each level said.")
    placement: PlacementOut | None = Field(description="Where it would go; null when no image was chosen.")


def resolved_out(chosen: Selected) -> FrozenImageOut:
    """What a Session would be frozen on."""
    return FrozenImageOut(
        id=chosen.entry.image.id,
        name=chosen.entry.image.name,
        reference=chosen.reference,
        release=chosen.release.number,
        release_id=chosen.release.id,
        digest=chosen.variant.digest,
        index_digest=chosen.variant.index_digest,
        platform=str(chosen.variant.platform),
        tools=dict(chosen.tools),
        decided_by=decided_by_out(chosen.decided_by),
    )


def _placement(outcome: Placed | Unplaced | None) -> PlacementOut | None:
    if outcome is None:
        return None
    if isinstance(outcome, Placed):
        return PlacementOut(pool=outcome.pool, reason=None, pools={})
    counts = {pool: {why.value: n for why, n in tally.items()} for pool, tally in outcome.counts.items()}
    return PlacementOut(pool=None, reason=outcome.reason.value, pools=counts)


def explanation_out(explanation: Explanation) -> ExplanationOut:
    """From the use case."""
    outcome = explanation.selection.outcome
    chosen = isinstance(outcome, Selected)
    return ExplanationOut(
        resolved=resolved_out(outcome) if isinstance(outcome, Selected) else None,
        refusal=None if isinstance(outcome, Selected) else refusal_of(outcome.refusal),
        trail=trail_out(outcome.trail),
        placement=_placement(explanation.placement) if chosen else None,
    )
