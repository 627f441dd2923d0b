"""A project's standing preference: the whole chain runs when it is written, so that no Session is surprised."""

from sandbay.app.access import find_project, set_preference
from sandbay.app.core import Actor, Core
from sandbay.app.select import select_for_project
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import ProjectId
from sandbay.domain.project import Project
from sandbay.domain.reasons import Reason
from sandbay.flow.resolve import Rejected


def prefer(
    core: Core, actor: Actor, project_id: ProjectId, reference: str | None, expected_revision: int | None
) -> Project:
    """Set or clear it. What would be refused at admission is refused here, and changes nothing."""
    project = find_project(core, project_id)
    if expected_revision is not None and expected_revision != project.revision:
        raise RefusedError(
            Reason.REVISION_STALE,
            "the project has changed since you read it; read it again",
            param="expected_revision",
            details={"current": project.revision},
        )
    if reference == project.runtime_image_id:
        return project
    if reference is not None:
        outcome = select_for_project(core, project, reference).outcome
        if isinstance(outcome, Rejected):
            refusal = outcome.refusal
            raise RefusedError(
                refusal.reason, refusal.message, param="runtime_image_id", details={"reference": reference}
            )
    return set_preference(core, actor, project, reference)
