"""The commit records of variants, and verified copies of the documents that they stand on.

records/<hex of content key>.json   written last: before it the variant is not here, after it, it is whole
meta/sha256/<hex>                   manifests and configs, verified again by digest whenever they are read
locks/records                       owned while records or documents are written or removed
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sandbay.domain.canonical import canonical, rebuild
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey
from sandbay.engine.digest import hex_of, read_verified
from sandbay.engine.durable import DAMAGED, make_folder, remove_file, write_file
from sandbay.engine.locks import FileLock


@dataclass(frozen=True, slots=True)
class StoredLayer:
    """One layer of a variant and the tree that holds it."""

    digest: str
    diff_id: str
    key: str
    short: str


@dataclass(frozen=True, slots=True)
class StoredVariant:
    """A variant that was prepared here; layers the lowest first."""

    content_key: str
    platform: str
    artifacts: Mapping[str, str]
    manifest_digest: str
    config_digest: str
    layers: tuple[StoredLayer, ...]


class Records:
    """All records of one store."""

    def __init__(self, root: Path) -> None:
        """Open the store's folders, made private where they are new."""
        make_folder(root)
        self._records = make_folder(root / "records")
        make_folder(root / "meta")
        self._documents = make_folder(root / "meta" / "sha256")
        self._lock = make_folder(root / "locks") / "records"

    def known(self) -> tuple[ContentKey, ...]:
        """The variants that have a record, in a stable order."""
        return tuple(ContentKey(f"sha256:{path.stem}") for path in sorted(self._records.glob("*.json")))

    def read(self, key: ContentKey) -> StoredVariant | None:
        """A variant's record, or None when there is none. Refuses a damaged one with `content_lost`."""
        try:
            stored = rebuild(StoredVariant, json.loads(self._path(key).read_bytes()))
        except FileNotFoundError:
            return None
        except DAMAGED:
            raise lost("its record is damaged") from None
        if stored.content_key != key:
            raise lost("its record is another's")
        return stored

    def used_at(self, key: ContentKey) -> float | None:
        """When `touch` was last called, or else when it was committed, in seconds; None when there is no record."""
        try:
            return self._path(key).stat().st_mtime
        except FileNotFoundError:
            return None

    def touch(self, key: ContentKey) -> None:
        """Note that it is used now. Harmless when there is no record, and when the note is lost."""
        with suppress(FileNotFoundError):
            os.utime(self._path(key))

    def document(self, digest: str) -> bytes:
        """A manifest or config, verified. Refuses with `content_lost`."""
        path = self._documents / hex_of(digest)
        try:
            with path.open("rb") as file:
                return read_verified(file, digest, path.stat().st_size)
        except FileNotFoundError:
            raise lost(f"the document {digest} is gone") from None
        except RefusedError as error:
            raise lost(f"the document {digest} has changed: {error}") from None

    def commit(self, stored: StoredVariant, documents: Mapping[str, bytes], attempt: Path) -> None:
        """Write documents, then the record; `attempt` is a private folder for what is half-written."""
        with FileLock(self._lock) as lock:
            lock.own()
            for digest, data in documents.items():
                write_file(self._documents / hex_of(digest), data, attempt / hex_of(digest))
            write_file(self._path(ContentKey(stored.content_key)), canonical(stored), attempt / "record")

    def remove(self, key: ContentKey) -> None:
        """Remove a record, then the documents that no other record names. Repeating it is harmless."""
        with FileLock(self._lock) as lock:
            lock.own()
            remove_file(self._path(key))
            self._drop_documents()

    def sweep(self) -> None:
        """Remove documents that a crash left without a record."""
        with FileLock(self._lock) as lock:
            lock.own()
            self._drop_documents()

    def layer_keys(self) -> frozenset[str]:
        """The trees that records name. A damaged record names none."""
        return frozenset(layer.key for stored in self._readable() for layer in stored.layers)

    def _drop_documents(self) -> None:
        named = {digest for s in self._readable() for digest in (s.manifest_digest, s.config_digest)}
        for path in self._documents.iterdir():
            if f"sha256:{path.name}" not in named:
                remove_file(path)

    def _readable(self) -> Iterator[StoredVariant]:
        for key in self.known():
            try:
                stored = self.read(key)
            except RefusedError:
                continue
            if stored is not None:
                yield stored

    def _path(self, key: ContentKey) -> Path:
        return self._records / f"{hex_of(key)}.json"


def lost(why: str, **facts: object) -> RefusedError:
    """The refusal for bytes that were here and are not whole any more."""
    return RefusedError(Reason.CONTENT_LOST, f"what the node held of it is damaged: {why}", details=facts)
