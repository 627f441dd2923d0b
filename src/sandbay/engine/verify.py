"""Looking at every byte of an image that was prepared: each tree has to be what its blob unpacks to.

A layer's blob is read from the installation's store, judged as at the first time, and unpacked beside the tree; then
the two are compared. So no sum has to be kept that could be damaged itself, and the answer goes back to the digests
that the release is frozen with. It takes the room of one layer for a while.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from sandbay.domain.errors import RefusedError
from sandbay.domain.release import Layer
from sandbay.engine.compare import first_difference
from sandbay.engine.durable import room
from sandbay.engine.layer_feed import Told, unpack_layer
from sandbay.engine.layers import LayerKind, LayerRecord, LayerTrees, shown
from sandbay.engine.limits import Limits
from sandbay.engine.records import StoredLayer, lost
from sandbay.ports.blobs import Blobs


@dataclass(frozen=True)
class Verifier:
    """The trees of one store, and where their blobs are read again."""

    trees: LayerTrees
    blobs: Blobs
    limits: Limits

    def verify(self, layers: Sequence[Layer], stored: Sequence[StoredLayer], told: Told) -> None:
        """Look at an image's trees, the lowest first. A damaged one is taken out of sight.

        Refuses with `content_lost` (details: `layers`, each with what is wrong), or else with what kept the first
        layer that could not be looked at from being so: that says nothing about the tree.
        """
        damaged: dict[str, str] = {}
        unseen: list[RefusedError] = []
        below: list[LayerRecord] = []
        bad: list[LayerRecord] = []
        with ExitStack() as claims:
            for layer, kept in zip(layers, stored, strict=True):
                tree = self.trees.claim_present(kept.key, claims)
                if tree is None:
                    damaged[layer.diff_id] = "its tree is gone"
                    continue
                try:
                    wrong = None if tree in below else self._look(layer, tree, below, told)
                except RefusedError as error:
                    unseen.append(error)
                else:
                    damaged |= {} if wrong is None else {layer.diff_id: wrong}
                    bad += [] if wrong is None else [tree]
                below.append(tree)
            for tree in bad:
                self.trees.condemn(tree)
        if damaged:
            raise _damaged(damaged)
        if unseen:
            raise unseen[0]

    def _look(self, layer: Layer, tree: LayerRecord, below: Sequence[LayerRecord], told: Told) -> str | None:
        """How the tree differs from what its blob unpacks to now."""
        lowers = None
        if tree.kind is LayerKind.CHAIN:
            lowers = list(shown(self.trees.tree(lower) for lower in reversed(below)))
        with room(), self.trees.attempt() as attempt:
            fresh = attempt / "tree"
            unpack_layer(self.blobs, layer, fresh, lowers=lowers, limits=self.limits, told=told)
            return first_difference(self.trees.tree(tree), fresh)


def _damaged(layers: Mapping[str, str]) -> RefusedError:
    diff_id, wrong = next(iter(layers.items()))
    others = f" and {len(layers) - 1} more" if len(layers) > 1 else ""
    said = [{"diff_id": diff_id, "wrong": wrong} for diff_id, wrong in layers.items()]
    return lost(f"the layer {diff_id}{others}: {wrong}", layers=said)
