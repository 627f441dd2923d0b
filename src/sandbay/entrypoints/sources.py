"""Which image source reads an upload: what is in it says so, never its name."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from sandbay.adapters.image_source.docker_archive import LISTING, DockerArchiveSource
from sandbay.adapters.image_source.layout import MARKER, ArchiveTree, LayoutSource
from sandbay.domain.release import Variant
from sandbay.engine.archive import Archive, malformed
from sandbay.ports.blobs import Blobs
from sandbay.ports.image_source import ImageSource, Progress, Wanted

_KINDS: dict[str, Callable[[Archive], ImageSource]] = {
    # Newer docker writes both; the layout tells more.
    MARKER: lambda archive: LayoutSource(lambda: ArchiveTree(archive)),
    LISTING: lambda archive: DockerArchiveSource(lambda: archive),
}


class ArchiveSource:
    """The port `image_source` over an uploaded archive of any kind that we read."""

    def __init__(self, path: Path) -> None:
        """Take where it lies."""
        self._path = path

    def read(self, wanted: Wanted, blobs: Blobs, progress: Progress) -> tuple[Variant, ...]:
        """See the port. Refuses with `malformed_archive` what is neither kind of archive."""
        with closing(Archive(self._path)) as archive:
            for name, source in _KINDS.items():
                if archive.find(name) is not None:
                    return source(archive).read(wanted, blobs, progress)
        raise malformed("it is neither an OCI layout nor what docker save writes")


def open_archive(path: Path) -> ImageSource:
    """What `FolderUploads` takes to open an upload."""
    return ArchiveSource(path)
