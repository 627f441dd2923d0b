"""The workshop: takes queued publishes to their end, one of each image at a time, a few images at once.

Level-triggered, as the reconciler: it looks at rows. Threads that build are all it keeps in memory; when the process
dies with them, the rows still say that something is being built, and it is built anew. Only the Core that received a
context can build it, so what another Core has is left to it.
"""

import threading
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from sandbay.app import audit
from sandbay.app.channels import Move, promote
from sandbay.app.core import SYSTEM, Actor, Core
from sandbay.app.images import change_image, create_image
from sandbay.app.publish import CANCELLED, decide, entry_of, find
from sandbay.app.publish_inputs import Prepared, find_bases, open_context, platform_of, prepare
from sandbay.app.register import FromBuild, Registration, register
from sandbay.app.select import current_deployment
from sandbay.domain.catalog import ImageEntry, ReleaseEntry
from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.ids import PublishId
from sandbay.domain.project import KeyKind
from sandbay.domain.publish import FINISHED, MAX_ATTEMPTS, UNDER_WAY, Publish, PublishPhase
from sandbay.domain.reasons import Reason
from sandbay.domain.release import NOT_RUNNABLE, Fault, ReleaseState
from sandbay.ports.builder import BuildOrder
from sandbay.ports.changes import ChangePublish, Conflict, ConflictKind
from sandbay.ports.records import Page
from sandbay.ports.store import CatalogOf, Publishes, UploadOf

_P = PublishPhase
_TO_BUILD = frozenset({_P.QUEUED, _P.BUILDING, _P.REGISTERING})
_TRIES = 10
_PAGE = Page(limit=500)

log = structlog.get_logger()


@dataclass
class _Build:
    """A thread at work on a publish. `cancel` ends it; a publish that nobody cancelled is gone on with later."""

    thread: threading.Thread
    cancel: threading.Event = field(default_factory=threading.Event)


class Workshop:
    """`step` is called again and again, from one thread."""

    def __init__(self, core: Core) -> None:
        """Nothing is under way."""
        self._core = core
        self._builds: dict[PublishId, _Build] = {}
        self._closing = False

    def step(self) -> None:
        """Look at every publish that is not at its end, oldest first."""
        # Threads first: what one wrote before it ended is then in the rows.
        self._builds = {it: build for it, build in self._builds.items() if build.thread.is_alive()}
        rows = list(reversed(self._core.store.read(Publishes(None, frozenset(_P) - FINISHED, _PAGE))))
        busy = {row.image for row in rows if row.phase in UNDER_WAY or row.id in self._builds}
        for row in rows:
            if row.id in self._builds:
                if row.cancelled_by is not None:
                    self._builds[row.id].cancel.set()
            elif row.phase not in _TO_BUILD:
                _settle(self._core, row)
            elif row.phase is not _P.QUEUED or row.image not in busy:
                busy.add(row.image)
                self._begin(row)

    def close(self) -> None:
        """Stop building. What was under way is gone on with by whoever comes next."""
        self._closing = True
        for build in self._builds.values():
            build.cancel.set()
        for build in self._builds.values():
            build.thread.join()

    def _begin(self, row: Publish) -> None:
        core = self._core
        if self._closing or len(self._builds) >= core.settings.builds:
            return
        upload = core.store.read(UploadOf(row.order.upload))
        gone = upload is None or upload.expires_at <= core.clock.now()
        if not gone and not core.uploads.has(row.order.upload):
            return
        cancel = threading.Event()
        thread = threading.Thread(target=self._work, args=(row, cancel), name=f"sandbay-{row.id}", daemon=True)
        self._builds[row.id] = _Build(thread, cancel)
        thread.start()

    def _work(self, row: Publish, cancel: threading.Event) -> None:
        core = self._core
        try:
            _Work(core, row, cancel).run()
        except Conflict as conflict:
            if conflict.kind not in (ConflictKind.TAKEN, ConflictKind.STALE):
                log.exception("a publish cannot be moved on", publish=row.id)
        except RefusedError as error:
            refusal = error.refusal
            if refusal.reason is not Reason.DATABASE_UNAVAILABLE and not self._closing:
                _end(core, row.id, refusal)
        except Exception:
            log.exception("publishing failed", publish=row.id)
            _end(core, row.id, Refusal(Reason.INTERNAL, "a fault of ours; the log has it under this publish"))
        finally:
            core.changed.set()


class _Work:
    """One publish, from its claim to a registered release."""

    def __init__(self, core: Core, row: Publish, cancel: threading.Event) -> None:
        self._core, self._row, self._cancel = core, row, cancel
        self._actor = Actor(row.principal, KeyKind.ADMINISTRATOR)

    def run(self) -> None:
        """Claim it, build or find the release, register. Refuses by any reason of those."""
        core, row = self._core, self._row
        if row.cancelled_by is not None:
            raise RefusedError(Reason.CANCELLED, CANCELLED.message)
        if row.attempt >= MAX_ATTEMPTS:
            message = f"Core ended {row.attempt} times while it was building this; publish it again"
            raise RefusedError(Reason.BUILD_FAILED, message, details={"attempts": row.attempt})
        self._row = self._claim()
        with open_context(core, row.order.upload) as context:
            prepared = prepare(context, row.order)
            file = prepared.containerfile
            bases = find_bases(core, file, platform_of(core))
            inputs, decided = decide(core, row.order, prepared, bases.recorded)
            for base in bases.recorded:
                self._say(f"{base.text} is {base.release or base.digest}\n")
            self._say(f"{decided.why}\n")
            self._row = _move(core, self._row, inputs=inputs)
            if decided.release is not None:
                self._found(decided.release, built=False)
                return
            order = BuildOrder(
                publish=row.id,
                key=inputs.digest,
                platform=platform_of(core),
                context=context,
                containerfile=file,
                bases=bases.built_on,
                blobs=core.blobs,
                rebuild=row.order.rebuild,
            )
            with core.builder.build(order, self._say, self._cancel) as built:
                self._row = _move(core, self._row, phase=_P.REGISTERING, moved_at=core.clock.now())
                self._say("Registering.\n")
                tools = prepared.recipe.tools or None
                source = FromBuild(built, row.id)
                asked = Registration(source, row.order.source_commit, [order.platform], tools=tools)
                held = register(core, self._actor, self._image(prepared), asked).held
            self._found(held.release.id, built=True)

    def _claim(self) -> Publish:
        """Only as it was when it was looked at: another may have taken it since (`Conflict`)."""
        row = self._row
        now = self._core.clock.now()
        claimed = replace(row, phase=_P.BUILDING, attempt=row.attempt + 1, moved_at=now, revision=row.revision + 1)
        self._core.store.apply(ChangePublish(claimed))
        return claimed

    def _found(self, release: Any, *, built: bool) -> None:
        now = self._core.clock.now()
        self._row = _move(self._core, self._row, phase=_P.CHECKING, release=release, built=built, moved_at=now)

    def _image(self, prepared: Prepared) -> str:
        """The image, made when it is new; description and labels follow its image.toml."""
        core, recipe = self._core, prepared.recipe
        entry = entry_of(core, recipe.name)
        if entry is None:
            create_image(core, self._actor, recipe.name, recipe.description, recipe.labels)
        elif self._row.order.dockerfile is None and (entry.image.description, dict(entry.image.labels)) != (
            recipe.description,
            dict(recipe.labels),
        ):
            change_image(
                core,
                self._actor,
                recipe.name,
                expected_revision=None,
                description=recipe.description,
                labels=recipe.labels,
            )
        return recipe.name

    def _say(self, text: str) -> None:
        self._core.build_logs.add(self._row.id, text)


def _move(core: Core, row: Publish, **changes: Any) -> Publish:
    """Move it on from how it is now. Refuses with `cancelled` when somebody wants its end."""
    for _ in range(_TRIES):
        now = find(core, row.id)
        if now.cancelled_by is not None:
            raise RefusedError(Reason.CANCELLED, CANCELLED.message)
        after = replace(now, **changes, revision=now.revision + 1)
        try:
            core.store.apply(ChangePublish(after))
        except Conflict as conflict:
            if conflict.kind is ConflictKind.TAKEN:
                raise
            continue
        core.changed.set()
        return after
    raise RefusedError(Reason.REVISION_STALE, "it keeps moving; try again")


def _end(core: Core, publish: PublishId, refusal: Refusal, **changes: Any) -> None:
    """The last write: done, cancelled, or failed with what was refused. Repeated until it is made or needless."""
    for _ in range(_TRIES):
        now = find(core, publish)
        if now.phase in FINISHED:
            return
        fault = Fault(refusal.reason, refusal.message, refusal.details)
        phase = _P.CANCELLED if refusal.reason is Reason.CANCELLED or now.cancelled_by is not None else _P.FAILED
        if phase is _P.CANCELLED:
            fault = CANCELLED
        ended = core.clock.now()
        after = replace(now, **changes, phase=phase, fault=fault, ended_at=ended, revision=now.revision + 1)
        told = audit.done(core, SYSTEM, f"publish.{phase}", now.id, {"image": now.image, "reason": fault.reason.value})
        try:
            core.store.apply(ChangePublish(after), told)
        except Conflict:
            continue
        core.changed.set()
        return


def _settle(core: Core, row: Publish) -> None:
    """Checking and promoting: what the release's state means for its publish."""
    owner = None if row.release is None else core.store.read(CatalogOf(releases=frozenset({row.release})))
    found = None if owner is None or row.release is None else owner.owner_of(row.release)
    if found is None:
        _end(core, row.id, Refusal(Reason.INTERNAL, "its release is gone"))
        return
    entry, number = found
    try:
        _towards_done(core, row, entry, entry.releases[number])
    except Conflict:
        return  # something moved meanwhile; the next pass looks again
    except RefusedError as error:
        if error.refusal.reason is not Reason.DATABASE_UNAVAILABLE:
            _end(core, row.id, error.refusal)


def _towards_done(core: Core, row: Publish, entry: ImageEntry, held: ReleaseEntry) -> None:
    state = held.status.state
    if state is ReleaseState.PENDING:
        _check_hope(core, row, entry, held)
        return
    if state in NOT_RUNNABLE:
        raise _rejected(entry, held)
    channel = row.order.promote
    if channel is not None:
        if row.phase is _P.CHECKING:
            row = _move(core, row, phase=_P.PROMOTING, moved_at=core.clock.now())
        pointer = entry.channels.get(channel)
        if pointer is None or pointer.number != held.release.number:
            by = Actor(row.principal, KeyKind.ADMINISTRATOR)
            promote(core, by, entry.image.id, Move(channel, held.release.number, why=f"publish {row.id}"))
    facts = {"release": f"{entry.image.name}:{held.release.number}", "built": row.built}
    after = replace(row, phase=_P.DONE, ended_at=core.clock.now(), revision=row.revision + 1)
    core.store.apply(ChangePublish(after), audit.done(core, SYSTEM, "publish.done", row.id, facts))
    core.changed.set()


def _rejected(entry: ImageEntry, held: ReleaseEntry) -> RefusedError:
    """Why its release may not be chosen: its own fault where it has one."""
    name = f"{entry.image.name}:{held.release.number}"
    fault = held.status.fault
    if fault is None:
        reason, what = NOT_RUNNABLE[held.status.state]
        return RefusedError(reason, f"{name} {what}", details={"release": name})
    return RefusedError(fault.reason, f"{name}: {fault.message}", details={**fault.details, "release": name})


def _check_hope(core: Core, row: Publish, entry: ImageEntry, held: ReleaseEntry) -> None:
    """Whether waiting for a proof makes sense still. The release stays; it may be proved later."""
    name = f"{entry.image.name}:{held.release.number}"
    able = [
        pool.name
        for pool in current_deployment(core).pools
        for variant in held.release.variants
        if pool.platform == variant.platform and pool.provider in variant.providers
    ]
    if not able:
        message = f"{name} is registered, but no pool can run it, so nothing proves it"
        raise RefusedError(Reason.IMAGE_UNSUPPORTED, message, details={"release": name})
    since = row.moved_at or row.created_at
    if core.clock.now() > since + core.settings.proof_wait:
        seconds = core.settings.proof_wait.total_seconds()
        message = f"{name} is registered, but no node has proved it within {seconds:.0f} s"
        raise RefusedError(Reason.TIMED_OUT, message, details={"release": name, "seconds": seconds})
