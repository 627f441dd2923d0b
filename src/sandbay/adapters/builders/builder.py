"""The port `builder` with this host's own tools: mmdebstrap for bare distributions, buildah for Containerfiles."""

import fcntl
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from sandbay.adapters.builders import host
from sandbay.adapters.builders.bootstrap import bootstrap
from sandbay.adapters.builders.bounds import bounded, remove_groups
from sandbay.adapters.builders.buildah import Buildah
from sandbay.adapters.builders.cache import BuildCache
from sandbay.adapters.builders.layout import fetch, write_layout
from sandbay.adapters.builders.process import Tools, cancelled
from sandbay.domain.errors import RefusedError
from sandbay.domain.platform import Platform
from sandbay.domain.publish import Bootstrap
from sandbay.domain.reasons import Reason
from sandbay.engine.durable import make_folder, remove_tree, room
from sandbay.ports.builder import BuildOrder, Say
from sandbay.ports.image_source import ImageSource

_VERSION = "host-1"
"""Raised when the same inputs give other bytes, so that nothing older is taken for theirs."""
_SECONDS = 3600.0
_GONE_SECONDS = 30.0
_LOCK = "lock"


class HostBuilder:
    """`folder` is for what is half made; `cache` keeps what is finished; `open_layout` reads a layout folder."""

    def __init__(
        self,
        folder: Path,
        platform: Platform,
        open_layout: Callable[[Path], ImageSource],
        cache: BuildCache | None = None,
        *,
        seconds: float = _SECONDS,
    ) -> None:
        """Clear away what a killed process left."""
        folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        self._folder, self._platform = folder, platform
        self._open_layout, self._cache, self._seconds = open_layout, cache, seconds
        for left in folder.iterdir():
            _sweep(left)

    @property
    def version(self) -> str:
        """See the port."""
        return _VERSION

    @contextmanager
    def build(self, order: BuildOrder, say: Say, cancel: threading.Event) -> Iterator[ImageSource]:
        """See the port."""
        if order.platform != self._platform:
            message = f"this host builds for {self._platform}, not for {order.platform}"
            raise RefusedError(Reason.PLATFORM_MISMATCH, message, details={"offered": [str(self._platform)]})
        kept = self._cache.find(order.key) if self._cache and not order.rebuild else None
        if kept is not None:
            say("These inputs were built before on this host; taking what they gave.\n")
            yield self._open_layout(kept)
            return
        with self._work() as (work, lock):
            deadline = time.monotonic() + self._seconds
            with bounded(work, say) as bounds:
                self._build(order, Tools(work, {}, say, cancel, deadline, bounds, (lock,)))
            if cancel.is_set():
                raise cancelled()
            if self._cache:
                self._cache.keep(order.key, work / "layout")
            yield self._open_layout(work / "layout")

    def _build(self, order: BuildOrder, tools: Tools) -> None:
        work = tools.folder
        with room():
            context = make_folder(work / "context")
            order.context.unpack(context)
            temp = work / "tmp"
            temp.mkdir()
            temp.chmod(0o1777)
            tools = replace(tools, environment=host.tool_environment(temp))
            blobs = work / "blobs"
            bases = {
                text: bootstrap(base, tools, blobs) if isinstance(base, Bootstrap) else fetch(base, order.blobs, blobs)
                for text, base in order.bases.items()
            }
            image = Buildah(tools).build(order.containerfile, bases, context, blobs, order.platform)
            write_layout(work / "layout", image, order.platform)

    @contextmanager
    def _work(self) -> Iterator[tuple[Path, int]]:
        """A folder for everything half made, gone afterwards whatever happens; and the lock that says it is in use."""
        work = self._folder / secrets.token_hex(8)
        work.mkdir(mode=0o755)  # apt downloads as a user of its own
        work.chmod(0o755)
        with (work / _LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                yield work, lock.fileno()
            finally:
                remove_tree(work)


def _sweep(left: Path) -> None:
    """Remove a work folder once the last of the tools that worked in it is gone, however long it takes to die."""
    deadline = time.monotonic() + _GONE_SECONDS
    with suppress(FileNotFoundError), (left / _LOCK).open("r") as lock:
        while time.monotonic() < deadline:
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.05)
    remove_groups(left)
    remove_tree(left)
