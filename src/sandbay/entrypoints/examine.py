"""`sandbay doctor`: what this host has for an installation, without one being up."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.adapters.builders import bootstrap, buildah
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.engine.state import look
from sandbay.entrypoints.providers import node_home, open_provider
from sandbay.entrypoints.settings import Settings
from sandbay.ports.provider import Finding

_ENOUGH = 5 * 1024**3
_GIB = 1024**3


def examine(settings: Settings) -> Sequence[Finding]:
    """What the provider says of the host, in folders that are gone afterwards, and what the rest of us needs."""
    nodes = [finding for kind in settings.providers for finding in _provider(settings, kind)]
    stores = [finding for kind in settings.providers for finding in _store(settings, kind)]
    return [*nodes, *_home(settings.home), *stores, _builder()]


def _provider(settings: Settings, kind: str) -> Sequence[Finding]:
    if os.geteuid() != 0:
        says = "this process is not root, so most cannot be looked at"
        return [
            Finding("root", ok=False, says=says, reason=Reason.HOST_UNFIT, do="run it with sudo: sudo sandbay doctor")
        ]
    base = settings.home if settings.home.is_dir() else Path("/var/tmp")  # noqa: S108 - a private folder in it
    with tempfile.TemporaryDirectory(prefix="doctor-", dir=base) as folder:
        home = Path(folder)
        home.chmod(0o711)
        scratch = replace(settings, home=home / "home", run=home / "run")
        try:
            provider = open_provider(scratch, kind, FolderBlobs(home / "blobs"), "ins_doctor")
        except RefusedError as error:
            do = "leave SANDBAY_RUNTIME out, or name one that sandbay doctor then says could be used"
            return [Finding("runtimes", ok=False, says=error.refusal.message, reason=error.refusal.reason, do=do)]
        try:
            return provider.check()
        finally:
            provider.close()


def _home(home: Path) -> Iterator[Finding]:
    """Sandboxes run as other users, who have to pass every folder above their files; images take room."""
    there = next(folder for folder in (home, *home.parents) if folder.is_dir())
    closed = [str(folder) for folder in (there, *there.parents) if not folder.stat().st_mode & 0o001]
    if closed:
        says = f"{home}: sandboxes cannot pass {', '.join(closed)}"
        do = "set SANDBAY_HOME to a folder that every user may pass, as /var/lib/sandbay"
        yield Finding("home", ok=False, says=says, reason=Reason.HOST_UNFIT, do=do)
    else:
        yield Finding("home", ok=True, says=f"{home} can be passed by sandboxes")
    free = shutil.disk_usage(there).free
    says = f"{free / _GIB:.1f} GiB are free in {there}"
    do = "" if free >= _ENOUGH else "make room, or set SANDBAY_HOME to a larger disk"
    yield Finding("room", ok=free >= _ENOUGH, says=says, fatal=False, do=do)


def _store(settings: Settings, kind: str) -> Iterator[Finding]:
    """A node's images as they lie there: whole or not, and how much of what they may take."""
    root = node_home(settings, kind) / "store"
    state = look(root) if os.access(settings.home, os.R_OK | os.X_OK) and os.access(root, os.R_OK) else None
    if state is None:
        return
    says = f"{state.variants} releases in {state.trees} layers"
    if state.leftover:
        says += f"; {state.leftover} leftovers, of prepares under way or of a crash: the next start sweeps the latter"
    broken = state.torn + state.lost
    do = "run sandbay images verify, or start again: what is damaged is fetched again" if broken else ""
    says += f"; {state.lost} releases and {state.torn} layers are not whole any more" if broken else ""
    yield Finding("store", ok=not broken, says=says, fatal=False, do=do)
    usage = shutil.disk_usage(root)
    marks = settings.store_budget.marks(state.used, usage.free, usage.total)
    used, budget, high = (f"{size / _GIB:.1f} GiB" for size in (state.used, marks.budget, marks.high))
    says = f"images take {used} of {budget}; above {high} the longest unused go"
    over = state.used > marks.high
    do = "sandbay images df shows what keeps them; SANDBAY_STORE_BUDGET grants more" if over else ""
    yield Finding("budget", ok=not over, says=says, fatal=False, do=do)


def _builder() -> Finding:
    needed = {**buildah.PROGRAMS, **bootstrap.PROGRAMS}
    missing = sorted({package for program, package in needed.items() if shutil.which(program) is None})
    if missing:
        says, do = f"images cannot be built here: no {', '.join(missing)}", f"apt-get install {' '.join(missing)}"
        return Finding("builder", ok=False, says=says, fatal=False, do=do)
    return Finding("builder", ok=True, says="images can be built here (buildah, mmdebstrap)")
