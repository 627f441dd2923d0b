"""The parts of the host's builder that need no build: layouts, cache, logs, and which apt sources are Debian's own."""

import gzip
import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbay.adapters.builders import host, layout
from sandbay.adapters.builders.cache import BuildCache
from sandbay.adapters.builders.logs import FolderBuildLogs
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import PublishId
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from tests.support.tar_entries import file, tar

PLATFORM = Platform("linux", "arm64", "v9")
KEYS = ["sha256:" + f"{n:064x}" for n in range(4)]
PUBLISH = PublishId("pub_00000000000000000000")


def digest_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


@pytest.fixture
def image(tmp_path: Path) -> layout.BuiltImage:
    blobs = tmp_path / "image"
    blobs.mkdir()
    layers = [layout.add_layer(io.BytesIO(tar([file(name, b"1")])), blobs, name) for name in ("a", "b")]
    return layout.BuiltImage(blobs, tuple(layers), {"User": "agent", "Cmd": ["/bin/sh"]})


def test_a_layer_is_the_tar_packed_without_name_or_time(tmp_path: Path) -> None:
    plain = tar([file("x", b"content")])
    made = layout.add_layer(io.BytesIO(plain), tmp_path, "made")
    packed = (tmp_path / made.digest.removeprefix("sha256:")).read_bytes()
    assert gzip.decompress(packed) == plain
    assert packed[3:8] == bytes(5), "flags and time of the header"
    assert (made.digest, made.diff_id, made.size) == (digest_of(packed), digest_of(plain), len(packed))


def test_a_layout_has_one_manifest_and_canonical_documents(image: layout.BuiltImage, tmp_path: Path) -> None:
    folder = tmp_path / "layout"
    layout.write_layout(folder, image, PLATFORM)
    (entry,) = json.loads((folder / "index.json").read_bytes())["manifests"]
    assert entry["platform"] == {"os": "linux", "architecture": "arm64", "variant": "v9"}
    manifest = (folder / "blobs" / "sha256" / entry["digest"].removeprefix("sha256:")).read_bytes()
    assert manifest == json.dumps(json.loads(manifest), sort_keys=True, separators=(",", ":")).encode()
    assert layout.is_whole(folder)


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_bytes(b"{}")])
def test_a_damaged_layout_is_not_whole(
    image: layout.BuiltImage, tmp_path: Path, harm: Callable[[Path], object]
) -> None:
    layout.write_layout(tmp_path / "pattern", image, PLATFORM)
    victims = [path.relative_to(tmp_path / "pattern") for path in sorted((tmp_path / "pattern").rglob("*"))]
    for number, victim in enumerate(victims):
        folder = tmp_path / str(number)
        layout.write_layout(folder, image, PLATFORM)
        if (folder / victim).is_file() and victim.name != "oci-layout":
            blob = (folder / victim).read_bytes()
            (folder / victim).unlink()  # the blobs are hard links
            (folder / victim).write_bytes(blob)
            harm(folder / victim)
            assert not layout.is_whole(folder), victim


def test_what_a_build_adds_is_what_follows_its_base(image: layout.BuiltImage) -> None:
    below = [layer.diff_id for layer in image.layers]
    assert layout.on_base(image, [*below, "c"]) == ["c"]
    assert layout.on_base(image, below) == []
    assert layout.on_base(None, ["c"]) == ["c"]
    for wrong in ([], below[:1], below[::-1], ["c", *below]):
        with pytest.raises(RefusedError) as caught:
            layout.on_base(image, wrong)
        assert caught.value.refusal.reason is Reason.BUILD_FAILED


def test_the_cache_keeps_whole_layouts_and_the_newest_of_them(image: layout.BuiltImage, tmp_path: Path) -> None:
    layout.write_layout(tmp_path / "layout", image, PLATFORM)
    cache = BuildCache(tmp_path / "cache", kept=2)
    for key in KEYS[:3]:
        assert cache.find(key) is None
        cache.keep(key, tmp_path / "layout")
        cache.keep(key, tmp_path / "layout")
    assert cache.find(KEYS[2]) is not None
    assert len(list((tmp_path / "cache").iterdir())) == 2
    found = cache.find(KEYS[2])
    assert found is not None
    (found / "index.json").write_text("{}")
    assert cache.find(KEYS[2]) is None
    assert not found.exists()


def test_a_log_is_read_from_anywhere_and_bounded(tmp_path: Path) -> None:
    logs = FolderBuildLogs(tmp_path, limit=10, kept=2)
    for text in ("12345", "67890", "more", "more"):
        logs.add(PUBLISH, text)
    assert logs.read(PUBLISH, 3, 4) == b"4567"
    whole = logs.read(PUBLISH, 0, 1000)
    assert whole.startswith(b"1234567890")
    assert b"more" not in whole
    for number in range(3):
        logs.add(PublishId(f"pub_{number:020d}"[:24]), "x")
    assert len(list(tmp_path.iterdir())) == 2
    assert logs.read(PublishId("pub_99999999999999999999"), 0, 10) == b""


LINES = [
    ("deb http://mirror.example/debian bookworm main", True),
    ("deb [arch=amd64] http://mirror.example/debian bookworm-updates main contrib", True),
    ("deb [signed-by=/k/debian-archive-keyring.gpg] http://mirror.example/s bookworm-security main", True),
    ("deb [signed-by=/k/other.gpg] http://other.example/debian bookworm main", False),
    ("deb-src http://mirror.example/debian bookworm main", False),
    ("# deb http://mirror.example/debian bookworm main", False),
    ("deb http://mirror.example/debian trixie main", False),
    ("deb http://mirror.example/debian bookworm-backports main", False),
    ("deb http://other.example/tool bookworm stable", False),
    ("deb cdrom:[Debian 12]/ bookworm main # no comment", False),
    ("", False),
]


@pytest.mark.parametrize("line, taken", LINES)
def test_which_source_lines_are_debians_own(line: str, *, taken: bool) -> None:
    assert host.debian_entries(f"{line}\n", "bookworm", deb822=False) == ([line] if taken else [])


STANZA = "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\n"


@pytest.mark.parametrize(
    "stanza, taken",
    [
        (STANZA, True),
        (STANZA + "Signed-By: /k/debian-archive-keyring.gpg\n", True),
        (STANZA.replace("deb\n", "deb deb-src\n"), True),
        (STANZA.replace("Suites: bookworm ", "Suites:\n bookworm\n "), True),
        (STANZA + "Signed-By: /k/other.gpg\n", False),
        (STANZA + "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n", False),
        (STANZA + "Enabled: no\n", False),
        (STANZA.replace("Types: deb", "Types: deb-src"), False),
        (STANZA.replace("bookworm-updates", "trixie"), False),
        (STANZA.replace("Components: main", "Components: stable"), False),
    ],
)
def test_which_source_stanzas_are_debians_own(stanza: str, *, taken: bool) -> None:
    healthy = STANZA.replace("mirror", "healthy")
    found = host.debian_entries(f"# a comment\n{stanza}\n{healthy}", "bookworm", deb822=True)
    assert found == [*([stanza] if taken else []), healthy]
