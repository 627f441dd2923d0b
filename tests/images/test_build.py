"""The pure parts of the images' build. The build itself runs in ./dev quickstart and in tests/e2e."""

import gzip
import io
import json
import pathlib
import subprocess
import sys
from collections.abc import Callable

import pytest

from images.building import builder, host, layout, recipe

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def image(tmp_path: pathlib.Path) -> layout.Image:
    blobs = tmp_path / "image"
    blobs.mkdir()
    first = layout.add_layer(io.BytesIO(layout.small_tar("etc/a", b"1")), blobs, "first")
    second = layout.add_layer(io.BytesIO(layout.small_tar("etc/b", b"2")), blobs, "second")
    return layout.Image(blobs, (first, second), {"User": "agent", "Cmd": ["/bin/sh"]})


def test_a_layer_is_the_tar_gzipped_without_name_or_time(tmp_path: pathlib.Path) -> None:
    tar = layout.small_tar("etc/x", b"content")
    made = layout.add_layer(io.BytesIO(tar), tmp_path, "made")
    packed = (tmp_path / made.digest.removeprefix("sha256:")).read_bytes()
    assert gzip.decompress(packed) == tar
    assert packed[3:8] == bytes(5), "flags and mtime of the gzip header"
    assert (made.digest, made.diff_id, made.size) == (
        layout.digest_of(packed),
        layout.digest_of(tar),
        len(packed),
    )


def test_a_small_tar_holds_its_folders_and_the_file(tmp_path: pathlib.Path) -> None:
    tar = layout.small_tar("a/b/revision", b"7\n")
    listing = subprocess.run(
        ["tar", "--list", "--verbose", "--numeric-owner", "--utc", "--file=-"],
        input=tar,
        capture_output=True,
        check=True,
    )
    lines = [" ".join(line.split()) for line in listing.stdout.decode().splitlines()]
    assert lines == [
        "drwxr-xr-x 0/0 0 2023-06-10 00:00 a/",
        "drwxr-xr-x 0/0 0 2023-06-10 00:00 a/b/",
        "-rw-r--r-- 0/0 2 2023-06-10 00:00 a/b/revision",
    ]
    subprocess.run(["tar", "--extract", f"--directory={tmp_path}"], input=tar, check=True)
    assert (tmp_path / "a" / "b" / "revision").read_bytes() == b"7\n"


def test_a_layout_has_one_manifest_for_this_host_and_reads_back(image: layout.Image, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "layout"
    digest = layout.write_layout(folder, "it", image)
    index = json.loads((folder / "index.json").read_bytes())
    assert [(entry["digest"], entry["annotations"], entry["platform"]) for entry in index["manifests"]] == [
        (digest, {layout.REF_NAME: "it"}, {"os": "linux", "architecture": layout.architecture()})
    ]
    read_digest, read = layout.read_layout(folder)
    assert (read_digest, read.layers, read.config) == (digest, image.layers, image.config)


def test_documents_are_canonical_and_point_at_each_other(image: layout.Image) -> None:
    config, manifest = layout.documents(image)
    for document in (config, manifest):
        assert document == layout.canonical(json.loads(document))
    assert json.loads(manifest)["config"]["digest"] == layout.digest_of(config)
    assert json.loads(config)["rootfs"]["diff_ids"] == [layer.diff_id for layer in image.layers]
    assert len(json.loads(config)["history"]) == len(json.loads(manifest)["layers"]) == len(image.layers)


@pytest.mark.parametrize("victim", ["index.json", "manifest", "config", "layer"])
@pytest.mark.parametrize("harm", [pathlib.Path.unlink, lambda path: path.write_bytes(b"{}")])
def test_a_damaged_layout_is_never_read(
    image: layout.Image, tmp_path: pathlib.Path, victim: str, harm: Callable[[pathlib.Path], object]
) -> None:
    folder = tmp_path / "layout"
    layout.write_layout(folder, "it", image)
    config, manifest = layout.documents(image)
    digests = {
        "manifest": layout.digest_of(manifest),
        "config": layout.digest_of(config),
        "layer": image.layers[1].digest,
    }
    blobs = folder / "blobs" / "sha256"
    harm(folder / victim if victim == "index.json" else blobs / digests[victim].removeprefix("sha256:"))
    with pytest.raises(host.BuildError):
        layout.read_layout(folder)


@pytest.mark.parametrize(
    "base, built, new",
    [
        (["a"], ["a", "b"], ("b",)),
        (["a", "b"], ["a", "b", "c", "d"], ("c", "d")),
        (["a"], ["a"], ()),
        (["a"], ["a", "a"], ("a",)),
    ],
)
def test_what_a_build_adds_is_what_follows_its_base(base: list[str], built: list[str], new: tuple[str, ...]) -> None:
    assert layout.new_diff_ids(base, built) == new


@pytest.mark.parametrize("built", [[], ["a"], ["b", "a"], ["x", "a", "b"], ["a", "x", "b"]])
def test_a_build_that_is_not_on_its_base_is_refused(built: list[str]) -> None:
    with pytest.raises(host.BuildError, match="base's layers"):
        layout.new_diff_ids(["a", "b"], built)


@pytest.fixture
def images(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder of images: `top` on `low`, `low` from packages."""
    folder = tmp_path / "images"
    for name, base in (("top", "image:low"), ("low", "bootstrap:debian:12")):
        (folder / name).mkdir(parents=True)
        (folder / name / "image.toml").write_text(f'name = "{name}"\nbase = "{base}"\n')
    (folder / "top" / "Containerfile").write_text("ARG BASE\nFROM ${BASE}\n")
    (folder / "top" / "run.sh").write_text("true\n")
    return folder


def _key(images: pathlib.Path, parent: str = "sha256:aa") -> str:
    return recipe.content_key(recipe.load("top", images), parent)


CHANGES: dict[str, Callable[[pathlib.Path], object]] = {
    "content": lambda top: (top / "run.sh").write_text("false\n"),
    "a new file": lambda top: (top / "more").write_text(""),
    "a name": lambda top: (top / "run.sh").rename(top / "walk.sh"),
    "the executable bit": lambda top: (top / "run.sh").chmod(0o755),
    "a link": lambda top: (top / "link").symlink_to("run.sh"),
    "image.toml": lambda top: (top / "image.toml").write_text('name = "top"\nbase = "image:other"\n'),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_every_input_changes_the_key(images: pathlib.Path, change: Callable[[pathlib.Path], object]) -> None:
    before = _key(images)
    change(images / "top")
    assert _key(images) != before


def test_the_base_changes_the_key(images: pathlib.Path) -> None:
    assert _key(images, "sha256:aa") != _key(images, "sha256:ab")


def test_time_umask_and_neighbours_do_not_change_the_key(images: pathlib.Path) -> None:
    before = _key(images)
    (images / "top" / "run.sh").touch()
    (images / "top" / "run.sh").chmod(0o664)
    (images / "low" / "more").write_text("")
    assert _key(images) == before


@pytest.mark.parametrize(
    "text, complaint",
    [
        ('name = "other"\nbase = "image:low"', "like its folder"),
        ('name = "top"', "base has to be"),
        ('name = "top"\nbase = "image:"', "base has to be"),
        ('name = "top"\nbase = "bootstrap:debian:99"', "base has to be"),
        ("name = ", "not TOML"),
    ],
)
def test_a_bad_recipe_is_refused_in_one_line(images: pathlib.Path, text: str, complaint: str) -> None:
    (images / "top" / "image.toml").write_text(text)
    with pytest.raises(host.BuildError, match=complaint) as refusal:
        recipe.load("top", images)
    assert "\n" not in str(refusal.value)


def test_an_unknown_image_is_answered_with_the_known_ones(images: pathlib.Path) -> None:
    with pytest.raises(host.BuildError, match="no image is called web: there are low, top"):
        recipe.load("web", images)


def _stamped(image: layout.Image, revision: int, work: pathlib.Path) -> layout.Image:
    work.mkdir()
    finished = builder.Finished("sha256:aa", image, work, "bookworm")
    builder.stamped_layout("review", finished, revision, work)
    return layout.read_layout(work / "layout")[1]


def test_a_revision_is_one_tiny_layer_and_a_label(image: layout.Image, tmp_path: pathlib.Path) -> None:
    first, second = (_stamped(image, number, tmp_path / str(number)) for number in (1, 2))
    assert first.layers[:-1] == second.layers[:-1] == image.layers
    assert first.layers[-1].diff_id != second.layers[-1].diff_id
    assert second.config == {**image.config, "Labels": {builder.REVISION_LABEL: "2"}}
    marker = gzip.decompress((second.folder / second.layers[-1].digest.removeprefix("sha256:")).read_bytes())
    assert marker == layout.small_tar("etc/review-revision", b"2\n")


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


@pytest.mark.parametrize(
    "arguments, code, says",
    [
        (["--help"], 0, "exit codes"),
        ([], 2, "required"),
        (["review", "--out", "OUT", "--revision", "0"], 2, "counts from 1"),
        (["web", "--out", "OUT"], 1, "images/build.py: "),
    ],
)
def test_the_command_line_answers_without_a_traceback(
    tmp_path: pathlib.Path, arguments: list[str], code: int, says: str
) -> None:
    script = [sys.executable, str(ROOT / "images" / "build.py")]
    placed = [str(tmp_path / "out") if argument == "OUT" else argument for argument in arguments]
    done = subprocess.run([*script, *placed], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert says in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
