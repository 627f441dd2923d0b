"""Images that are at fault are refused at registration with the one right reason, and leave no release behind."""

import dataclasses
import tarfile
from pathlib import Path
from typing import cast

import httpx
import pytest

from sandbay.domain.declaration import ArtifactRule, Declaration
from sandbay.domain.reasons import Reason
from tests.api.served import IMAGES, Served, answered, refused
from tests.fakes.memory_provider import DECLARATION
from tests.support.oci_layout import Layout, digest_of
from tests.support.tar_entries import file

FIXTURES = Path(__file__).parents[1] / "fixtures" / "images"
NAME = "awkward"


def _produces(name: str, mark: pytest.MarkDecorator) -> object:
    (reason,) = mark.args
    return pytest.param(name, reason.value, marks=mark)


@pytest.fixture(scope="module")
def catalog(shared: Served) -> Served:
    answered(shared.admin.post(IMAGES, json={"name": NAME}), 201)
    return shared


def _register(served: Served, upload: str) -> httpx.Response:
    body = {"source": {"upload": upload}, "platforms": ["linux/amd64"]}
    return served.admin.post(f"{IMAGES}/{NAME}/releases", json=body)


@pytest.mark.parametrize(
    "name, code",
    [
        _produces("d01-layer-bytes-changed", pytest.mark.produces(Reason.DIGEST_MISMATCH)),
        _produces("d02-layer-cut", pytest.mark.produces(Reason.SIZE_MISMATCH)),
        _produces("d07-blob-missing", pytest.mark.produces(Reason.BLOB_MISSING)),
        _produces("e03-wrong-platform-only", pytest.mark.produces(Reason.PLATFORM_MISMATCH)),
        _produces("e12-media-type-differs", pytest.mark.produces(Reason.MALFORMED_MANIFEST)),
        _produces("e17-foreign-layer", pytest.mark.produces(Reason.UNSUPPORTED_MEDIA_TYPE)),
        _produces("e18-artifact", pytest.mark.produces(Reason.NOT_AN_IMAGE)),
        _produces("e23-sha512", pytest.mark.produces(Reason.UNSUPPORTED_DIGEST)),
        _produces("e24-digest-is-a-path", pytest.mark.produces(Reason.INVALID_DIGEST)),
        _produces("e26-layout-version", pytest.mark.produces(Reason.MALFORMED_LAYOUT)),
        _produces("e27-two-images", pytest.mark.produces(Reason.AMBIGUOUS_ARCHIVE)),
    ],
)
def test_an_awkward_layout(catalog: Served, name: str, code: str) -> None:
    response = _register(catalog, catalog.upload_layout(FIXTURES / name / "layout"))
    refused(response, 422, code)
    assert answered(catalog.admin.get(f"{IMAGES}/{NAME}/releases"))["items"] == []


@pytest.mark.parametrize(
    "name, code",
    [
        _produces("g03-archive-link-out", pytest.mark.produces(Reason.MALFORMED_ARCHIVE)),
        _produces("g05-archive-two-images", pytest.mark.produces(Reason.AMBIGUOUS_ARCHIVE)),
        _produces("g09-archive-diff-id", pytest.mark.produces(Reason.DIFF_ID_MISMATCH)),
    ],
)
def test_an_awkward_docker_archive(catalog: Served, name: str, code: str) -> None:
    upload = catalog.upload_bytes((FIXTURES / name / "archive.tar").read_bytes())
    refused(_register(catalog, upload), 422, code)
    assert answered(catalog.admin.get(f"{IMAGES}/{NAME}/releases"))["items"] == []


def test_a_docker_archive_is_a_release_by_its_name(served: Served) -> None:
    answered(served.admin.post(IMAGES, json={"name": "saved"}), 201)
    upload = served.upload_bytes((FIXTURES / "g05-archive-two-images" / "archive.tar").read_bytes())
    body = {"source": {"upload": upload, "tag": "fx/b:1"}, "platforms": ["linux/amd64"]}
    made = answered(served.admin.post(f"{IMAGES}/saved/releases", json=body), 201)
    with tarfile.open(FIXTURES / "g05-archive-two-images" / "archive.tar") as archive:
        layer = archive.extractfile("b/layer.tar")
        assert layer
        assert made["variants"][0]["layers"][0]["digest"] == digest_of(layer.read())
    assert answered(served.admin.post(f"{IMAGES}/saved/releases", json=body))["id"] == made["id"]


def test_history_shows_each_layer_with_its_size_and_the_steps_that_left_none(served: Served) -> None:
    answered(served.admin.post(IMAGES, json={"name": NAME}), 201)
    upload = served.upload_layout(FIXTURES / "e20-empty-layers" / "layout")
    (variant,) = answered(_register(served, upload), 201)["variants"]
    shown = [(step["layer"], step["size"]) for step in variant["history"]]
    assert shown == [(0, 1470), (None, None), (None, None), (1, 29), (None, None), (2, 88)]
    assert [layer["size"] for layer in variant["layers"]] == [1470, 29, 88]
    assert answered(served.admin.get(f"{IMAGES}/{NAME}/releases/1"))["variants"] == [variant]


@pytest.mark.produces(Reason.MALFORMED_CONFIG)
def test_a_config_that_is_none(catalog: Served, tmp_path: Path) -> None:
    layout = Layout(tmp_path / "layout")
    layout.image([[file("x")]], platform="linux/amd64", change_config={"rootfs": {"type": "layers", "diff_ids": []}})
    refused(_register(catalog, catalog.upload_layout(layout.path)), 422, "malformed_config")


@pytest.mark.produces(Reason.MALFORMED_ARCHIVE)
@pytest.mark.parametrize("damage", ["no tar", "cut", "empty"])
def test_an_upload_that_is_no_whole_tar(catalog: Served, tmp_path: Path, damage: str) -> None:
    whole = (FIXTURES / "e11-no-media-type" / "layout" / "index.json").read_bytes() * 50
    data = {"no tar": whole, "cut": b"oci-layout" + bytes(100), "empty": b"\x01"}[damage]
    refused(_register(catalog, catalog.upload_bytes(data)), 422, "malformed_archive")


@pytest.mark.produces(Reason.LIMIT_EXCEEDED)
def test_more_layers_than_can_be_mounted(catalog: Served, tmp_path: Path) -> None:
    layout = Layout(tmp_path / "layout")
    layout.image([[file(f"f{n}")] for n in range(128)], platform="linux/amd64")
    error = refused(_register(catalog, catalog.upload_layout(layout.path)), 422, "limit_exceeded")
    assert error["details"] == {"limit": "layers", "value": 128, "bound": 127}


@pytest.mark.produces(Reason.RELEASE_INCOMPLETE)
def test_what_a_provider_needs_and_the_image_lacks(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that is asked for and cannot run it is told by name; unasked, it is left out."""
    answered(served.admin.post(IMAGES, json={"name": "web"}), 201)
    narrow = dataclasses.replace(DECLARATION, kind="narrow", artifacts={"snapshot_id": ArtifactRule("snap_.*")})
    monkeypatch.setitem(cast("dict[str, Declaration]", served.core.declarations), "narrow", narrow)
    body = {"source": {"upload": served.upload("web")}, "providers": ["memory", "narrow"]}
    response = served.admin.post(f"{IMAGES}/web/releases", json=body)
    assert refused(response, 400, "release_incomplete", "artifacts.snapshot_id")["details"] == {"provider": "narrow"}
    release = answered(served.admin.post(f"{IMAGES}/web/releases", json={"source": body["source"]}), 201)
    assert release["variants"][0]["providers"] == ["memory"]
