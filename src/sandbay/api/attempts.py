"""Refused attempts to change something: whoever refused them, and wherever, the audit has a row of each.

Use cases that know better what was tried have written it themselves (`RefusedError.audited`); all others end here. Not
written are refusals that say nothing of the attempt: too many requests (a row each would make the limit worthless) and
a database that is away. Nor is whoever has no key that is known: nobody could say who that was.
"""

from collections.abc import Callable, Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from sandbay.app import audit
from sandbay.app.core import Actor, Core
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason

ACTIONS: Mapping[str, str] = {
    "delete_a_secret": "secret.delete",
    "delete_any_secret": "secret.delete",
    "delete_agent_binding": "binding.delete",
    "delete_allow_list": "allow_list.delete",
    "delete_binding": "binding.delete",
    "delete_grant": "grant.delete",
    "delete_key": "key.revoke",
    "delete_override": "override.delete",
    "delete_own_scope": "scope.delete",
    "delete_registry_secret": "registry_secret.delete",
    "delete_scope": "scope.delete",
    "delete_scope_binding": "binding.delete",
    "delete_session": "session.delete",
    "delete_template": "template.delete",
    "patch_any_project": "project.change",
    "patch_image": "image.change",
    "patch_project": "binding.put",
    "patch_release": "release.change",
    "patch_template": "template.update",
    "post_channel_rollback": "channel.rollback",
    "post_check": "release.check",
    "post_evict": "image.evict",
    "post_image": "image.create",
    "post_key": "key.create",
    "post_preload": "image.preload",
    "post_project": "project.create",
    "post_promotion": "promotion.begin",
    "post_promotion_abort": "promotion.aborted",
    "post_publish": "publish.start",
    "post_publish_cancel": "publish.cancel",
    "post_release": "release.register",
    "post_resume": "session.resume",
    "post_session": "session.create",
    "post_suspend": "session.suspend",
    "post_template": "template.create",
    "post_upload": "upload.receive",
    "post_verify": "image.verify",
    "put_a_scope": "scope.put",
    "put_a_secret": "secret.put",
    "put_any_secret": "secret.put",
    "put_agent_binding": "binding.put",
    "put_allow_list": "allow_list.put",
    "put_binding": "binding.put",
    "put_channel": "channel.promote",
    "put_deployment": "deployment.set",
    "put_grant": "grant.put",
    "put_override": "override.put",
    "put_own_scope": "scope.put",
    "put_registry_secret": "registry_secret.put",
    "put_scope_binding": "binding.put",
}
"""Operation → what the audit calls it, done or refused."""

NO_CHANGE = frozenset(
    {
        *("post_explain", "post_admin_explain", "post_what_if", "post_admin_what_if", "post_publish_plan"),
        *("post_exec", "put_content", "post_folder", "post_move", "delete_files"),
    }
)
"""What changes nothing of the installation: questions, and the work inside a sandbox, which is its project's own."""

_SAYS_NOTHING = frozenset({Reason.TOO_MANY_REQUESTS, Reason.DATABASE_UNAVAILABLE})


async def refused(request: Request, error: RefusedError) -> None:
    """Write it down, unless it was no attempt to change something."""
    write = recorder(request)
    if write is not None and not error.audited:
        await run_in_threadpool(write, error)


def recorder(request: Request) -> Callable[[RefusedError], None] | None:
    """What writes down that this request was refused; None when it could not have changed anything."""
    action = ACTIONS.get(getattr(request.scope.get("endpoint"), "__name__", ""))
    actor: Actor | None = getattr(request.state, "actor", None)
    if action is None or actor is None:
        return None
    core: Core = request.app.state.core
    subject = "/".join(map(str, request.path_params.values())) or actor.project or "-"

    def write(error: RefusedError) -> None:
        if not error.audited and error.refusal.reason not in _SAYS_NOTHING:
            audit.refused(core, actor, action, subject, error)

    return write
