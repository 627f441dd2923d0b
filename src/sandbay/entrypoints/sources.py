"""Which image source reads an upload: what is in it says so, never its name."""

from contextlib import closing
from pathlib import Path

from sandbay.adapters.image_source.docker_archive import LISTING, DockerArchiveSource
from sandbay.adapters.image_source.layout import MARKER, ArchiveTree, LayoutSource
from sandbay.domain.release import Variant
from sandbay.engine.archive import Archive
from sandbay.engine.limits import Limits
from sandbay.ports.blobs import Blobs
from sandbay.ports.image_source import ImageSource, Progress, Wanted


class ArchiveSource:
    """The port `image_source` over an uploaded archive of any kind that we read."""

    def __init__(self, path: Path, limits: Limits) -> None:
        """Take where it lies, and how much may be in it."""
        self._path, self._limits = path, limits

    def read(self, wanted: Wanted, blobs: Blobs, progress: Progress) -> tuple[Variant, ...]:
        """See the port. What is no docker archive is read, and judged, as a layout; so is what newer docker writes."""
        limits = self._limits
        with closing(Archive(self._path, limits)) as archive:
            docker = archive.find(MARKER) is None and archive.find(LISTING) is not None
            source: ImageSource = (
                DockerArchiveSource(lambda: archive, limits)
                if docker
                else LayoutSource(lambda: ArchiveTree(archive), limits)
            )
            return source.read(wanted, blobs, progress)


def open_archive(path: Path, limits: Limits | None = None) -> ImageSource:
    """What `FolderUploads` takes to open an upload."""
    return ArchiveSource(path, limits or Limits())
