"""What a look at a store tells, without touching it."""

import os
from pathlib import Path

import pytest

from sandbay.engine.state import StoreState, look
from tests.engine.store_support import Host, ignore, names
from tests.support.oci_layout import Layout
from tests.support.tar_entries import file

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: unpacking sets owners and confines itself"),
]


def test_a_look_tells_what_is_whole_torn_lost_and_left(tmp_path: Path) -> None:
    host = Host(tmp_path)
    assert look(tmp_path / "nowhere") is None
    for name in ("one", "two"):
        Layout(tmp_path / name).image([[file("base", b"b" * 5000)], [file(name, b"x" * 3000)]], {})
        host.store.prepare(host.register(tmp_path / name), ignore)
    used = host.store.disk().used
    before = host.count()
    assert look(host.root) == StoreState(variants=2, trees=3, used=used, torn=0, leftover=0, lost=0)
    (host.root / "staging" / "cut").mkdir()
    (host.root / "l" / "nameless").mkdir()
    (host.root / "layers" / f"{'0' * 64}.json").write_text("{")
    found = look(host.root)
    assert found == StoreState(variants=2, trees=3, used=used, torn=1, leftover=2, lost=0)
    assert look(host.root) == found, "looking changes nothing"
    host.restarted()
    assert host.count() == before
    assert look(host.root) == StoreState(variants=2, trees=3, used=used, torn=0, leftover=0, lost=0)
    record = host.root / "records" / names(host.root / "records")[0]
    record.write_text('{"layers": [{"key": "sha256:gone"}]}')
    assert look(host.root) == StoreState(variants=2, trees=3, used=used, torn=0, leftover=0, lost=1)
    record.write_text("not json")
    assert look(host.root) == StoreState(variants=2, trees=3, used=used, torn=0, leftover=0, lost=1)
