"""Docker archives: `manifest.json`, configs and layers; the manifest is ours, and links stay inside."""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.adapters.image_source.layout import FolderTree, LayoutSource
from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Variant
from sandbay.engine.limits import Limits
from sandbay.entrypoints.sources import open_archive
from sandbay.ports.image_source import Wanted
from tests.contracts.blobs_suite import read
from tests.support.oci_layout import Layout, digest_of
from tests.support.tar_entries import Entry, device, file, folder, hardlink, symlink, tar

AMD64 = Platform("linux", "amd64")
FIXTURES = Path(__file__).parents[1] / "fixtures" / "images"
LAYER = tar([file("which", b"one")])
LIMITS = Limits()


def config(*layers: bytes, **change: Any) -> bytes:
    rootfs = {"type": "layers", "diff_ids": [digest_of(layer) for layer in layers]}
    return json.dumps({"os": "linux", "architecture": "amd64", "rootfs": rootfs, **change}).encode()


def listing(*images: Mapping[str, Any]) -> Entry:
    return file("manifest.json", json.dumps(images))


def saved(layers: Sequence[str] = ("l/layer.tar",), name: str = "c.json", tags: Sequence[str] | None = None) -> Any:
    return {"Config": name, "RepoTags": tags, "Layers": list(layers)}


@pytest.fixture
def blobs(tmp_path: Path) -> FolderBlobs:
    return FolderBlobs(tmp_path / "store")


def take(path: Path, blobs: FolderBlobs, tag: str | None = None) -> tuple[Variant, ...]:
    return open_archive(path).read(Wanted((AMD64,), tag), blobs, lambda _: None)


def take_tar(entries: Sequence[Entry], blobs: FolderBlobs, tmp_path: Path, tag: str | None = None) -> Variant:
    path = tmp_path / "archive"
    path.write_bytes(tar(entries))
    (variant,) = take(path, blobs, tag)
    return variant


def refused(entries: Sequence[Entry], blobs: FolderBlobs, tmp_path: Path, tag: str | None = None) -> Refusal:
    with pytest.raises(RefusedError) as caught:
        take_tar(entries, blobs, tmp_path, tag)
    return caught.value.refusal


@pytest.mark.parametrize(
    "name", ["g01-archive", "g02-archive-linked-layer", "g06-archive-no-tags", "g07-archive-uppercase"]
)
def test_what_docker_saves_is_taken(name: str, blobs: FolderBlobs) -> None:
    (variant,) = take(FIXTURES / name / "archive.tar", blobs)
    assert variant.platform == AMD64
    for layer in variant.layers:
        assert layer.digest == layer.diff_id == digest_of(read(blobs, layer.digest))
    manifest = read(blobs, variant.digest or "")
    assert manifest == json.dumps(json.loads(manifest), sort_keys=True, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    "name, reason",
    [
        ("g03-archive-link-out", Reason.MALFORMED_ARCHIVE),
        ("g05-archive-two-images", Reason.AMBIGUOUS_ARCHIVE),
        ("g09-archive-diff-id", Reason.DIFF_ID_MISMATCH),
    ],
)
def test_what_is_not(name: str, reason: Reason, blobs: FolderBlobs) -> None:
    # Neither verdict knows what the store holds already.
    for _ in range(2):
        with pytest.raises(RefusedError) as caught:
            take(FIXTURES / name / "archive.tar", blobs)
        assert caught.value.refusal.reason is reason
        take(FIXTURES / "g01-archive" / "archive.tar", blobs)


def test_a_name_chooses_and_no_image_is_implied(blobs: FolderBlobs) -> None:
    path = FIXTURES / "g05-archive-two-images" / "archive.tar"
    found = {tag: take(path, blobs, tag)[0] for tag in ("fx/a:1", "fx/b:1")}
    assert len({variant.digest for variant in found.values()}) == 2
    for tag, variant in found.items():
        assert f"\0{tag[3]}\n\0".encode() in read(blobs, variant.layers[-1].digest)
    for unclear in ("fx/c:1", None):
        with pytest.raises(RefusedError) as caught:
            take(path, blobs, unclear)
        assert caught.value.refusal.details == {"choices": ["fx/a:1", "fx/b:1"]}


def test_the_image_is_the_one_it_is_elsewhere(blobs: FolderBlobs, tmp_path: Path) -> None:
    """Equal by image id, however it travelled; and by manifest when the archive was packed another way."""
    layout = Layout(tmp_path / "layout")
    image = layout.image([LAYER], platform="linux/amd64")
    (known,) = LayoutSource(lambda: FolderTree(layout.path)).read(Wanted((AMD64,)), blobs, lambda _: None)
    document = layout.blob_path(image.image_id).read_bytes()
    found = [
        take_tar([listing(saved()), file("c.json", document), file("l/layer.tar", data)], blobs, tmp_path)
        for data in (LAYER, gzip.compress(LAYER), gzip.compress(LAYER[:512]) + gzip.compress(LAYER[512:]))
    ]
    assert {variant.artifacts["image_id"] for variant in found} == {known.artifacts["image_id"]}
    assert len({variant.digest for variant in found}) == 1


@pytest.mark.parametrize(
    "link",
    [
        symlink("l/layer.tar", "../real/layer.tar"),
        symlink("l/layer.tar", "./../l/../real//layer.tar"),
        hardlink("l/layer.tar", "real/layer.tar"),
    ],
)
def test_links_are_followed_inside(link: Entry, blobs: FolderBlobs, tmp_path: Path) -> None:
    entries = [listing(saved()), file("c.json", config(LAYER)), file("real/layer.tar", LAYER), link]
    assert take_tar(entries, blobs, tmp_path).layers[0].diff_id == digest_of(LAYER)


@pytest.mark.parametrize(
    "link",
    [
        symlink("l/layer.tar", "/etc/passwd"),
        symlink("l/layer.tar", "../../layer.tar"),
        symlink("l/layer.tar", "../../etc/passwd"),
        hardlink("l/layer.tar", "/etc/passwd"),
        hardlink("l/layer.tar", "../x"),
        symlink("l/layer.tar", "layer.tar"),
        symlink("l/layer.tar", "nothing"),
        symlink("l/layer.tar", b"../real\0"),
        device("l/layer.tar", 1, 3),
        folder("l/layer.tar"),
        file("../l/layer.tar", LAYER),
    ],
)
def test_nothing_leads_out(link: Entry, blobs: FolderBlobs, tmp_path: Path) -> None:
    (tmp_path / "layer.tar").write_bytes(LAYER)
    (tmp_path / "x").write_bytes(LAYER)
    entries = [listing(saved()), file("c.json", config(LAYER)), link]
    assert refused(entries, blobs, tmp_path).reason is Reason.MALFORMED_ARCHIVE


def test_one_diff_id_in_two_places_has_to_be_in_both(blobs: FolderBlobs, tmp_path: Path) -> None:
    other = tar([file("which", b"two")])
    assert len(other) == len(LAYER)
    entries = [listing(saved(["a", "b"])), file("c.json", config(LAYER, LAYER)), file("a", LAYER), file("b", other)]
    assert refused(entries, blobs, tmp_path).reason is Reason.DIFF_ID_MISMATCH
    variant = take_tar([*entries[:-1], file("b", LAYER)], blobs, tmp_path)
    assert [layer.diff_id for layer in variant.layers] == [digest_of(LAYER)] * 2


@pytest.mark.parametrize(
    "entries, reason",
    [
        ([], Reason.MALFORMED_LAYOUT),
        ([file("manifest.json", b"{}")], Reason.MALFORMED_ARCHIVE),
        ([file("manifest.json", b'[{"Config":1}]')], Reason.MALFORMED_ARCHIVE),
        ([file("manifest.json", b'[{"Config":"c","Config":"d"}]')], Reason.MALFORMED_ARCHIVE),
        ([file("manifest.json", b"[[]]")], Reason.MALFORMED_ARCHIVE),
        ([listing(saved())], Reason.MALFORMED_ARCHIVE),
        ([listing()], Reason.NOT_AN_IMAGE),
        ([listing(saved()), file("c.json", b"{}")], Reason.MALFORMED_CONFIG),
        ([listing(saved([])), file("c.json", config(LAYER))], Reason.MALFORMED_CONFIG),
        ([listing(saved()), file("c.json", config(LAYER)), file("l/layer.tar", LAYER[:-1])], Reason.DIFF_ID_MISMATCH),
        ([listing(saved()), file("c.json", config(LAYER)), file("l/layer.tar", b"")], Reason.DIFF_ID_MISMATCH),
        (
            [listing(saved()), file("c.json", config(LAYER)), file("l/layer.tar", gzip.compress(LAYER)[:-9])],
            Reason.MALFORMED_LAYER,
        ),
        (
            [listing(saved()), file("c.json", config(LAYER, architecture="s390x")), file("l/layer.tar", LAYER)],
            Reason.PLATFORM_MISMATCH,
        ),
        (
            [listing(saved(["l"] * 128)), file("c.json", config(*[LAYER] * 128)), file("l", LAYER)],
            Reason.LIMIT_EXCEEDED,
        ),
        (
            [file("manifest.json", b" " * (LIMITS.manifest_bytes + 1))],
            Reason.LIMIT_EXCEEDED,
        ),
    ],
)
def test_what_is_wrong_has_its_name(
    entries: Sequence[Entry], reason: Reason, blobs: FolderBlobs, tmp_path: Path
) -> None:
    assert refused(entries, blobs, tmp_path).reason is reason


def test_a_packed_archive_is_told_from_a_damaged_one(blobs: FolderBlobs, tmp_path: Path) -> None:
    path = tmp_path / "archive"
    path.write_bytes(gzip.compress((FIXTURES / "g01-archive" / "archive.tar").read_bytes()))
    with pytest.raises(RefusedError) as caught:
        take(path, blobs)
    assert caught.value.refusal.reason is Reason.MALFORMED_ARCHIVE
    assert "packed with gzip" in caught.value.refusal.message


def test_what_newer_docker_writes_is_read_as_a_layout(blobs: FolderBlobs, tmp_path: Path) -> None:
    """Both kinds in one archive, and two images of one tag that differ only in their full names."""
    layout = Layout(tmp_path / "layout")
    images = {
        name: layout.image([[file("which", name)]], platform="linux/amd64", listed=False) for name in ("fx/a", "fx/b")
    }
    entries = [
        {
            **image.descriptor,
            "annotations": {
                "io.containerd.image.name": f"reg.example/{name}:1",
                "org.opencontainers.image.ref.name": "1",
            },
        }
        for name, image in images.items()
    ]
    index = json.dumps({"schemaVersion": 2, "manifests": entries})
    (layout.path / "index.json").write_text(index)
    (layout.path / "manifest.json").write_text("[]")
    members = [file(str(p.relative_to(layout.path)), p.read_bytes()) for p in layout.path.rglob("*") if p.is_file()]
    assert take_tar(members, blobs, tmp_path, "reg.example/fx/b:1").digest == images["fx/b"].manifest_digest
    for tag in (None, "1"):
        refusal = refused(members, blobs, tmp_path, tag)
        assert refusal.details == {"choices": ["reg.example/fx/a:1", "reg.example/fx/b:1"]}
