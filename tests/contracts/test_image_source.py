import os
from pathlib import Path

import pytest

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.adapters.image_source.layout import FolderTree, LayoutSource
from sandbay.domain.reasons import Reason
from sandbay.ports.image_source import ImageSource
from tests.contracts.image_source_suite import ImageSourceSuite
from tests.support.oci_layout import Layout
from tests.support.tar_entries import file


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
