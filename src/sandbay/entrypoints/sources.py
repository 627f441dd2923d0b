"""Which image source reads an upload: what is in it says so, never its name."""

from contextlib import closing
from pathlib import Path

from sandbay.adapters.image_source.docker_archive import LISTING, DockerArchiveSource
from sandbay.adapters.image_source.layout import MARKER, ArchiveTree, LayoutSource
from sandbay.domain.release import Variant
from sandbay.engine.archive import Archive
from sandbay.ports.blobs import Blobs
from sandbay.ports.image_source import ImageSource, Progress, Wanted


class ArchiveSource:
    """The port `image_source` over an uploaded archive of any kind that we read."""

    def __init__(self, path: Path) -> None:
        """Take where it lies."""
        self._path = path

    def read(self, wanted: Wanted, blobs: Blobs, progress: Progress) -> tuple[Variant, ...]:
        """See the port. What is no docker archive is read, and judged, as a layout; so is what newer docker writes."""
        with closing(Archive(self._path)) as archive:
            docker = archive.find(MARKER) is None and archive.find(LISTING) is not None
            source: ImageSource = (
                DockerArchiveSource(lambda: archive) if docker else LayoutSource(lambda: ArchiveTree(archive))
            )
            return source.read(wanted, blobs, progress)


def open_archive(path: Path) -> ImageSource:
    """What `FolderUploads` takes to open an upload."""
    return ArchiveSource(path)
