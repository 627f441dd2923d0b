"""A byte that changes on the node's disk: found by `images verify`, fetched again, and what runs runs on."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.installation import Installation
from tests.support.tar_entries import file

pytestmark = [pytest.mark.real, pytest.mark.slow]

GOOD = b"as it was published\n" * 50


@pytest.fixture
def house() -> Iterator[Installation]:
    it = Installation()
    try:
        it.up()
        yield it
    finally:
        it.close()


def flip(store: Path) -> Path:
    """One bit of the file `data` in a layer tree, its time as it was."""
    (path,) = (store / "l").glob("*/data")
    kept = path.stat()
    path.write_bytes(bytes([GOOD[0] ^ 1]) + GOOD[1:])
    path.chmod(kept.st_mode & 0o7777)
    os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    return path


def test_a_flipped_byte_is_found_and_fetched_again(house: Installation) -> None:
    assert house.register("web", house.image("web", file("data", GOOD))).code == 0
    assert house.register("other", house.image("other")).code == 0
    assert house.ok("images", "verify", "--json").data["seen"] == "whole"
    session = house.ok("sessions", "create", "--image", "web", "--json").data["id"]

    flip(house.node_home / "store")
    found = house.cli("images", "verify", "web", "--json")
    assert (found.code, found.err, found.data["seen"]) == (125, "", "damaged")
    (node,) = found.data["items"][0]["nodes"]
    assert node["fault"]["code"] == "content_lost"
    assert str(house.home) not in found.out
    assert house.ok("images", "verify", "other", "-q").out == "whole\n"

    def ready() -> bool:
        rows = json.loads(house.ok("images", "readiness", "web", "--json").out)["items"]
        return [(row["state"], row["attempt"] > 1) for row in rows] == [("ready", True)]

    house.eventually(ready)
    assert house.ok("run", "web", "--", "cat", "/data").out == GOOD.decode()
    assert house.ok("images", "verify", "web", "-q").out == "whole\n"

    # The Session that ran meanwhile is the same one, after a crash too.
    house.kill()
    house.ok("up", "--port", str(house.port), "--detach")
    assert house.ok("sessions", "exec", session, "--", "cat", "/which").out == "web\n"
    house.ok("sessions", "rm", session)


def test_a_damaged_blob_is_told_with_what_mends_it(house: Installation) -> None:
    layout = house.image("web", file("data", GOOD))
    digest = house.register("web", layout).data["variants"][0]["layers"][-1]["digest"]
    path = house.home / "blobs" / digest.replace(":", "/")
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    told = house.cli("images", "verify", "web")
    assert told.code == 125
    assert f"damaged blob  {digest}" in told.out
    assert "register" in told.out
    assert house.register("web", layout).code == 0
    assert house.ok("images", "verify", "web", "-q").out == "whole\n"


def test_a_node_that_failed_on_a_damaged_blob_has_it_when_that_is_mended(house: Installation) -> None:
    assert house.register("base", house.image("base")).code == 0
    layout = house.image("web", file("data", GOOD))
    digest = house.register("web", layout).data["variants"][0]["layers"][-1]["digest"]
    path = house.home / "blobs" / digest.replace(":", "/")
    data = path.read_bytes()
    flipped = data[:-1] + bytes([data[-1] ^ 1])

    def state() -> tuple[str, str | None]:
        (row,) = house.ok("images", "readiness", "web", "--json").data["items"]
        return row["state"], (row["fault"] or {}).get("code")

    def until(*wanted: str | None) -> None:
        house.eventually(lambda: state() == wanted)

    for damaged, code in ((flipped, "digest_mismatch"), (data[:-1], "size_mismatch"), (None, "blob_missing")):
        house.ok("images", "evict", "web")
        until("absent", None)
        path.unlink() if damaged is None else path.write_bytes(damaged)
        house.ok("images", "preload", "web")
        until("failed", code)
        assert house.register("web", layout).code == 0
        until("ready", None)
        assert house.ok("run", "web", "--", "cat", "/data").out == GOOD.decode()
