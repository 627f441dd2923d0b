"""The trees of single layers: made once however many ask, shared by all images that have the layer.

    staging/<attempt>/   locked by its maker; gone with it, or swept when no living maker has it locked
    l/<short>/           the tree; locked by its maker until its record stands
    l/<short>.<any>/     what a damaged tree is called: whoever has it mounted keeps it until the next start
    layers/<hex>.json    the record; a tree without one is not there
    locks/<hex>          shared by every prepare that counts on the layer, owned while it is made or removed

Order when making: unpack, `syncfs`, name the tree, write the record. When removing: record, then tree.
"""

import json
import os
import re
import secrets
import string
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from time import sleep

from sandbay.domain.canonical import plain, rebuild, sha256
from sandbay.engine import linux
from sandbay.engine.digest import hex_of
from sandbay.engine.durable import DAMAGED, make_folder, remove_file, remove_tree, room, sync_folder, write_file
from sandbay.engine.locks import FileLock
from sandbay.engine.lower import Needs
from sandbay.engine.media import Compression
from sandbay.engine.metadata import is_opaque
from sandbay.engine.unpack import Unpacked

_SHORT = 8
_LETTERS = string.digits + string.ascii_lowercase
_SHORT_NAME = re.compile(rf"[{_LETTERS}]{{{_SHORT}}}")
_PAUSE = 0.05


class LayerKind(StrEnum):
    """What a tree is keyed by: its own tar, or the tars of the whole chain up to it."""

    DIFF = "diff"
    CHAIN = "chain"


@dataclass(frozen=True, slots=True)
class Proof:
    """A blob that, decoded as `compression`, was seen to be the tar of a tree."""

    digest: str
    size: int
    compression: Compression


@dataclass(frozen=True, slots=True)
class LayerRecord:
    """One tree that is here whole. `entries` and `bytes` (of files, unpacked) are the unpacker's count.

    `proofs` keep an image from being taken at its word: that its blob is the tar of a tree that happens to be
    here is believed only once it has been seen.
    """

    key: str
    kind: LayerKind
    short: str
    diff_id: str
    entries: int
    bytes: int
    needs: Needs
    proofs: tuple[Proof, ...]


@dataclass(frozen=True, slots=True)
class LayerOrder:
    """Which tree is asked for, and how it is made: `make` makes the folder and fills it, or refuses."""

    key: str
    kind: LayerKind
    diff_id: str
    proof: Proof
    make: Callable[[Path], Unpacked]


class LayerTrees:
    """All trees of one store."""

    def __init__(self, root: Path) -> None:
        """Open the store's folders, made private where they are new."""
        make_folder(root)
        self.trees = make_folder(root / "l")
        self._staging = make_folder(root / "staging")
        self._records = make_folder(root / "layers")
        self._locks = make_folder(root / "locks")

    def known(self) -> tuple[str, ...]:
        """The keys that have a record, in a stable order."""
        return tuple(f"sha256:{path.stem}" for path in sorted(self._records.glob("*.json")))

    def record(self, key: str) -> LayerRecord | None:
        """The tree of this key if it is here. A record that is damaged or whose tree is gone counts for nothing."""
        record = self._read(key)
        return record if record is not None and self.tree(record).is_dir() else None

    def tree(self, record: LayerRecord) -> Path:
        """Where a tree stands."""
        return self.trees / record.short

    def claim(self, order: LayerOrder, claims: ExitStack) -> LayerRecord:
        """The tree that is asked for, made here if nobody has made it. It is not removed while `claims` is open.

        A lock is let go as soon as making has failed: two that give up may each wait for the other's layer.
        """
        with ExitStack() as held:
            record = self._claimed(order, held.enter_context(FileLock(self._locks / hex_of(order.key))))
            claims.push(held.pop_all())
            return record

    def _claimed(self, order: LayerOrder, lock: FileLock) -> LayerRecord:
        while True:
            lock.share()
            record = self.record(order.key)
            if record is not None:
                return record
            if not lock.try_own():
                # Whoever is making it is waited for above; this pause is for those who merely count on it.
                sleep(_PAUSE)
            elif self.record(order.key) is None:
                self._make(order)

    def claim_present(self, key: str, claims: ExitStack) -> LayerRecord | None:
        """The tree of this key if it is here, kept while `claims` is open."""
        with ExitStack() as held:
            held.enter_context(FileLock(self._locks / hex_of(key))).share()
            record = self.record(key)
            if record is not None:
                claims.push(held.pop_all())
            return record

    def add_proof(self, record: LayerRecord, proof: Proof) -> LayerRecord:
        """Note that one more blob is the tar of a claimed tree. Of two notes at once one may be lost."""
        proved = replace(record, proofs=(*record.proofs, proof))
        with room(), self.attempt() as attempt:
            self._write(proved, attempt / "record")
        return proved

    def condemn(self, record: LayerRecord) -> None:
        """Take a claimed tree that is damaged out of sight: it counts for nothing any more, and is made anew."""
        with suppress(FileNotFoundError):
            self.tree(record).rename(self.trees / f"{record.short}.{secrets.token_hex(4)}")
        sync_folder(self.trees)

    def drop_unless(self, needed: Callable[[], frozenset[str]]) -> None:
        """Remove the trees whose keys are not `needed` and that no prepare counts on."""
        kept = needed()
        for path in list(self._records.glob("*.json")):
            key = f"sha256:{path.stem}"
            if key not in kept:
                with FileLock(self._locks / path.stem) as lock:
                    # Asked again: between the question and the lock a prepare may have finished.
                    if lock.try_own() and key not in needed():
                        self._drop(key)

    def sweep(self, mounted: Collection[str] = ()) -> None:
        """Remove what a crash left: staging folders, trees without a record, records without a tree.

        `mounted` are the short names under which sandboxes that live have their trees: damaged ones stay for them,
        and their names are kept for what takes their place.
        Whole layers of a prepare that never finished stay: the prepare that is tried again takes them, and the
        next one that ends, of whatever image, drops them if nobody has.
        """
        for attempt in self._staging.iterdir():
            self._remove_unlocked(attempt, lambda _: False)
        for path in self._records.glob("*.json"):
            with FileLock(self._locks / path.stem) as lock:
                if lock.try_own() and self._is_void(f"sha256:{path.stem}", mounted):
                    self._drop(f"sha256:{path.stem}")
        recorded = self._recorded()
        for tree in self.trees.iterdir():
            if tree.name not in recorded and tree.name.partition(".")[0] not in mounted:
                self._remove_unlocked(tree, lambda path: path.name in self._recorded())

    @contextmanager
    def attempt(self) -> Iterator[Path]:
        """A private folder in the store's file system that ends with the block."""
        with ExitStack() as held:
            path = self._begin(held)
            try:
                yield path
            finally:
                remove_tree(path)

    def _begin(self, held: ExitStack) -> Path:
        while True:
            path = self._staging / secrets.token_hex(8)
            path.mkdir(mode=0o700)
            lock = FileLock(path, folder=True)
            lock.own()
            # A sweep may have come between; then this lock is on a folder that is gone.
            if path.is_dir():
                held.callback(lock.close)
                return path
            lock.close()

    def _make(self, order: LayerOrder) -> None:
        with room(), self.attempt() as attempt, ExitStack() as held:
            into = attempt / "tree"
            unpacked = order.make(into)
            held.enter_context(FileLock(into, folder=True)).own()
            self._sync()
            short = self._short(order.key)
            into.rename(self.trees / short)
            try:
                sync_folder(self.trees)
                self._commit(order, short, unpacked, attempt / "record")
            except BaseException:
                (self.trees / short).rename(into)
                raise

    def _commit(self, order: LayerOrder, short: str, unpacked: Unpacked, temporary: Path) -> None:
        record = LayerRecord(
            key=order.key,
            kind=order.kind,
            short=short,
            diff_id=order.diff_id,
            entries=unpacked.entries,
            bytes=unpacked.bytes,
            needs=unpacked.needs,
            proofs=(order.proof,),
        )
        self._write(record, temporary)

    def _write(self, record: LayerRecord, temporary: Path) -> None:
        # Names are any bytes, as surrogate escapes: ASCII JSON carries them.
        write_file(self._record_path(record.key), json.dumps(plain(record)).encode(), temporary)

    def _read(self, key: str) -> LayerRecord | None:
        try:
            record = rebuild(LayerRecord, json.loads(self._record_path(key).read_bytes()))
        except FileNotFoundError:
            return None
        except DAMAGED:
            return None
        return record if record.key == key and _SHORT_NAME.fullmatch(record.short) else None

    def _sync(self) -> None:
        fd = os.open(self.trees, os.O_RDONLY | os.O_DIRECTORY)
        try:
            linux.syncfs(fd)
        finally:
            os.close(fd)

    def _short(self, key: str) -> str:
        """A free name; that of the tree whose place this one takes, since sandboxes that live are known by it."""
        former = self._read(key)
        if former is not None and not os.path.lexists(self.tree(former)):
            return former.short
        while True:
            short = "".join(secrets.choice(_LETTERS) for _ in range(_SHORT))
            if not os.path.lexists(self.trees / short):
                return short

    def _drop(self, key: str) -> None:
        record = self.record(key)
        remove_file(self._record_path(key))
        if record is not None:
            self._remove(self.tree(record))

    def _is_void(self, key: str, mounted: Collection[str]) -> bool:
        """Whether a record says nothing that anybody needs."""
        read = self._read(key)
        return read is None or (self.record(key) is None and read.short not in mounted)

    def _remove_unlocked(self, folder: Path, needed: Callable[[Path], bool]) -> None:
        with suppress(FileNotFoundError, NotADirectoryError), FileLock(folder, folder=True) as lock:
            if lock.try_own() and not needed(folder):
                self._remove(folder)

    def _remove(self, folder: Path) -> None:
        """Take a folder out of sight at once, then remove what is in it."""
        with self.attempt() as attempt:
            folder.rename(attempt / "removed")

    def _recorded(self) -> set[str]:
        records = (self.record(f"sha256:{path.stem}") for path in self._records.glob("*.json"))
        return {record.short for record in records if record is not None}

    def _record_path(self, key: str) -> Path:
        return self._records / f"{hex_of(key)}.json"


def chain_keys(diff_ids: Sequence[str]) -> list[str]:
    """The key at each position, the lowest first, of a tree that was unpacked over all below it.

    It is the chain id; but the lowest layer's chain id is its diff id, and even there the tree over nothing can
    be another one than the tree by itself.
    """
    keys: list[str] = []
    chain = ""
    for diff_id in diff_ids:
        key = sha256(f"{chain} {diff_id}".encode())
        chain = key if chain else diff_id
        keys.append(key)
    return keys


def shown(trees: Iterable[Path]) -> Iterator[Path]:
    """Of trees from the top down, those that an overlay has to show: each once, none below an opaque root.

    A tree that occurs again further down adds nothing to its upper occurrence, and overlayfs refuses it; at a
    layer's root overlayfs ignores the opaque mark.
    """
    for tree in dict.fromkeys(trees):
        yield tree
        fd = os.open(tree, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if is_opaque(fd):
                return
        finally:
            os.close(fd)
