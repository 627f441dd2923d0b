"""Look at every byte of an image again: its blobs in the installation's store, then what nodes made of them.

What a node finds damaged it reports as lost by itself (`app.nodes`), and fetches it again; here it is only told. The
blobs come first, because nodes compare with them: a damaged one tells nothing of a node's tree.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sandbay.app import audit
from sandbay.app.core import Actor, Core
from sandbay.app.holdings import Holding, holdings, targets
from sandbay.app.images import find_image, find_release
from sandbay.app.retry import blobs_are_whole
from sandbay.domain.catalog import ImageEntry
from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.readiness import ReadinessState
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Fault, Variant
from sandbay.domain.verification import Seen, SeenBlob, SeenOnNode, Verification

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Looked:
    """How far it is, in bytes of blobs: those of the store once, and once more for each node that compares."""

    bytes_done: int
    bytes_total: int


def verify(
    core: Core,
    actor: Actor,
    name_or_id: str,
    number: int | None,
    node: str | None,
    progress: Callable[[Looked], None] = lambda _: None,
) -> Verification:
    """Look at a release or at all of an image, on one node or on all that have it ready.

    Nothing here is repaired; what nodes failed on and is whole now they are told to try again.
    """
    entry = find_image(core, name_or_id)
    if number is not None:
        find_release(entry, number)
    wanted = {it.id for it in targets(core, node)}
    blobs = _blobs(entry, number)
    cells = [cell for cell in holdings(core, entry) if cell.node.id in wanted and _is_asked(cell, number)]
    looking = _Looking(core, entry, progress, sum(blob.size for blob in blobs))
    looking.expect(cells)
    seen = Verification(tuple(map(looking.blob, blobs)), tuple(map(looking.cell, cells)))
    core.store.apply(audit.done(core, actor, "image.verify", entry.image.id, _facts(entry, seen)))
    blobs_are_whole(core, actor, {blob.digest for blob in seen.blobs if blob.seen is Seen.WHOLE}, "verified")
    return seen


def _is_asked(cell: Holding, number: int | None) -> bool:
    return cell.readiness.state is ReadinessState.READY and number in (None, cell.number)


def _facts(entry: ImageEntry, seen: Verification) -> dict[str, object]:
    return {
        "image": entry.image.name,
        "seen": seen.seen.value,
        "blobs": [blob.digest for blob in seen.blobs if blob.seen is Seen.DAMAGED],
        "nodes": [{"node": it.node, "release": it.number} for it in seen.nodes if it.seen is Seen.DAMAGED],
    }


def _blobs(entry: ImageEntry, number: int | None) -> Sequence[SeenBlob]:
    """Every blob of the asked releases, once; of releases without bytes of ours there are none."""
    needed: dict[tuple[str, int], list[int]] = {}
    for held in entry.releases.values():
        if number in (None, held.release.number):
            for variant in held.release.variants:
                for blob in variant.blobs:
                    needed.setdefault(blob, []).append(held.release.number)
    return [SeenBlob(digest, size, tuple(dict.fromkeys(numbers))) for (digest, size), numbers in needed.items()]


class _Looking:
    """The looking itself, and how far it is."""

    def __init__(self, core: Core, entry: ImageEntry, progress: Callable[[Looked], None], total: int) -> None:
        self._core, self._progress = core, progress
        self._variants = {v.content_key: v for held in entry.releases.values() for v in held.release.variants}
        self._done, self._total = 0, total

    def expect(self, cells: Sequence[Holding]) -> None:
        """So much more is to be looked at."""
        self._total += sum(_compared(self._variants[cell.key]) for cell in cells)
        self._progress(Looked(0, self._total))

    def blob(self, blob: SeenBlob) -> SeenBlob:
        """Read a blob to its end."""
        before = self._done
        refusal = self._wrong(blob)
        self._done = before
        self._read(blob.size)
        return blob if refusal is None else replace(blob, fault=_fault(refusal))

    def cell(self, cell: Holding) -> SeenOnNode:
        """Have the node compare."""
        seen = SeenOnNode(cell.node.id, cell.node.name, cell.number, cell.key)
        variant, before = self._variants[cell.key], self._done
        try:
            self._core.link.reach(cell.node.id).verify(variant, self._read)
        except RefusedError as error:
            seen = replace(seen, fault=_fault(error.refusal))
        self._done = before
        self._read(_compared(variant))
        return seen

    def _wrong(self, blob: SeenBlob) -> Refusal | None:
        found, size = hashlib.sha256(), 0
        try:
            with self._core.blobs.open(blob.digest) as file:
                while chunk := file.read(_CHUNK):
                    found.update(chunk)
                    size += len(chunk)
                    self._read(len(chunk))
        except RefusedError as error:
            return error.refusal
        except OSError as error:
            return Refusal(Reason.DIGEST_MISMATCH, f"the blob {blob.digest} cannot be read: {error.strerror}")
        facts = {"digest": blob.digest, "size": blob.size, "found": size}
        if size != blob.size:
            return Refusal(
                Reason.SIZE_MISMATCH, f"{blob.digest} has {size} bytes instead of {blob.size}", details=facts
            )
        digest = f"sha256:{found.hexdigest()}"
        if digest != blob.digest:
            facts = {"digest": blob.digest, "found": digest}
            return Refusal(Reason.DIGEST_MISMATCH, f"the bytes of {blob.digest} are those of {digest}", details=facts)
        return None

    def _read(self, count: int) -> None:
        self._done = min(self._done + count, self._total)
        self._progress(Looked(self._done, self._total))


def _compared(variant: Variant) -> int:
    """Bytes of blobs that a node reads to compare: each layer once."""
    return sum({layer.digest: layer.size for layer in variant.layers}.values())


def _fault(refusal: Refusal) -> Fault:
    return Fault(refusal.reason, refusal.message, refusal.details)
