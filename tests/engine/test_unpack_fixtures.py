"""The awkward images: each has one right answer, and the host is as it was after every one."""

import gzip
import json
from pathlib import Path

import pytest

from sandbay.engine.limits import Limits
from tests.support.canary import canary
from tests.support.right_answer import FIXTURES, differences, expected_of
from tests.support.unpacking import Stack, needs_unpacking

pytestmark = needs_unpacking

# The groups about layers. What is wrong with blobs and documents is judged before a layer is unpacked.
LAYERS = sorted(
    path.name
    for path in FIXTURES.iterdir()
    if path.name.startswith(("a", "b", "c", "d11-", "d13-", "d14-", "d16-")) and (path / "layout").is_dir()
)


def layers_of(fixture: Path) -> list[bytes]:
    def blob(digest: str) -> bytes:
        return (fixture / "layout" / "blobs" / digest.replace(":", "/")).read_bytes()

    index = json.loads((fixture / "layout" / "index.json").read_bytes())
    manifest = json.loads(blob(index["manifests"][0]["digest"]))
    blobs = [blob(layer["digest"]) for layer in manifest["layers"]]
    return [gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data for data in blobs]


def test_none_of_them_is_missing() -> None:
    assert len(LAYERS) == 34


@pytest.mark.parametrize("name", LAYERS)
def test_right_answer(name: str, tmp_path: Path) -> None:
    expected = expected_of(FIXTURES / name)
    stack = Stack(tmp_path)
    with canary():
        refusal = next(filter(None, map(stack.add, layers_of(FIXTURES / name))), None)
        if refusal is not None:
            assert expected["verdict"] in {"reject", "either"}, refusal
            assert refusal.reason == expected["reason"], refusal
            return
        assert expected["verdict"] in {"accept", "either"}
        with stack.mounted() as root:
            assert differences(root, expected) == []
            assert [path for path in root.rglob("*") if path.name.startswith(".wh.")] == []


def test_a_bomb_meets_the_limit(tmp_path: Path) -> None:
    stack = Stack(tmp_path, Limits(unpacked_bytes=16 * 1024**2))
    refusal = next(filter(None, map(stack.add, layers_of(FIXTURES / "d16-bomb"))))
    assert refusal.reason == "limit_exceeded"
    assert refusal.details["limit"] == "unpacked_bytes"
    assert refusal.details["bound"] == 16 * 1024**2
