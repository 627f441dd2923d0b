"""What `docker save` writes, and what others write like it: `manifest.json`, configs, layers as tars.

There is no manifest in such an archive: it is written here, always the same for the same image (plain tars, their
diff ids as digests). The config's diff ids are the only thing that vouches for a layer.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property

from sandbay.domain.canonical import canonical, sha256
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Variant
from sandbay.engine.archive import Archive, Stretch, malformed
from sandbay.engine.choice import one_image
from sandbay.engine.decode import decoder_for
from sandbay.engine.digest import chunks_of, verified
from sandbay.engine.documents import Document, read_documents
from sandbay.engine.intake import Origin, take_in
from sandbay.engine.limits import Limits
from sandbay.engine.manifest import Descriptor, IndexEntry, check_limit, parse_config
from sandbay.engine.media import OCI_MANIFEST, Compression
from sandbay.ports.blobs import Blobs
from sandbay.ports.image_source import Progress, Wanted

LISTING = "manifest.json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_MAGIC = {b"\x1f\x8b": Compression.GZIP, b"\x28\xb5\x2f\xfd": Compression.ZSTD}


class DockerArchiveSource:
    """The port `image_source` over a docker archive: `DockerArchiveSource(lambda: Archive(path))`."""

    def __init__(self, archive: Callable[[], Archive], limits: Limits | None = None) -> None:
        """Take how to open the archive, which every `read` does afresh."""
        self._archive, self._limits = archive, limits or Limits()

    def read(self, wanted: Wanted, blobs: Blobs, progress: Progress) -> tuple[Variant, ...]:
        """See the port. `wanted.tag` is a whole name, as the archive spells it. Also refuses `malformed_archive`."""
        with closing(self._archive()) as archive:
            image = _Image(archive, _chosen(archive, wanted.tag, self._limits), self._limits)
            try:
                return take_in((image.entry,), image, Wanted(wanted.platforms), blobs, progress, self._limits)
            except RefusedError as error:
                raise _as_diff_id(error, image) from None


@dataclass(frozen=True)
class _Saved:
    """One entry of the listing, with its config's bytes."""

    config: bytes
    layers: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def entries(self) -> Iterator[IndexEntry]:
        """The image under each of its names, by its id."""
        for name in self.names or (None,):
            yield IndexEntry(_described(_CONFIG, self.config), None, name)


def _chosen(archive: Archive, tag: str | None, limits: Limits) -> _Saved:
    listing = _small(archive, LISTING, "manifest_bytes", limits.manifest_bytes)
    saved = [_saved(archive, part, limits) for part in read_documents(listing, Reason.MALFORMED_ARCHIVE, LISTING)]
    meant, *_ = one_image([entry for image in saved for entry in image.entries], tag)
    return next(image for image in saved if sha256(image.config) == meant.descriptor.digest)


def _saved(archive: Archive, part: Document, limits: Limits) -> _Saved:
    config = _small(archive, part.text("Config"), "config_bytes", limits.config_bytes)
    return _Saved(config, part.texts("Layers") or (), part.texts("RepoTags") or ())


def _small(archive: Archive, name: str, limit: str, bound: int) -> bytes:
    stretch = _member(archive, name)
    check_limit(limit, stretch[1], bound)
    with archive.open(stretch) as file:
        return file.read()


def _member(archive: Archive, name: str) -> Stretch:
    stretch = archive.find(name, follow=True)
    if stretch is None:
        raise malformed(f"it has no {name[:200]!r}")
    return stretch


def _described(media_type: str, data: bytes) -> Descriptor:
    return Descriptor(media_type, sha256(data), len(data))


class _Image(Origin):
    """One image of the archive as blobs, its manifest included."""

    def __init__(self, archive: Archive, saved: _Saved, limits: Limits) -> None:
        check_limit("layers", len(saved.layers), limits.layers)
        self._archive, self._config, self._limits = archive, saved.config, limits
        self.diff_ids = parse_config(saved.config).diff_ids
        if len(self.diff_ids) != len(saved.layers):
            raise RefusedError(
                Reason.MALFORMED_CONFIG,
                "the config lists another number of layers than the archive",
                details={"layers": len(saved.layers), "diff_ids": len(self.diff_ids)},
            )
        self._layers: dict[str, list[Stretch]] = {}
        for diff_id, name in zip(self.diff_ids, saved.layers, strict=True):
            self._layers.setdefault(diff_id, []).append(_member(archive, name))

    @property
    def entry(self) -> IndexEntry:
        """The image as the only entry of an index."""
        return IndexEntry(_described(OCI_MANIFEST, self._manifest), None, None)

    def check(self, blob: Descriptor) -> None:
        """Sizes are found by reading here."""

    def chunks(self, blob: Descriptor) -> Generator[bytes]:
        """A layer's tar, or a document."""
        documents = {sha256(data): data for data in (self._manifest, self._config)}
        if blob.digest in documents:
            yield documents[blob.digest]
            return
        first, *others = dict.fromkeys(self._layers[blob.digest])
        for other in others:
            # Listed twice under one diff id: either place has to hold it.
            for _ in verified(self._tar(other), blob.digest, blob.size):
                pass
        yield from self._tar(first)

    @cached_property
    def _manifest(self) -> bytes:
        sizes = {diff_id: self._size(places[0]) for diff_id, places in self._layers.items()}
        document = {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "config": _plain(_described(_CONFIG, self._config)),
            "layers": [_plain(Descriptor(_LAYER, diff_id, sizes[diff_id])) for diff_id in self.diff_ids],
        }
        return canonical(document)

    def _compression(self, stretch: Stretch) -> Compression:
        with self._archive.open(stretch) as file:
            start = file.read(4)
        return next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), Compression.PLAIN)

    def _size(self, stretch: Stretch) -> int:
        if self._compression(stretch) is Compression.PLAIN:
            return stretch[1]
        size = 0
        for piece in self._tar(stretch):
            size += len(piece)
            check_limit("unpacked_bytes", size, self._limits.unpacked_bytes)
        return size

    def _tar(self, stretch: Stretch) -> Iterator[bytes]:
        """A layer's tar; some builders pack it."""
        decoder = decoder_for(self._compression(stretch))
        with self._archive.open(stretch) as file:
            for chunk in chunks_of(file):
                yield from decoder.feed(chunk)
        decoder.finish()


def _plain(descriptor: Descriptor) -> dict[str, str | int]:
    return {"mediaType": descriptor.media_type, "digest": descriptor.digest, "size": descriptor.size}


def _as_diff_id(error: RefusedError, image: _Image) -> RefusedError:
    """A layer's digest is its diff id here, and called so."""
    refusal, layers = error.refusal, image.diff_ids
    digest = refusal.details.get("digest")
    if refusal.reason not in (Reason.DIGEST_MISMATCH, Reason.SIZE_MISMATCH) or digest not in layers:
        return error
    message = "a layer of the archive is not the one that the config lists"
    return RefusedError(Reason.DIFF_ID_MISMATCH, message, details={"diff_id": digest})
