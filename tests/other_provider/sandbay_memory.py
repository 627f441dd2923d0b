"""The in-memory provider, with the files of real images: it reads their layers from the installation's blobs."""

import gzip
import hashlib
import io
import tarfile

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Layer, Variant
from sandbay.ports.blobs import Blobs
from sandbay.ports.provider import Progress, ProviderAdapter, ProviderPlace
from tests.fakes.memory_files import Entry, folder
from tests.fakes.memory_provider import DECLARATION, MemoryProvider, World, small_system


class BlobsInMemory(MemoryProvider):
    """The image's own files, and the simulated programs instead of its own."""

    def __init__(self, place: ProviderPlace) -> None:
        super().__init__(World(), DECLARATION)
        self._blobs = place.blobs

    def prepare(self, variant: Variant, progress: Progress) -> None:
        files: dict[str, Entry] = {}
        for layer in variant.layers:
            files |= _files(self._blobs, layer)
        self.world.contents[variant.content_key] = files | small_system("with the files of an image")
        super().prepare(variant, progress)


def _files(blobs: Blobs, layer: Layer) -> dict[str, Entry]:
    with blobs.open(layer.digest) as file:
        packed = file.read()
    if f"sha256:{hashlib.sha256(packed).hexdigest()}" != layer.digest:
        raise RefusedError(Reason.DIGEST_MISMATCH, "the layer's bytes do not have its digest")
    data = gzip.decompress(packed) if layer.format == "gzip" else packed
    found: dict[str, Entry] = {}
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
        for member in tar:
            path, mode, owner = member.name.strip("/"), member.mode, (member.uid, member.gid)
            if member.isreg() and (content := tar.extractfile(member)) is not None:
                found[path] = Entry(mode, *owner, data=content.read())
            elif member.isdir() and path:
                found[path] = folder(mode, *owner)
            elif member.issym():
                found[path] = Entry(mode, *owner, target=member.linkname)
    return found


PROVIDER = ProviderAdapter(DECLARATION, BlobsInMemory)
