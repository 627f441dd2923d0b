"""Which images are built, in which order, and what is taken from the cache."""

import contextlib
import dataclasses
import fcntl
import io
import os
import pathlib
import shutil
import tempfile
import time
from collections.abc import Iterator

from images.building import bootstrap, containerfile, recipe
from images.building.host import BuildError, say
from images.building.layout import Image, add_layer, read_layout, replace_folder, small_tar, write_layout

REVISION_LABEL = "sandbay.image.revision"


@dataclasses.dataclass(frozen=True, slots=True)
class Finished:
    """An image as built and cached, before its revision is stamped on it."""

    digest: str
    image: Image
    layout: pathlib.Path
    suite: str


class Builder:
    """Builds images into `out`, each once, bases first. Holds a lock on `out` while it is entered."""

    def __init__(self, out: pathlib.Path, *, force: bool) -> None:
        self._out = out
        self._cache = out / ".cache"
        self._force = force
        self._finished: dict[str, Finished] = {}

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other builds out of the same folder, and clear away what a killed one left."""
        self._cache.mkdir(parents=True, exist_ok=True)
        with (self._cache / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say(f"waiting for another build in {self._out}")
                fcntl.flock(lock, fcntl.LOCK_EX)
            # The tools inherit it: even when this process is killed, the folder is free only after the last of them.
            os.set_inheritable(lock.fileno(), True)  # noqa: FBT003 - its only parameter
            for left in self._cache.glob("work-*"):
                shutil.rmtree(left)
            yield

    def publish(self, name: str, revision: int) -> None:
        """Build `name` where needed and put its layout, stamped with the revision, into `out/<name>`."""
        finished = self._finish(name, ())
        place = self._out / name
        with self._work() as work:
            digest = stamped_layout(name, finished, revision, work)
            if _holds(place, digest):
                say(f"{name}: unchanged, {digest}")
                return
            replace_folder(work / "layout", place, work / "old")
        size = sum(layer.size for layer in finished.image.layers)
        say(f"{name}: {place}, {_megabytes(size)} in layers, {digest}")

    def _finish(self, name: str, above: tuple[str, ...]) -> Finished:
        """Return the image from the cache, or build it and its bases."""
        if name in above:
            raise BuildError(f"{' → '.join((*above, name))}: an image cannot stand on itself")
        if name not in self._finished:
            wanted = recipe.load(name)
            parent = None if wanted.parent is None else self._finish(wanted.parent, (*above, name))
            self._finished[name] = self._from_cache_or_built(wanted, parent)
        return self._finished[name]

    def _from_cache_or_built(self, wanted: recipe.Recipe, parent: Finished | None) -> Finished:
        suite = parent.suite if parent else wanted.suite or ""
        key = recipe.content_key(wanted, parent.digest if parent else None)
        place = self._cache / f"{wanted.name}-{key[:16]}"
        if place.exists() and not self._force:
            try:
                return Finished(*read_layout(place), place, suite)
            except BuildError as damage:
                say(f"{wanted.name}: the cache is of no use, building again: {damage}")
        log = self._cache / f"{wanted.name}.log"
        log.write_bytes(b"")
        with self._work() as work:
            image = _build(wanted, parent, suite, work, log)
            write_layout(work / "layout", wanted.name, image)
            for older in self._cache.glob(f"{wanted.name}-*"):
                shutil.rmtree(older)
            replace_folder(work / "layout", place, work / "old")
        return Finished(*read_layout(place), place, suite)

    @contextlib.contextmanager
    def _work(self) -> Iterator[pathlib.Path]:
        """Give a folder for everything half-made; it is gone afterwards, whatever happens."""
        work = pathlib.Path(tempfile.mkdtemp(prefix="work-", dir=self._cache))
        work.chmod(0o755)  # apt downloads as a user of its own
        try:
            yield work
        finally:
            shutil.rmtree(work)


def _build(wanted: recipe.Recipe, parent: Finished | None, suite: str, work: pathlib.Path, log: pathlib.Path) -> Image:
    start = time.monotonic()
    if parent is None:
        say(f"{wanted.name}: bootstrapping Debian {suite}, about a minute (log: {log})")
        image = bootstrap.build(wanted, suite, work, log)
    else:
        say(f"{wanted.name}: building on {wanted.parent}, about a minute (log: {log})")
        image = containerfile.build(wanted, suite, parent.image, parent.layout, work, log)
    known = {layer.digest for layer in parent.image.layers} if parent else set()
    new = sum(layer.size for layer in image.layers if layer.digest not in known)
    say(f"{wanted.name}: built in {time.monotonic() - start:.0f} s, {_megabytes(new)} of new layers")
    return image


def stamped_layout(name: str, finished: Finished, revision: int, work: pathlib.Path) -> str:
    """Write the layout of one revision to `work/layout`: a label, and a tiny layer with /etc/<name>-revision.

    A bootstrapped image has no revisions and is written as it is.
    """
    image = finished.image
    if recipe.load(name).parent is not None:
        blobs = work / "blobs"
        blobs.mkdir()
        for layer in image.layers:
            hexdigest = layer.digest.removeprefix("sha256:")
            os.link(image.folder / hexdigest, blobs / hexdigest)
        content = small_tar(f"etc/{name}-revision", f"{revision}\n".encode())
        layer = add_layer(io.BytesIO(content), blobs, f"revision {revision}")
        labels = {**(image.config.get("Labels") or {}), REVISION_LABEL: str(revision)}
        image = Image(blobs, (*image.layers, layer), {**image.config, "Labels": labels})
    return write_layout(work / "layout", name, image)


def _holds(place: pathlib.Path, digest: str) -> bool:
    try:
        return read_layout(place)[0] == digest
    except BuildError:
        return False


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
