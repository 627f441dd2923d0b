"""Reading an image from a source, whatever the source is: choose, verify everything, copy into the store.

Digests and sizes of all blobs are verified here; what is inside the layers is verified where it is unpacked.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass

from sandbay.domain.errors import RefusedError
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.domain.release import IMAGE_ID, MANIFEST_DIGEST, Artifact, Known, Layer, Variant
from sandbay.engine.choice import Candidate, candidates, one_image
from sandbay.engine.digest import WRONG_BYTES, chunks_of, verified
from sandbay.engine.flights import Flights
from sandbay.engine.limits import Limits
from sandbay.engine.manifest import (
    Config,
    Descriptor,
    IndexEntry,
    Manifest,
    check_limit,
    layers_of,
    parse_config,
    parse_manifest,
    unsupported,
)
from sandbay.engine.media import DOCUMENTS, LAYERS
from sandbay.ports.blobs import Blobs
from sandbay.ports.image_source import Copied, Progress, Wanted


class Origin(ABC):
    """The blobs of a source, as they lie there: unverified."""

    lanes = 1
    """How many blobs may be read at once."""

    flights: Flights | None = None
    """Where reading means a transfer: what is under way. What the installation's store holds is not read again."""

    @abstractmethod
    def check(self, blob: Descriptor) -> None:
        """Refuse with `blob_missing` or `size_mismatch` where that shows without reading the blob."""

    @abstractmethod
    def chunks(self, blob: Descriptor) -> Generator[bytes]:
        """Its bytes. Refuses with `blob_missing`, or by a reason of the group transfer."""

    def again(self, blob: Descriptor) -> bool:  # noqa: ARG002 - for those that transfer
        """Whether wrong bytes may be the fault of how they were pieced together, so that reading anew may help."""
        return False


@dataclass(frozen=True, slots=True)
class _Image:
    """One image whose documents are read and verified."""

    descriptor: Descriptor
    manifest: Manifest
    config: Config
    layers: tuple[Layer, ...]
    index_digest: str | None

    @property
    def blobs(self) -> tuple[Descriptor, ...]:
        """Everything to copy, the manifest last."""
        return (*self.manifest.layers, self.manifest.config, self.descriptor)

    def variant(self) -> Variant:
        artifacts = {MANIFEST_DIGEST: self.descriptor.digest, IMAGE_ID: self.manifest.config.digest}
        return Variant(
            platform=self.config.platform,
            artifacts={name: Artifact(value, Known.COMPUTED) for name, value in artifacts.items()},
            providers=(),
            layers=self.layers,
            config=self.config.image,
            manifest_size=self.descriptor.size,
            config_size=self.manifest.config.size,
            index_digest=self.index_digest,
            history=self.config.history,
        )


def take_in(
    entries: Sequence[IndexEntry], origin: Origin, wanted: Wanted, blobs: Blobs, progress: Progress, limits: Limits
) -> tuple[Variant, ...]:
    """Copy the wanted platforms of the one image that `entries` (a source's outermost index) mean.

    The contract is that of `ports.image_source`. Nothing is copied before all documents have been judged.
    """
    documents = _Documents(origin, limits)
    meant = candidates(one_image(entries, wanted.tag), documents.index, limits)
    images = _choose(meant, wanted.platforms, documents)
    _copy(_distinct(images), origin, blobs, progress)
    return tuple(image.variant() for image in images)


class _Documents:
    """Reads documents, each once, within its limit, verified by size and digest."""

    def __init__(self, origin: Origin, limits: Limits) -> None:
        self._origin, self._limits = origin, limits
        self._images: dict[Descriptor, _Image] = {}

    def index(self, descriptor: Descriptor) -> bytes:
        return self._read(descriptor, "manifest_bytes", self._limits.manifest_bytes)

    def image(self, candidate: Candidate) -> _Image:
        descriptor = candidate.descriptor
        if descriptor not in self._images:
            self._images[descriptor] = self._load(descriptor, candidate.index_digest)
        return self._images[descriptor]

    def _load(self, descriptor: Descriptor, index_digest: str | None) -> _Image:
        if descriptor.media_type not in DOCUMENTS:
            raise unsupported(descriptor.media_type)
        data = self._read(descriptor, "manifest_bytes", self._limits.manifest_bytes)
        manifest = parse_manifest(data, self._limits, descriptor.media_type)
        config = parse_config(self._read(manifest.config, "config_bytes", self._limits.config_bytes))
        return _Image(descriptor, manifest, config, layers_of(manifest, config), index_digest)

    def _read(self, descriptor: Descriptor, limit: str, bound: int) -> bytes:
        check_limit(limit, descriptor.size, bound)
        self._origin.check(descriptor)
        while True:
            try:
                with closing(self._origin.chunks(descriptor)) as chunks:
                    return b"".join(verified(chunks, descriptor.digest, descriptor.size))
            except RefusedError as error:
                if error.refusal.reason not in WRONG_BYTES or not self._origin.again(descriptor):
                    raise


def _choose(meant: Sequence[Candidate], platforms: Sequence[Platform], documents: _Documents) -> list[_Image]:
    """Per wanted platform the first candidate that fits it. Refuses with `platform_mismatch` when none does."""
    offered, unreadable = _platforms(meant, documents)
    chosen = [
        _confirmed(documents.image(candidate), platform)
        for platform in dict.fromkeys(platforms)
        for candidate in [next((c for c, offer in offered if offer == platform), None)]
        if candidate is not None
    ]
    if chosen:
        return chosen
    if unreadable and not offered:
        raise unreadable[0]
    raise RefusedError(
        Reason.PLATFORM_MISMATCH,
        "none of its platforms is wanted here",
        details={
            "offered": [str(offer) for offer in dict.fromkeys(offer for _, offer in offered)],
            "wanted": [str(platform) for platform in platforms],
        },
    )


def _platforms(
    meant: Sequence[Candidate], documents: _Documents
) -> tuple[list[tuple[Candidate, Platform]], list[RefusedError]]:
    """Each candidate's platform, from its config where no index says it; and why some are no images for us."""
    offered: list[tuple[Candidate, Platform]] = []
    unreadable: list[RefusedError] = []
    for candidate in meant:
        try:
            platform = candidate.platform or documents.image(candidate).config.platform
            offered.append((candidate, platform))
        except RefusedError as error:
            if error.refusal.reason not in (Reason.NOT_AN_IMAGE, Reason.UNSUPPORTED_MEDIA_TYPE):
                raise
            unreadable.append(error)
    if not meant:
        unreadable.append(RefusedError(Reason.NOT_AN_IMAGE, "there is no image in it"))
    return offered, unreadable


def _confirmed(image: _Image, platform: Platform) -> _Image:
    """The config has the last word: an index that says otherwise is not believed."""
    if image.config.platform != platform:
        raise RefusedError(
            Reason.PLATFORM_MISMATCH,
            f"the index says {platform}, the image's config says {image.config.platform}",
            details={"offered": [str(image.config.platform)], "wanted": [str(platform)]},
        )
    return image


def _distinct(images: Sequence[_Image]) -> list[Descriptor]:
    """Each blob once, and once more for every other size that somebody claims for it."""
    return list({(blob.digest, blob.size): blob for image in images for blob in image.blobs}.values())


def _copy(wanted: Sequence[Descriptor], origin: Origin, blobs: Blobs, progress: Progress) -> None:
    for blob in wanted:
        origin.check(blob)
    copying = _Copying(origin, blobs, progress, wanted)
    if origin.lanes == 1:
        for blob in wanted:
            copying.copy(blob)
        return
    with ThreadPoolExecutor(origin.lanes, "sandbay-fetch") as pool:
        for done in as_completed([pool.submit(copying.unless_failed, blob) for blob in wanted]):
            done.result()


class _Copying:
    """Blobs on their way into the store, perhaps several at once."""

    def __init__(self, origin: Origin, blobs: Blobs, progress: Progress, wanted: Sequence[Descriptor]) -> None:
        self._origin, self._blobs, self._progress = origin, blobs, progress
        self._lock = threading.Lock()
        self._failed = threading.Event()
        self._done, self._total = 0, sum(blob.size for blob in wanted)
        self._layers = len({blob.digest for blob in wanted if blob.media_type in LAYERS})
        self._tell(0)

    def unless_failed(self, blob: Descriptor) -> None:
        """Copy it, or end early once another could not be copied: its refusal is the one that counts."""
        try:
            if not self._failed.is_set():
                self.copy(blob)
        except _GivenUpError:
            return
        except BaseException:
            self._failed.set()
            raise

    def copy(self, blob: Descriptor) -> None:
        flights = self._origin.flights
        if flights is None:
            self._transfer(blob)
            return
        with flights.turn(blob.digest, self._failed.is_set):
            if self._failed.is_set():
                raise _GivenUpError
            if self._held(blob):
                self._tell(blob.size)
            else:
                self._transfer(blob)

    def _transfer(self, blob: Descriptor) -> None:
        meter = _Meter(self._tell)
        while True:
            try:
                with closing(self._origin.chunks(blob)) as chunks:
                    self._blobs.put(blob.digest, blob.size, self._metered(chunks, meter))
            except RefusedError as error:
                if error.refusal.reason not in WRONG_BYTES or not self._origin.again(blob):
                    raise
                meter.restart()
            else:
                return

    def _held(self, blob: Descriptor) -> bool:
        """Whether the store has it, whole and right: a damaged blob is not there."""
        try:
            with self._blobs.open(blob.digest) as file:
                for _ in verified(chunks_of(file), blob.digest, blob.size):
                    pass
        except RefusedError:
            return False
        return True

    def _metered(self, chunks: Iterator[bytes], meter: "_Meter") -> Iterator[bytes]:
        for chunk in chunks:
            if self._failed.is_set():
                raise _GivenUpError
            yield chunk
            meter.add(len(chunk))

    def _tell(self, count: int) -> None:
        with self._lock:
            self._done += count
            self._progress(Copied(self._done, self._total, self._layers))


class _Meter:
    """Tells of each byte of a blob once, however often it is read."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self._tell, self._at, self._told = tell, 0, 0

    def restart(self) -> None:
        self._at = 0

    def add(self, count: int) -> None:
        self._at += count
        if self._at > self._told:
            self._tell(self._at - self._told)
            self._told = self._at


class _GivenUpError(Exception):
    """Another blob could not be had."""
