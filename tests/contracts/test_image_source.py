import os
from pathlib import Path

import pytest

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.adapters.image_source.layout import ArchiveTree, FolderTree, LayoutSource
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.engine.archive import Archive
from sandbay.engine.limits import Limits
from sandbay.ports.image_source import ImageSource, Wanted
from tests.contracts.image_source_suite import AMD64, ImageSourceSuite
from tests.support.oci_layout import Layout
from tests.support.tar_entries import Entry, device, file, folder, hardlink, symlink, tar


class TestLayoutFolder(ImageSourceSuite):
    @pytest.fixture
    def blobs(self, tmp_path: Path) -> FolderBlobs:
        return FolderBlobs(tmp_path / "store")

    def source(self, layout: Path, scratch: Path) -> ImageSource:
        return LayoutSource(lambda: FolderTree(layout))

    @pytest.mark.parametrize("name", ["oci-layout", "index.json", "blob", "blobs", "sha256"])
    @pytest.mark.parametrize("how", ["link", "pipe"])
    def test_nothing_but_regular_files_inside_it(self, name: str, how: str, blobs: FolderBlobs, tmp_path: Path) -> None:
        layout = Layout(tmp_path / "layout")
        image = layout.image([[file("x", b"x")]], platform="linux/amd64")
        path = {"blob": layout.blob_path(image.layers[0].digest), "sha256": layout.path / "blobs" / "sha256"}.get(
            name, layout.path / name
        )
        path.rename(tmp_path / "elsewhere")
        if how == "link":
            path.symlink_to(tmp_path / "elsewhere")
        else:
            os.mkfifo(path)
        assert self.refused(layout.path, blobs, tmp_path).reason is Reason.MALFORMED_LAYOUT

    @pytest.mark.parametrize("name", ["oci-layout", "index.json"])
    def test_what_lacks_its_files_is_no_layout(self, name: str, blobs: FolderBlobs, tmp_path: Path) -> None:
        layout = Layout(tmp_path / "layout")
        layout.image([], platform="linux/amd64")
        (layout.path / name).unlink()
        assert self.refused(layout.path, blobs, tmp_path).reason is Reason.MALFORMED_LAYOUT
        assert self.refused(tmp_path / "nothing", blobs, tmp_path).reason is Reason.MALFORMED_LAYOUT


def packed(layout: Path, prefix: bytes = b"./") -> list[Entry]:
    """The entries that `tar -C LAYOUT -cf - .` writes."""
    paths = sorted(layout.rglob("*"))
    names = [(prefix + str(path.relative_to(layout)).encode(), path) for path in paths]
    return [folder("./"), *(folder(n) if p.is_dir() else file(n, p.read_bytes()) for n, p in names)]


class TestLayoutArchive(ImageSourceSuite):
    @pytest.fixture
    def blobs(self, tmp_path: Path) -> FolderBlobs:
        return FolderBlobs(tmp_path / "store")

    def source(self, layout: Path, scratch: Path) -> ImageSource:
        return self.archive(scratch, tar(packed(layout)))

    def archive(self, scratch: Path, data: bytes) -> ImageSource:
        scratch.mkdir(exist_ok=True)
        path = scratch / "archive.tar"
        path.write_bytes(data)
        return LayoutSource(lambda: ArchiveTree(Archive(path, Limits(archive_members=50))))

    @pytest.fixture
    def entries(self, tmp_path: Path) -> list[Entry]:
        layout = Layout(tmp_path / "layout")
        layout.image([[file("x", b"x")]], platform="linux/amd64")
        return packed(layout.path, b"")

    def verdict(self, data: bytes, blobs: FolderBlobs, scratch: Path) -> Reason | None:
        try:
            self.archive(scratch, data).read(Wanted((AMD64,)), blobs, lambda _: None)
        except RefusedError as error:
            return error.refusal.reason
        return None

    def test_names_may_go_without_the_dot_and_without_end_blocks(
        self, entries: list[Entry], blobs: FolderBlobs, tmp_path: Path
    ) -> None:
        assert self.verdict(tar(entries), blobs, tmp_path) is None
        assert self.verdict(tar(entries, end=b""), blobs, tmp_path) is None

    @pytest.mark.parametrize(
        "extra",
        [
            file("../x"),
            file("/etc/x"),
            file("blobs/../../x"),
            symlink("blobs/sha256/" + "0" * 64, "/etc/passwd"),
            symlink("link", "index.json"),
            hardlink("copy", "index.json"),
            device("blobs/x", 1, 3),
            file("./index.json", b"{}"),
            file("blobs/sha256/..", b"{}"),
            Entry(b"sparse", pax={"GNU.sparse.map": b"0,1", "GNU.sparse.size": b"1"}, data=b"x"),
            file("y", raw={"chksum": b"0000000\0"}),
            file("y", raw={"size": b"777777777\0"}),
        ],
    )
    def test_what_an_archive_may_not_hold(
        self, extra: Entry, entries: list[Entry], blobs: FolderBlobs, tmp_path: Path
    ) -> None:
        assert self.verdict(tar([*entries, extra]), blobs, tmp_path) is Reason.MALFORMED_ARCHIVE

    def test_an_archive_that_was_cut(self, entries: list[Entry], blobs: FolderBlobs, tmp_path: Path) -> None:
        assert self.verdict(tar(entries)[:-1500], blobs, tmp_path) is Reason.MALFORMED_ARCHIVE
        assert self.verdict(b"", blobs, tmp_path) is Reason.MALFORMED_LAYOUT
        assert self.verdict(b"\x1f\x8b" + bytes(600), blobs, tmp_path) is Reason.MALFORMED_ARCHIVE

    def test_too_many_members(self, entries: list[Entry], blobs: FolderBlobs, tmp_path: Path) -> None:
        more = [file(f"more/{number}") for number in range(50)]
        assert self.verdict(tar([*entries, *more]), blobs, tmp_path) is Reason.LIMIT_EXCEEDED
