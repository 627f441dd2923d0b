"""Kill -9 before every step of what changes a store: nothing is half-visible, and a restart makes it good."""

import os
from pathlib import Path

import pytest

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Variant
from tests.contracts.blobs_suite import digest_of, pieces, read
from tests.engine.store_support import AMD64, NOTHING, Host, ignore, names
from tests.support.killing import at_every_step
from tests.support.oci_layout import Layout
from tests.support.tar_entries import file, folder

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: unpacking sets owners and confines itself"),
]

BASE = [folder("etc"), file("etc/keep", b"lower")]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "layout")


def one(host: Host, layout: Layout, ref: str = "one") -> Variant:
    layout.image([BASE], platform=AMD64, ref=ref)
    return host.register(layout.path, ref)


def test_a_blob_on_its_way_into_the_installations_store(tmp_path: Path) -> None:
    root, data = tmp_path / "blobs", os.urandom(300_000)
    blobs, seen = FolderBlobs(root), set()
    for killed in at_every_step(lambda: blobs.put(digest_of(data), len(data), pieces(data)), root):
        seen.add(killed)
        again = FolderBlobs(root)
        assert names(root / "incoming") == []
        assert not again.has(digest_of(data)) or read(again, digest_of(data)) == data
        if killed is not None:
            (root / "sha256" / digest_of(data).removeprefix("sha256:")).unlink(missing_ok=True)
    assert read(FolderBlobs(root), digest_of(data)) == data
    assert {"write incoming", "fsync", "rename incoming"} <= seen


def test_a_prepare(host: Host, layout: Layout) -> None:
    variant, seen = one(host, layout), set()
    for killed in at_every_step(lambda: host.store.prepare(variant, ignore), host.root):
        seen.add(killed)
        host.store = host.restarted()
        assert set(host.store.held()) <= {variant.content_key}
        host.check_whole()
        host.store.prepare(variant, ignore)
        assert host.content(variant, "etc/keep") == b"lower"
        host.store.remove(variant.content_key)
        assert host.count() == NOTHING
        host.store = host.restarted()
    assert {"mkdir staging", "syncfs", "rename staging", "write staging", "fsync", "rmdir staging"} <= seen


def test_a_removal(host: Host, layout: Layout) -> None:
    """Of an image that shares a layer with one that stays."""
    kept, seen = one(host, layout, "kept"), set()
    layout.image([BASE, [file("top")]], platform=AMD64, ref="gone")
    gone = host.register(layout.path, "gone")
    host.store.prepare(kept, ignore)
    host.store.prepare(gone, ignore)
    for killed in at_every_step(lambda: host.store.remove(gone.content_key), host.root):
        seen.add(killed)
        host.store = host.restarted()
        assert kept.content_key in host.store.held()
        host.check_whole()
        host.store.remove(gone.content_key)
        assert host.count() == {"staging": 0, "l": 1, "layers": 1, "records": 1, "meta/sha256": 2}
        assert host.content(kept, "etc/keep") == b"lower"
        if killed is not None:
            host.store.prepare(gone, ignore)
    assert {"remove records", "remove layers", "rename l", "remove meta", "fsync"} <= seen


def test_a_sweep(host: Host, layout: Layout) -> None:
    variant, seen = one(host, layout), set()
    host.store.prepare(variant, ignore)

    def litter() -> None:
        for name in ("staging/left/tree/deep", "l/nobodys0/deep"):
            (host.root / name).mkdir(parents=True, exist_ok=True)
            (host.root / name / "file").touch()
        (host.root / "layers" / ("0" * 64 + ".json")).write_text("{}")
        (host.root / "meta" / "sha256" / ("0" * 64)).touch()

    litter()
    for killed in at_every_step(host.store.sweep, host.root):
        seen.add(killed)
        host.store = host.restarted()
        host.check_whole()
        assert host.store.held() == (variant.content_key,)
        assert host.count() == {"staging": 0, "l": 1, "layers": 1, "records": 1, "meta/sha256": 2}
        if killed is not None:
            litter()
    assert {"rename staging", "rename l", "remove layers", "remove meta"} <= seen


def test_damage_that_is_found(host: Host, layout: Layout) -> None:
    """Whether the verdict was written down or not: what is held is never the damaged tree, once it was told."""
    variant, seen = one(host, layout), set()
    host.store.prepare(variant, ignore)

    def damage() -> None:
        record = host.store.verified(variant.content_key)
        (record.layers_folder / record.lowers[0] / "etc/keep").write_bytes(b"other")

    def verify() -> None:
        with pytest.raises(RefusedError) as caught:
            host.store.verify(variant.content_key, lambda _: None)
        assert caught.value.refusal.reason is Reason.CONTENT_LOST

    damage()
    for killed in at_every_step(verify, host.root):
        seen.add(killed)
        host.store = host.restarted()
        if host.store.held():
            verify()
        host.store.prepare(variant, ignore)
        host.store.sweep()
        host.check_whole()
        assert host.content(variant, "etc/keep") == b"lower"
        damage()
    assert "rename l" in seen


def test_one_more_blob_of_a_tree(host: Host, layout: Layout) -> None:
    packed, seen = one(host, layout), set()
    layout.image([layout.layer(BASE, "plain")], platform=AMD64, ref="plain")
    other = host.register(layout.path, "plain")
    host.store.prepare(packed, ignore)
    for killed in at_every_step(lambda: host.store.prepare(other, ignore), host.root):
        seen.add(killed)
        host.store = host.restarted()
        host.check_whole()
        assert packed.content_key in host.store.held()
        host.store.prepare(other, ignore)
        assert host.count()["l"] == 1
        for each in (other, packed):
            host.store.remove(each.content_key)
        host.store.prepare(packed, ignore)
    assert "rename staging" in seen
