"""What the store's bytes are, and what is refused before any of it is fetched."""

import os
import subprocess
from pathlib import Path

import pytest

from sandbay.domain.disk import DiskBudget
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Variant
from sandbay.engine.store import LayerStore
from tests.engine.store_support import Host, ignore, names
from tests.support.oci_layout import Compression, Layout
from tests.support.tar_entries import file, folder

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: unpacking sets owners and confines itself"),
]
KIB, MIB = 1024, 1024**2
BASE = [folder("base"), *(file(f"base/{n}", os.urandom(200 * KIB)) for n in range(20))]


def image(scratch: Path, name: str, size: int, compression: Compression = "plain") -> Path:
    """Over the shared base, one layer of so many bytes of its own."""
    layout = scratch / name
    Layout(layout).image([BASE, [file(name, os.urandom(size))]], {}, compression=compression)
    return layout


def budgeted(host: Host, **budget: float) -> LayerStore:
    return LayerStore(host.root, host.blobs, budget=DiskBudget(**budget))  # type: ignore[arg-type]


def prepared(host: Host, path: Path) -> Variant:
    variant = host.register(path)
    host.store.prepare(variant, ignore)
    return variant


def on_disk(folder: Path) -> int:
    said = subprocess.run(["du", "-s", "-B1", str(folder)], capture_output=True, text=True, check=True).stdout
    return int(said.split()[0])


def test_shared_trees_count_once_and_sizes_are_those_of_the_disk(tmp_path: Path) -> None:
    host = Host(tmp_path)
    one, two = (prepared(host, image(tmp_path, name, 3 * MIB)) for name in ("one", "two"))
    disk = host.store.disk()
    assert {it.key for it in disk.held} == {one.content_key, two.content_key}
    assert disk.used == pytest.approx(on_disk(host.root / "l"), rel=0.05)
    assert disk.used == pytest.approx(10 * MIB, rel=0.1)
    assert disk.size(disk.only([one.content_key])) == pytest.approx(3 * MIB, rel=0.01)
    assert disk.size(disk.only([one.content_key, two.content_key])) == disk.used
    host.store.remove(one.content_key)
    after = host.store.disk()
    assert [it.key for it in after.held] == [two.content_key]
    assert after.used == disk.used - disk.size(disk.only([one.content_key]))
    host.check_whole()


def test_use_is_noted_and_lasts(tmp_path: Path) -> None:
    host = Host(tmp_path)
    one, two = (prepared(host, image(tmp_path, name, KIB)) for name in ("one", "two"))
    path = host.root / "records" / f"{one.content_key.removeprefix('sha256:')}.json"
    os.utime(path, (1, 1))

    def order(store: LayerStore) -> list[str]:
        return [it.key for it in sorted(store.disk().held, key=lambda it: it.used_at)]

    assert order(host.store) == order(host.restarted()) == [one.content_key, two.content_key]
    host.store.touch(one.content_key)
    assert order(host.store) == order(host.restarted()) == [two.content_key, one.content_key]
    host.store.remove(one.content_key)
    host.store.touch(one.content_key)
    assert order(host.store) == [two.content_key], "the note of what has gone brings nothing back"
    assert host.store.verified(two.content_key).key == two.content_key


@pytest.mark.parametrize("compression", ["plain", "gzip"])
def test_what_cannot_fit_is_refused_before_a_layer_is_fetched(compression: Compression, tmp_path: Path) -> None:
    host = Host(tmp_path)
    small = prepared(host, image(tmp_path, "small", KIB))
    before, large = host.count(), host.register(image(tmp_path, "large", 8 * MIB, compression))
    host.blobs.opened.clear()
    with pytest.raises(RefusedError) as refused:
        budgeted(host, bytes=11 * MIB).prepare(large, ignore)
    refusal = refused.value.refusal
    assert refusal.reason is Reason.NO_SPACE
    assert refusal.details["budget"] == 11 * MIB
    assert not {layer.digest for layer in large.layers} & set(host.blobs.opened)
    assert host.count() == before
    assert host.store.verified(small.content_key).key == small.content_key
    fits = budgeted(host, bytes=20 * MIB)
    fits.prepare(large, ignore)
    assert len(fits.held()) == 2


def test_layers_that_are_there_need_no_room_again(tmp_path: Path) -> None:
    host = Host(tmp_path)
    prepared(host, image(tmp_path, "one", KIB))
    store = budgeted(host, bytes=host.store.disk().used + 64 * KIB)
    store.prepare(host.register(image(tmp_path, "two", KIB)), ignore)
    assert len(store.held()) == 2


def test_what_an_interrupted_prepare_left_goes_before_anything_is_refused(tmp_path: Path) -> None:
    host = Host(tmp_path)
    left = prepared(host, image(tmp_path, "left", 8 * MIB))
    (host.root / "records" / f"{left.content_key.removeprefix('sha256:')}.json").unlink()
    disk = host.store.disk()
    assert disk.held == ()
    assert disk.used > 8 * MIB, "bytes of nobody are bytes"
    store = budgeted(host, bytes=14 * MIB)
    store.prepare(host.register(image(tmp_path, "other", 8 * MIB)), ignore)
    assert store.disk().used < 14 * MIB
    assert len(names(host.root / "l")) == 2


def test_a_damaged_record_is_no_variant_and_its_bytes_still_count(tmp_path: Path) -> None:
    host = Host(tmp_path)
    one, two = (prepared(host, image(tmp_path, name, MIB)) for name in ("one", "two"))
    used = host.store.disk().used
    (host.root / "records" / f"{one.content_key.removeprefix('sha256:')}.json").write_text("{")
    disk = host.restarted().disk()
    assert [it.key for it in disk.held] == [two.content_key]
    assert disk.used == used
