"""What tests of the layer store share."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.adapters.image_source.layout import FolderTree, LayoutSource
from sandbay.domain.errors import RefusedError
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Variant
from sandbay.engine.limits import Limits
from sandbay.engine.store import LayerStore
from sandbay.ports.blobs import Blobs
from sandbay.ports.image_source import Wanted
from sandbay.ports.provider import PrepareProgress

FIXTURES = Path(__file__).parents[1] / "fixtures" / "images"
AMD64 = "linux/amd64"
NOTHING = {"staging": 0, "l": 0, "layers": 0, "records": 0, "meta/sha256": 0}


class CountingBlobs:
    """Blobs that remember which of them were read."""

    def __init__(self, inner: Blobs) -> None:
        self.inner = inner
        self.opened: list[str] = []

    def has(self, digest: str) -> bool:
        return self.inner.has(digest)

    def put(self, digest: str, size: int, chunks: Iterable[bytes]) -> None:
        self.inner.put(digest, size, chunks)

    def open(self, digest: str) -> BinaryIO:
        self.opened.append(digest)
        return self.inner.open(digest)

    def pieced(self, digest: str) -> bool:
        return self.inner.pieced(digest)

    def size(self, digest: str) -> int:
        return self.inner.size(digest)


class Host:
    """A blob store and a layer store in one scratch folder."""

    def __init__(self, scratch: Path, limits: Limits | None = None) -> None:
        self.root = scratch / "store"
        self.folder = scratch / "blobs"
        self.limits = limits
        self.blobs = CountingBlobs(FolderBlobs(self.folder))
        self.store = self.restarted()

    def restarted(self) -> LayerStore:
        """What a new process sees."""
        store = LayerStore(self.root, self.blobs, self.limits)
        store.sweep()
        return store

    def register(self, layout: Path, tag: str | None = None) -> Variant:
        wanted = Wanted([Platform("linux", "amd64")], tag)
        (variant,) = LayoutSource(lambda: FolderTree(layout)).read(wanted, self.blobs, lambda *_: None)
        return variant

    def verdict(self, variant: Variant) -> Reason | None:
        try:
            self.store.prepare(variant, ignore)
        except RefusedError as error:
            return error.refusal.reason
        return None

    def count(self) -> dict[str, int]:
        """How much is in each folder of the store."""
        return {name: len(names(self.root / name)) for name in NOTHING}

    def blob_path(self, digest: str) -> Path:
        return self.folder / digest.replace(":", "/")

    def content(self, variant: Variant, name: str) -> bytes | None:
        """A file of a prepared image, found from the top down; enough where no whiteout hides it."""
        record = self.store.verified(variant.content_key)
        for lower in record.lowers:
            path = record.layers_folder / lower / name
            if os.path.lexists(path):
                return path.read_bytes()
        return None

    def check_whole(self) -> None:
        """Nothing half-made, and everything that is recorded there."""
        records = [json.loads(path.read_bytes()) for path in (self.root / "layers").iterdir()]
        assert sorted(record["short"] for record in records) == names(self.root / "l")
        assert names(self.root / "staging") == []
        assert len(self.store.held()) == len(names(self.root / "records"))


def ignore(progress: PrepareProgress) -> None:
    """For whoever does not look."""


def names(folder: Path) -> list[str]:
    """What is in a folder."""
    return sorted(path.name for path in folder.iterdir())
