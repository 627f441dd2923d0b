"""The trees of one image's layers: made side by side, and once more over its parents where that gives another."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import BoundedSemaphore

from sandbay.domain.release import Layer
from sandbay.engine.layer_feed import prove_layer, unpack_layer
from sandbay.engine.layers import LayerKind, LayerOrder, LayerRecord, LayerTrees, Proof, chain_keys, shown
from sandbay.engine.limits import Limits
from sandbay.engine.lower import needs_lower_view
from sandbay.engine.manifest import check_limit
from sandbay.engine.media import LAYERS
from sandbay.engine.meter import Meter
from sandbay.engine.unpack import Unpacked
from sandbay.ports.blobs import Blobs

_AT_ONCE = 3
"""Layers that are unpacked side by side, each by a thread here and a child: enough for two or three cores."""
_COMMITTING = 2
"""Beside those, layers that wait for the disk: the next ones are unpacked meanwhile."""


class LayerChain:
    """One prepare's work on layers. What it claims is kept until `claims` closes."""

    def __init__(self, trees: LayerTrees, blobs: Blobs, limits: Limits, meter: Meter, claims: ExitStack) -> None:
        """Take where trees are kept and blobs come from, and whom to tell."""
        self._trees, self._blobs, self._limits = trees, blobs, limits
        self._meter, self._claims = meter, claims
        self._unpacking = BoundedSemaphore(_AT_ONCE)

    def build(self, layers: Sequence[Layer]) -> list[LayerRecord]:
        """The tree of each layer, the lowest first. Refuses with what is wrong with the lowest layer at fault."""
        chains = chain_keys([layer.diff_id for layer in layers])
        standing = [self._trees.claim_present(key, self._claims) for key in chains]
        alone = self._side_by_side([layer for layer, tree in zip(layers, standing, strict=True) if tree is None])
        built: list[LayerRecord] = []
        for layer, key, tree in zip(layers, chains, standing, strict=True):
            if tree is None:
                built.append(self._settled(layer, key, alone[layer.diff_id], built))
            else:
                built.append(self._proved(tree, layer))
        check_limit("unpacked_bytes", sum(tree.bytes for tree in built), self._limits.unpacked_bytes)
        check_limit("entries", sum(tree.entries for tree in built), self._limits.entries)
        return built

    def _side_by_side(self, layers: Sequence[Layer]) -> dict[str, LayerRecord]:
        """A tree per diff id, largest blobs first. After a failure nothing more is begun."""
        same: dict[str, list[Layer]] = {}
        for layer in dict.fromkeys(layers):
            same.setdefault(layer.diff_id, []).append(layer)
        largest = sorted(same.values(), key=lambda group: -group[0].size)
        futures: dict[str, Future[LayerRecord]] = {}
        with ThreadPoolExecutor(_AT_ONCE + _COMMITTING, thread_name_prefix="layer") as pool:
            for group in largest:
                futures[group[0].diff_id] = pool.submit(self._by_itself, group)
            wait(futures.values(), return_when=FIRST_EXCEPTION)
            for future in futures.values():
                future.cancel()
        return {diff_id: futures[diff_id].result() for diff_id in same if not futures[diff_id].cancelled()}

    def _by_itself(self, same: Sequence[Layer]) -> LayerRecord:
        """The tree of layers that claim one diff id, with nothing below it in view; every blob is proved."""
        first = same[0]
        tree = self._claim(first, first.diff_id, LayerKind.DIFF, None)
        for layer in same:
            tree = self._proved(tree, layer)
        return tree

    def _settled(self, layer: Layer, chain: str, tree: LayerRecord, below: Sequence[LayerRecord]) -> LayerRecord:
        """The tree to use at this place in the chain."""
        lowers = list(shown(self._trees.tree(lower) for lower in reversed(below)))
        if not needs_lower_view(tree.needs, lowers):
            return tree
        return self._proved(self._claim(layer, chain, LayerKind.CHAIN, lowers), layer)

    def _claim(self, layer: Layer, key: str, kind: LayerKind, lowers: Sequence[Path] | None) -> LayerRecord:
        make = partial(self._unpack, layer, lowers)
        return self._trees.claim(LayerOrder(key, kind, layer.diff_id, _proof(layer), make), self._claims)

    def _unpack(self, layer: Layer, lowers: Sequence[Path] | None, into: Path) -> Unpacked:
        told = self._told(layer)
        with self._unpacking:
            return unpack_layer(self._blobs, layer, into, lowers=lowers, limits=self._limits, told=told)

    def _proved(self, tree: LayerRecord, layer: Layer) -> LayerRecord:
        """Whether a tree was already here never changes what is said of the blob."""
        if _proof(layer) not in tree.proofs:
            prove_layer(self._blobs, layer, limits=self._limits, told=self._told(layer))
            tree = self._trees.add_proof(tree, _proof(layer))
        self._meter.finish(layer.digest)
        return tree

    def _told(self, layer: Layer) -> Callable[[int], None]:
        return partial(self._meter.read, layer.digest)


def _proof(layer: Layer) -> Proof:
    return Proof(layer.digest, layer.size, LAYERS[layer.media_type])
