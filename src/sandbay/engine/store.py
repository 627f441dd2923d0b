"""The images that one host holds: prepared once, verified at every look, visible only whole.

`prepare` reads the manifest and config by the variant's own digests, makes the layers' trees, and commits by
one small file. `verified` proves again what that file says: documents by their digests, identity computed from
them, every tree in its place.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sandbay.domain.disk import Disk, DiskBudget
from sandbay.domain.errors import RefusedError
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.domain.release import MANIFEST_DIGEST, ContentKey, ImageConfig, Layer, Variant, content_key
from sandbay.engine.digest import read_anew, read_verified, wrong_size
from sandbay.engine.durable import room
from sandbay.engine.image_documents import ImageDocuments, read_image
from sandbay.engine.layer_chain import LayerChain
from sandbay.engine.layer_feed import Told
from sandbay.engine.layers import LayerRecord, LayerTrees, shown
from sandbay.engine.limits import Limits
from sandbay.engine.meter import Meter
from sandbay.engine.records import Records, StoredLayer, StoredVariant, lost
from sandbay.engine.usage import Usage
from sandbay.engine.verify import Verifier
from sandbay.ports.blobs import Blobs
from sandbay.ports.provider import Phase, PrepareProgress, Progress


@dataclass(frozen=True, slots=True)
class Record:
    """A variant that is here whole. `artifacts` are computed from the bytes where bytes tell them.

    `lowers` are folders of `layers_folder`, the topmost first: exactly the ones that an overlay has to show.
    """

    key: ContentKey
    artifacts: Mapping[str, str]
    platform: Platform
    config: ImageConfig
    lowers: tuple[str, ...]
    layers_folder: Path


class LayerStore:
    """All variants in one folder. Threads and processes may share it."""

    def __init__(
        self, root: Path, blobs: Blobs, limits: Limits | None = None, budget: DiskBudget | None = None
    ) -> None:
        """Open the store, made where it is new."""
        self._blobs, self._limits = blobs, limits or Limits()
        self._trees, self._records = LayerTrees(root), Records(root)
        self._usage = Usage(root, self._trees, self._records, budget or DiskBudget())

    def sweep(self, mounted: Collection[str] = ()) -> None:
        """Remove what a crash left; for the start. What living processes are working on stays.

        So do the trees that living sandboxes have `mounted`, by their short names, whatever state they are in.
        """
        self._trees.sweep(mounted)
        self._records.sweep()

    def held(self) -> tuple[ContentKey, ...]:
        """The variants that are here whole."""
        return tuple(key for key in self._records.known() if self.record(key) is not None)

    def record(self, key: ContentKey) -> Record | None:
        """A variant that is here whole, or None, be it absent or damaged."""
        try:
            return self.verified(key)
        except RefusedError:
            return None

    def verified(self, key: ContentKey) -> Record:
        """A variant that is here whole. Refuses with `image_absent_on_node`, or `content_lost` when it was here."""
        stored, image = self._looked_up(key)
        artifacts = dict(stored.artifacts) | {n: v for n, v in image.identity.items() if n in stored.artifacts}
        if content_key(image.platform, artifacts) != key:
            raise lost("its documents are another image's")
        trees = [self._standing(layer) for layer in stored.layers]
        if [layer.diff_id for layer in image.layers] != [tree.diff_id for tree in trees]:
            raise lost("its layers are another image's")
        lowers = tuple(path.name for path in shown(self._trees.tree(tree) for tree in reversed(trees)))
        return Record(key, artifacts, image.platform, image.image_config, lowers, self._trees.trees)

    def verify(self, key: ContentKey, told: Told) -> None:
        """Compare every byte of a variant that is here with what the installation's blobs unpack to now.

        Refuses as `verified`; then what is damaged is out of sight, and the next `prepare` makes it anew. Also refuses
        with what kept it from looking, by the groups content (the blobs are damaged), transfer and room.
        """
        self.verified(key)
        stored, image = self._looked_up(key)
        verifier = Verifier(self._trees, self._blobs, self._limits)
        try:
            verifier.verify(image.layers, stored.layers, told)
        except RefusedError as error:
            raise self._usage.measured(error, ()) from None

    def prepare(self, variant: Variant, progress: Progress) -> None:
        """Bring a variant here: verify, unpack, commit. May be repeated; calls at the same time share the work.

        Refuses with reasons of the groups content, transfer and room, and leaves nothing of a refused variant behind.
        """
        try:
            self._prepare(variant, progress)
        except RefusedError as error:
            raise self._usage.measured(error, variant.layers) from None

    def _prepare(self, variant: Variant, progress: Progress) -> None:
        if self.record(variant.content_key) is not None:
            progress(PrepareProgress(Phase.COMMIT, variant.size, variant.size))
            return
        image = self._fetch(variant)
        self._refuse_unless_room(image.layers)
        meter = Meter(progress, image.sizes)
        for digest in image.by_digest:
            meter.finish(digest)
        try:
            with ExitStack() as claims:
                meter.enter(Phase.UNPACK)
                trees = LayerChain(self._trees, self._blobs, self._limits, meter, claims).build(image.layers)
                meter.enter(Phase.COMMIT)
                self._commit(variant, image, trees)
        finally:
            self._drop_orphans()

    def remove(self, key: ContentKey) -> None:
        """Drop a variant, then the trees that no other one needs. Repeating it is harmless."""
        self._records.remove(key)
        self._drop_orphans()

    def _looked_up(self, key: ContentKey) -> tuple[StoredVariant, ImageDocuments]:
        stored = self._records.read(key)
        if stored is None:
            raise RefusedError(Reason.IMAGE_ABSENT_ON_NODE, "the node does not hold this variant")
        image = read_image(stored.manifest_digest, 0, lambda digest, _: self._records.document(digest), self._limits)
        return stored, image

    def disk(self) -> Disk:
        """All bytes of the store, what has them, and the marks that they count against."""
        return self._usage.disk()

    def touch(self, key: ContentKey) -> None:
        """Note that a variant is used now: the longest unused are let go first."""
        self._records.touch(key)

    def _refuse_unless_room(self, layers: Sequence[Layer]) -> None:
        """Before anything is fetched. What an interrupted prepare of another image left goes before that is said."""
        try:
            self._usage.refuse_unless_room(layers)
        except RefusedError:
            mine = frozenset(layer.diff_id for layer in layers)
            self._trees.drop_unless(lambda: self._records.layer_keys() | mine)
            self._usage.refuse_unless_room(layers)

    def _drop_orphans(self) -> None:
        self._trees.drop_unless(self._records.layer_keys)

    def _fetch(self, variant: Variant) -> ImageDocuments:
        """The variant's documents, by its own digests; what they say has to be what the variant says."""
        digest = variant.digest
        if digest is None:
            raise RefusedError(Reason.RELEASE_INCOMPLETE, f"the variant has no {MANIFEST_DIGEST}")
        image = read_image(digest, variant.manifest_size, self._read_blob, self._limits)
        for name, value in image.identity.items():
            said = variant.artifacts.get(name)
            if said is not None and said.value != value:
                raise RefusedError(
                    Reason.DIGEST_MISMATCH,
                    f"{name} is not that of the image's bytes",
                    details={"artifact": name, "digest": said.value, "found": value},
                )
        if image.platform != variant.platform:
            raise RefusedError(
                Reason.PLATFORM_MISMATCH,
                f"the image's config says {image.platform}, the variant {variant.platform}",
                details={"offered": [str(image.platform)], "wanted": [str(variant.platform)]},
            )
        return image

    def _read_blob(self, digest: str, size: int) -> bytes:
        found = self._blobs.size(digest)
        if found != size:
            raise wrong_size(digest, size, found)

        def read() -> bytes:
            with self._blobs.open(digest) as file:
                return read_verified(file, digest, size)

        return read_anew(self._blobs, digest, read)

    def _commit(self, variant: Variant, image: ImageDocuments, trees: Sequence[LayerRecord]) -> None:
        manifest_digest, config_digest = image.identity.values()
        stored = StoredVariant(
            content_key=variant.content_key,
            platform=str(image.platform),
            artifacts={name: artifact.value for name, artifact in variant.artifacts.items()},
            manifest_digest=manifest_digest,
            config_digest=config_digest,
            layers=tuple(
                StoredLayer(layer.digest, layer.diff_id, tree.key, tree.short)
                for layer, tree in zip(image.layers, trees, strict=True)
            ),
        )
        with room(), self._trees.attempt() as attempt:
            self._records.commit(stored, image.by_digest, attempt)

    def _standing(self, layer: StoredLayer) -> LayerRecord:
        tree = self._trees.record(layer.key)
        if tree is None:
            raise lost(f"the layer {layer.diff_id} is gone")
        return tree
