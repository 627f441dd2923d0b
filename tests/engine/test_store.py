"""The layer store on real files, with the real confined unpacker."""

import dataclasses
import gzip
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from sandbay.domain.errors import RefusedError
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.domain.release import IMAGE_ID, MANIFEST_DIGEST, Artifact, Known, Variant
from sandbay.engine import layer_chain, linux
from sandbay.engine.layer_feed import unpack_layer
from sandbay.engine.limits import Limits
from sandbay.ports.provider import Phase, PrepareProgress
from tests.engine.store_support import AMD64, FIXTURES, NOTHING, Host, ignore, names
from tests.support.oci_layout import Layer, Layout, digest_of
from tests.support.tar_entries import Entry, file, folder, hardlink, opaque, symlink, tar, whiteout

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: unpacking sets owners and confines itself"),
]

INSIDE = {
    "d08-diff-id-wrong": Reason.DIFF_ID_MISMATCH,
    "d10-gzip-cut-inside": Reason.MALFORMED_LAYER,
    "d11-tar-garbage-inside": Reason.MALFORMED_LAYER,
    "d13-tar-cut-in-data": Reason.MALFORMED_LAYER,
}
READY = [
    *("d14-tar-no-end-blocks", "d16-bomb", "e01-attestation-first", "e06-same-platform-twice", "e08-nested-index"),
    *("e11-no-media-type", "e13-zstd", "e15-uncompressed", "e20-empty-layers", "e21-no-layers"),
]
BASE = [folder("etc"), file("etc/keep", b"lower")]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "layout")


@pytest.mark.parametrize("name, reason", INSIDE.items())
def test_what_is_wrong_inside_a_layer_is_named_and_leaves_nothing(name: str, reason: Reason, host: Host) -> None:
    variant = host.register(FIXTURES / name / "layout")
    assert host.verdict(variant) is reason
    assert host.count() == NOTHING
    assert host.store.held() == ()


@pytest.mark.parametrize("name", READY)
def test_awkward_but_sound_images_become_ready(name: str, host: Host) -> None:
    variant = host.register(FIXTURES / name / "layout")
    assert host.verdict(variant) is None
    assert host.store.held() == (variant.content_key,)
    for expected in json.loads((FIXTURES / name / "expected.json").read_bytes())["rootfs"]:
        content = host.content(variant, expected["path"])
        assert content is not None
        assert len(content) == expected.get("size", len(content))
        assert content == expected.get("content", content.decode()).encode()
    host.check_whole()


@pytest.mark.parametrize("tag, which", [("v1", b"v1\n"), ("latest", b"v2\n")])
def test_a_tag_is_only_looked_at_when_registering(tag: str, which: bytes, host: Host) -> None:
    variant = host.register(FIXTURES / "e28-tag-moved" / "layout", tag)
    assert host.verdict(variant) is None
    assert host.content(variant, "which") == which


def test_a_bomb_is_refused_by_the_limit_it_meets(tmp_path: Path) -> None:
    host = Host(tmp_path, Limits(unpacked_bytes=1 << 20))
    assert host.verdict(host.register(FIXTURES / "d16-bomb" / "layout")) is Reason.LIMIT_EXCEEDED
    assert host.count() == NOTHING


def test_the_limit_is_for_the_image_too(layout: Layout, tmp_path: Path) -> None:
    host = Host(tmp_path, Limits(unpacked_bytes=1000))
    layout.image([[file("a", bytes(600))], [file("b", bytes(600))]], platform=AMD64)
    with pytest.raises(RefusedError) as caught:
        host.store.prepare(host.register(layout.path), ignore)
    assert caught.value.refusal.details == {"limit": "unpacked_bytes", "value": 1200, "bound": 1000}
    assert host.count() == NOTHING


def test_the_record_tells_the_identity_and_the_stack(host: Host, layout: Layout) -> None:
    image = layout.image([BASE, [file("middle")], [file("top")]], {"User": "agent", "Cmd": ["sh"]}, platform=AMD64)
    variant = host.register(layout.path)
    assert host.verdict(variant) is None
    record = host.store.verified(variant.content_key)
    assert record.artifacts == {MANIFEST_DIGEST: image.manifest_digest, IMAGE_ID: image.image_id}
    assert (record.key, record.platform) == (variant.content_key, Platform("linux", "amd64"))
    assert (record.config.user, record.config.cmd) == ("agent", ("sh",))
    assert [names(record.layers_folder / lower) for lower in record.lowers] == [
        ["top"],
        ["middle"],
        ["etc"],
    ]
    assert all(len(lower) <= 8 for lower in record.lowers)
    assert (host.root / "l").stat().st_mode & 0o777 == 0o700


def test_preparing_again_reads_no_blob(host: Host, layout: Layout) -> None:
    layout.image([BASE], platform=AMD64)
    variant = host.register(layout.path)
    seen: list[PrepareProgress] = []
    host.store.prepare(variant, seen.append)
    host.blobs.opened.clear()
    for store in (host.store, host.restarted()):
        store.prepare(variant, seen.append)
    assert host.blobs.opened == []
    assert seen[-1] == PrepareProgress(Phase.COMMIT, variant.size, variant.size)


def test_progress_rises_to_all_bytes_through_the_phases(host: Host, layout: Layout) -> None:
    layout.image([[file("a", os.urandom(3 << 20))], BASE, BASE], platform=AMD64)
    variant = host.register(layout.path)
    seen: list[PrepareProgress] = []
    host.store.prepare(variant, seen.append)
    assert [each.bytes_done for each in seen] == sorted(each.bytes_done for each in seen)
    assert list(dict.fromkeys(each.phase for each in seen)) == [Phase.FETCH, Phase.UNPACK, Phase.COMMIT]
    assert {each.bytes_total for each in seen} == {variant.size} == {seen[-1].bytes_done}
    assert len(seen) > 5


def damage(path: Path, how: str) -> None:
    data = path.read_bytes()
    changes = {"flip": bytes([data[0] ^ 1]) + data[1:], "cut": data[:-1], "longer": data + b"\0"}
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes(changes[how])


@pytest.mark.parametrize("which", ["manifest", "config", "layer"])
@pytest.mark.parametrize(
    "how, reason",
    [
        ("flip", Reason.DIGEST_MISMATCH),
        ("cut", Reason.SIZE_MISMATCH),
        ("longer", Reason.SIZE_MISMATCH),
        ("gone", Reason.BLOB_MISSING),
    ],
)
def test_every_read_of_a_blob_is_a_verified_one(
    which: str, how: str, reason: Reason, host: Host, layout: Layout
) -> None:
    image = layout.image([BASE, [file("top")]], platform=AMD64)
    variant = host.register(layout.path)
    digests = {"manifest": image.manifest_digest, "config": image.image_id, "layer": image.layers[1].digest}
    path = host.blob_path(digests[which])
    good = path.read_bytes()
    damage(path, how)
    assert host.verdict(variant) is reason
    assert host.count() == NOTHING
    path.write_bytes(good)
    assert host.verdict(variant) is None


@pytest.mark.parametrize(
    "artifact, reason", [(IMAGE_ID, Reason.DIGEST_MISMATCH), (MANIFEST_DIGEST, Reason.BLOB_MISSING)]
)
def test_the_identity_is_computed_not_believed(artifact: str, reason: Reason, host: Host, layout: Layout) -> None:
    layout.image([BASE], platform=AMD64)
    variant = host.register(layout.path)
    other = {**variant.artifacts, artifact: Artifact(digest_of(b"another"), Known.COMPUTED)}
    assert host.verdict(dataclasses.replace(variant, artifacts=other)) is reason
    other = {name: value for name, value in variant.artifacts.items() if name != MANIFEST_DIGEST}
    assert host.verdict(dataclasses.replace(variant, artifacts=other)) is Reason.RELEASE_INCOMPLETE
    assert host.count() == NOTHING


def test_another_manifest_under_the_same_artifact_is_not_prepared(host: Host, layout: Layout) -> None:
    first = layout.image([BASE], platform=AMD64, ref="first")
    layout.image([[file("evil")]], platform=AMD64, ref="second")
    variant, other = host.register(layout.path, "first"), host.register(layout.path, "second")
    host.blob_path(first.manifest_digest).write_bytes(host.blob_path(str(other.digest)).read_bytes())
    assert host.verdict(variant) in (Reason.DIGEST_MISMATCH, Reason.SIZE_MISMATCH)
    assert host.count() == NOTHING


def test_the_platform_is_looked_at_again(host: Host, layout: Layout) -> None:
    layout.image([BASE], platform=AMD64)
    variant = host.register(layout.path)
    assert host.verdict(dataclasses.replace(variant, platform=Platform("linux", "s390x"))) is Reason.PLATFORM_MISMATCH
    assert host.count() == NOTHING


def test_one_layer_twice_in_an_image(host: Host, layout: Layout) -> None:
    twice = layout.layer([file("which", b"twice")])
    layout.image([twice, [file("which", b"between"), whiteout("gone")], twice], platform=AMD64)
    variant = host.register(layout.path)
    assert host.verdict(variant) is None
    record = host.store.verified(variant.content_key)
    assert len(record.lowers) == len(set(record.lowers)) == 2
    assert host.content(variant, "which") == b"twice"


def test_images_share_a_base_and_part_with_it_last(host: Host, layout: Layout) -> None:
    base = layout.layer([*BASE, file("big", bytes(1 << 20))])
    variants = {}
    for name in ("one", "two"):
        layout.image([base, [file("which", name)]], platform=AMD64, ref=name)
        variants[name] = host.register(layout.path, name)
        assert host.verdict(variants[name]) is None
    assert host.count() == {"staging": 0, "l": 3, "layers": 3, "records": 2, "meta/sha256": 4}
    for _ in range(2):
        host.store.remove(variants["one"].content_key)
        assert host.store.held() == (variants["two"].content_key,)
        assert host.content(variants["two"], "which") == b"two"
        assert host.content(variants["two"], "etc/keep") == b"lower"
        assert host.count() == {"staging": 0, "l": 2, "layers": 2, "records": 1, "meta/sha256": 2}
    host.store.remove(variants["two"].content_key)
    assert host.count() == NOTHING


def test_calls_at_once_unpack_each_layer_once(host: Host, layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked: list[str] = []
    start = threading.Barrier(6)

    def counted(blobs: object, layer: Layer, *args: object, **more: object) -> object:
        unpacked.append(layer.digest)
        return unpack_layer(blobs, layer, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(layer_chain, "unpack_layer", counted)
    base = layout.layer(BASE)
    for ref in ("one", "two"):
        layout.image([base, [file("which", ref)], [file("x" + ref)]], platform=AMD64, ref=ref)
    variants = [host.register(layout.path, ref) for ref in ("one", "two")]
    stores = [host.store, host.restarted()]

    def prepare(number: int) -> None:
        start.wait()
        stores[number % 2].prepare(variants[number % 3 % 2], ignore)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(prepare, range(6)))
    assert len(unpacked) == len(set(unpacked)) == 5
    assert set(host.store.held()) == {variant.content_key for variant in variants}
    host.check_whole()


def test_a_tree_that_is_here_changes_no_verdict(host: Host, layout: Layout) -> None:
    honest = layout.layer(BASE)
    layout.image([honest], platform=AMD64, ref="honest")
    assert host.verdict(host.register(layout.path, "honest")) is None
    plain = tar([file("etc/evil")])
    cut = gzip.compress(tar(BASE))[:-3]
    liars = {
        "other": (
            Layer(layout.blob(gzip.compress(plain)), honest.diff_id, 0, honest.media_type),
            Reason.DIFF_ID_MISMATCH,
        ),
        "cut": (Layer(layout.blob(cut), honest.diff_id, 0, honest.media_type), Reason.MALFORMED_LAYER),
        "type": (dataclasses.replace(honest, media_type=honest.media_type[:-5]), Reason.DIFF_ID_MISMATCH),
    }
    for ref, (layer, reason) in liars.items():
        sized = dataclasses.replace(layer, size=layout.blob_path(layer.digest).stat().st_size)
        layout.image([sized], platform=AMD64, ref=ref)
        assert host.verdict(host.register(layout.path, ref)) is reason
    host.check_whole()
    assert len(host.store.held()) == 1


@pytest.mark.parametrize("compression", ["plain", "zstd"])
def test_the_same_tar_packed_otherwise_is_the_same_tree(compression: str, host: Host, layout: Layout) -> None:
    for ref, packing in (("one", "gzip"), ("two", compression)):
        layout.image([layout.layer(BASE, packing)], platform=AMD64, ref=ref)  # type: ignore[arg-type]
        assert host.verdict(host.register(layout.path, ref)) is None
    assert host.count()["l"] == 1
    assert host.count()["records"] == 2
    host.blobs.opened.clear()
    layout.image([layout.layer(BASE, compression), [file("top")]], platform=AMD64, ref="three")  # type: ignore[arg-type]
    variant = host.register(layout.path, "three")
    host.blobs.opened.clear()
    assert host.verdict(variant) is None
    assert variant.layers[0].digest not in host.blobs.opened


def test_several_gzip_members_are_one_layer(host: Host, layout: Layout) -> None:
    plain = tar([file("a", os.urandom(5000)), file("b", b"last")])
    packed = b"".join(gzip.compress(plain[at : at + 1000]) for at in range(0, len(plain), 1000)) + bytes(100)
    layer = Layer(layout.blob(packed), digest_of(plain), len(packed), "application/vnd.oci.image.layer.v1.tar+gzip")
    layout.image([layer], platform=AMD64)
    variant = host.register(layout.path)
    assert host.verdict(variant) is None
    assert host.content(variant, "b") == b"last"


OVER_PARENTS: dict[str, tuple[list[list[Entry]], str]] = {
    "a hard link into a lower layer": ([[file("a", b"A")], [hardlink("b", "a")]], "b"),
    "a folder that is closed below": ([[folder("home", 0o700, uid=7)], [file("home/x", b"A")]], "home/x"),
    "a folder that is a link below": (
        [[folder("usr/bin"), symlink("bin", "usr/bin")], [file("bin/x", b"A")]],
        "usr/bin/x",
    ),
}


@pytest.mark.parametrize("layers, path", OVER_PARENTS.values(), ids=OVER_PARENTS)
def test_what_depends_on_lower_layers_is_unpacked_over_them(
    layers: list[list[Entry]], path: str, host: Host, layout: Layout
) -> None:
    layout.image(layers, platform=AMD64, ref="dependent")
    variant = host.register(layout.path, "dependent")
    assert host.verdict(variant) is None
    assert host.content(variant, path) == b"A"
    assert host.count() == {"staging": 0, "l": 2, "layers": 2, "records": 1, "meta/sha256": 2}
    host.blobs.opened.clear()
    layout.image([*layers, [file("top")]], platform=AMD64, ref="higher")
    higher = host.register(layout.path, "higher")
    host.blobs.opened.clear()
    assert host.verdict(higher) is None
    assert not {layer.digest for layer in variant.layers} & set(host.blobs.opened)
    assert host.count()["l"] == 3


def test_the_same_layer_over_plain_parents_stands_by_itself(host: Host, layout: Layout) -> None:
    upper = layout.layer([file("home/x", b"A")])
    for ref, mode in (("plain", 0o755), ("closed", 0o700)):
        layout.image([[folder("home", mode)], upper], platform=AMD64, ref=ref)
        assert host.verdict(host.register(layout.path, ref)) is None
    kinds = [json.loads(path.read_bytes())["kind"] for path in (host.root / "layers").iterdir()]
    assert sorted(kinds) == ["chain", "diff", "diff", "diff"]


@pytest.mark.parametrize("target, reason", [("/etc/passwd", Reason.UNSAFE_LINK), ("etc/x", Reason.MALFORMED_LAYER)])
@pytest.mark.parametrize("below", [[], [BASE]])
def test_a_hard_link_to_nothing(
    target: str, reason: Reason, below: list[list[Entry]], host: Host, layout: Layout
) -> None:
    layout.image([*below, [hardlink("b", target)]], platform=AMD64)
    assert host.verdict(host.register(layout.path)) is reason
    assert host.count() == NOTHING


def test_an_opaque_root_hides_all_below_it(host: Host, layout: Layout) -> None:
    layout.image([BASE, [opaque(""), file("only", b"this")], [file("top")]], platform=AMD64)
    variant = host.register(layout.path)
    assert host.verdict(variant) is None
    assert host.content(variant, "etc/keep") is None
    assert len(host.store.verified(variant.content_key).lowers) == 2


def prepared(host: Host, layout: Layout) -> Variant:
    layout.image([BASE, [file("top")]], platform=AMD64)
    variant = host.register(layout.path)
    assert host.verdict(variant) is None
    return variant


@pytest.mark.parametrize("where", ["l", "layers", "records", "meta/sha256"])
@pytest.mark.parametrize("how", ["flip", "cut", "gone", "other"])
def test_what_was_damaged_here_is_not_held_and_prepared_again(where: str, how: str, host: Host, layout: Layout) -> None:
    variant = prepared(host, layout)
    victim = min((host.root / where).iterdir())
    if where == "l":
        victim.rename(host.root / "elsewhere")
    elif how == "other":
        victim.write_bytes(b'{"key": "sha256:0"}')
    else:
        damage(victim, how)
    assert host.store.record(variant.content_key) is None
    assert host.store.held() == ()
    gone = (where, how) == ("records", "gone")
    with pytest.raises(RefusedError) as caught:
        host.store.verified(variant.content_key)
    assert caught.value.refusal.reason is (Reason.IMAGE_ABSENT_ON_NODE if gone else Reason.CONTENT_LOST)
    host.store = host.restarted()
    assert host.store.held() == ()
    assert host.verdict(variant) is None
    assert host.content(variant, "etc/keep") == b"lower"
    host.check_whole()


def test_a_record_of_other_documents_is_not_believed(host: Host, layout: Layout) -> None:
    variant = prepared(host, layout)
    other = Layout(host.root / "other")
    other.image([BASE, [file("top")]], {"User": "root"}, platform=AMD64)
    host.store.prepare(host.register(other.path), ignore)
    mine, *others = [json.loads(path.read_bytes()) for path in (host.root / "records").iterdir()]
    if mine["content_key"] != variant.content_key:
        mine, others = others[0], [mine]
    swapped = {**mine, "manifest_digest": others[0]["manifest_digest"]}
    name = variant.content_key.removeprefix("sha256:") + ".json"
    (host.root / "records" / name).write_text(json.dumps(swapped))
    assert host.store.record(variant.content_key) is None
    assert len(host.store.held()) == 1


def test_a_full_disk_is_no_space_and_leaves_nothing(tmp_path: Path, layout: Layout) -> None:
    small = tmp_path / "small"
    small.mkdir()
    linux.mount("tmpfs", small, "tmpfs", 0, "size=2m,mode=700")
    try:
        host = Host(tmp_path)
        host.root = small / "store"
        host.store = host.restarted()
        layout.image([BASE, [file("big", os.urandom(4 << 20))]], platform=AMD64)
        assert host.verdict(host.register(layout.path)) is Reason.NO_SPACE
        assert host.count() == NOTHING
    finally:
        linux.umount2(small)


PREPARER = """
import sys
from pathlib import Path
from tests.engine.store_support import Host, ignore
host = Host(Path(sys.argv[1]))
variant = host.register(Path(sys.argv[2]), sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
host.store.prepare(variant, ignore)
"""


def test_processes_share_one_store(host: Host, layout: Layout, tmp_path: Path) -> None:
    base = layout.layer([*BASE, *(file(f"many/{number}", os.urandom(100)) for number in range(200))])
    refs = ["one", "two", "three"]
    for ref in refs:
        layout.image([base, [file("which", ref)]], platform=AMD64, ref=ref)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with ExitStack() as running:
        preparers = [
            running.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", PREPARER, str(tmp_path), str(layout.path), ref],
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    cwd=Path(__file__).parents[2],
                )
            )
            for ref in refs
        ]
        assert [process.stdout and process.stdout.readline() for process in preparers] == [b"ready\n"] * 3
        for process in preparers:
            assert process.stdin
            process.stdin.write(b"\n")
            process.stdin.flush()
        for process in preparers:
            process.communicate()
        assert [process.returncode for process in preparers] == [0, 0, 0]
    variants = [host.register(layout.path, ref) for ref in refs]
    assert set(host.store.held()) == {variant.content_key for variant in variants}
    assert host.count()["l"] == 4
    assert [host.content(variant, "which") for variant in variants] == [ref.encode() for ref in refs]
    host.check_whole()
