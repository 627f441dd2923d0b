"""Files: the routes, and copies that stay below their target whatever the sandbox answers."""

import os
import pathlib
import stat
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from sandbay.sdk.copying import DEEPEST
from sandbay.sdk.errors import RequestError, SandbayError, TransferError
from tests.support.scripted_http import SESSION, Answer, Asked, page, refusal, scripted

Connect = Callable[[str], Any]
BASE = f"/v1/sessions/{SESSION}/files"


def entry(name: str, kind: str = "file", **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": kind, "size": 1, "mode": 0o644, "uid": 0, "gid": 0, "mtime": 0.0, **more}


Tree = Mapping[str, Any]
"""Path → bytes of a file, or a list of entries of a folder."""


def sandbox(tree: Tree) -> Callable[[Asked], Answer]:
    """A sandbox's files, exactly as the tree says them, however odd that is."""

    def script(asked: Asked) -> Answer:
        found = tree.get(asked.query.get("path", ""))
        if asked.method in {"PUT", "POST"}:
            return Answer(204, b"")
        if found is None:
            return refusal(422, "path_not_found", param="path")
        if asked.path.endswith("/stat"):
            return Answer(body=entry("x", "directory" if isinstance(found, list) else "file"))
        if asked.path.endswith("/content"):
            return Answer(pieces=[found[:2], found[2:]] if len(found) > 2 else [found], type="application/octet-stream")
        return page(*found)

    return script


@pytest.fixture
def outside(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A folder that must not change; copies go to `target` beside it."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text("untouched")
    (tmp_path / "target").mkdir()
    yield folder
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"secret": "untouched"}
    assert {path.name for path in tmp_path.iterdir()} == {"outside", "target"}


def test_a_tree_comes_out_as_it_is(sdk: Any, connect: Connect, tmp_path: pathlib.Path) -> None:
    tree: Tree = {
        "/src": [entry("a.txt"), entry("run", mode=0o4755), entry("sub", "directory"), entry("empty", "directory")],
        "/src/a.txt": b"hello",
        "/src/run": b"#!",
        "/src/sub": [entry("ünï\n"), entry("raw\udcff%41+&")],
        "/src/sub/raw\udcff%41+&": b"",
        "/src/sub/ünï\n": b"",
        "/src/empty": [],
    }
    with scripted(sandbox(tree)) as server:
        done = sdk.Files(connect(server.url), SESSION).copy_out("/src", tmp_path / "copy")
    copy = tmp_path / "copy"
    assert (copy / "a.txt").read_bytes() == b"hello"
    assert (copy / "sub/ünï\n").read_bytes() == b""
    assert (copy / "sub" / "raw\udcff%41+&").is_file()
    assert (copy / "empty").is_dir()
    assert stat.S_IMODE((copy / "run").stat().st_mode) & 0o7700 == 0o700
    assert (done.files, done.bytes, done.skipped) == (4, 7, [])
    assert not list(copy.glob("**/.sandbay-*"))


def test_into_a_folder_or_under_its_own_name(sdk: Any, connect: Connect, tmp_path: pathlib.Path) -> None:
    tree: Tree = {"/w/f": b"x", "/w": [entry("f")], "/": [entry("f")], "//f": b"no", "/f": b"root"}
    with scripted(sandbox(tree)) as server:
        files = sdk.Files(connect(server.url), SESSION)
        (tmp_path / "there").mkdir()
        files.copy_out("/w", tmp_path / "there")
        files.copy_out("/w/f", tmp_path / "there")
        files.copy_out("/w/f", tmp_path / "named")
        files.copy_out("/", tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == [
        "f",
        "named",
        "there/f",
        "there/w/f",
    ]
    assert (tmp_path / "f").read_bytes() == b"root"


def open_files() -> int:
    return len(list(pathlib.Path("/proc/self/fd").iterdir()))


HOSTILE = ["../evil", "..", ".", "", "/etc/evil", "a/b", "../outside/secret", "a\0b", "\ud800"]


@pytest.mark.parametrize("kind", ["file", "directory"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_leads_elsewhere_is_refused(
    sdk: Any, connect: Connect, outside: pathlib.Path, tmp_path: pathlib.Path, name: str, kind: str
) -> None:
    class Everything(dict[str, Any]):
        def get(self, path: str, default: object = None) -> Any:
            return [entry(name, kind)] if path == "/src" else b"evil" if kind == "file" else []

    with scripted(sandbox(Everything())) as server:
        with pytest.raises(RequestError) as caught:
            sdk.Files(connect(server.url), SESSION).copy_out("/src", tmp_path / "target")
        assert caught.value.code == "path_invalid"
    assert list((tmp_path / "target").rglob("*")) == [tmp_path / "target" / "src"]


def test_a_link_in_the_target_is_replaced_never_followed(
    sdk: Any, connect: Connect, outside: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "target" / "src").mkdir()
    (tmp_path / "target" / "src" / "f").symlink_to(outside / "secret")
    with scripted(sandbox({"/src": [entry("f")], "/src/f": b"new"})) as server:
        sdk.Files(connect(server.url), SESSION).copy_out("/src", tmp_path / "target")
    assert not (tmp_path / "target/src/f").is_symlink()
    assert (tmp_path / "target/src/f").read_bytes() == b"new"


@pytest.mark.parametrize("where", ["outside", "outside/secret", "nowhere"])
def test_a_link_where_a_folder_belongs_is_refused(
    sdk: Any, connect: Connect, outside: pathlib.Path, tmp_path: pathlib.Path, where: str
) -> None:
    (tmp_path / "target" / "src").mkdir()
    (tmp_path / "target" / "src" / "d").symlink_to(tmp_path / where)
    tree: Tree = {"/src": [entry("d", "directory")], "/src/d": [entry("secret")], "/src/d/secret": b"evil"}
    with scripted(sandbox(tree)) as server, pytest.raises(RequestError):
        sdk.Files(connect(server.url), SESSION).copy_out("/src", tmp_path / "target")


def test_the_sandboxs_links_and_devices_are_reported_not_made(
    sdk: Any, connect: Connect, outside: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    tree: Tree = {
        "/src": [entry("l", "symlink", target=str(outside)), entry("n", "other"), entry("l", "directory"), entry("f")],
        "/src/l": [entry("secret")],
        "/src/l/secret": b"evil",
        "/src/f": b"x",
    }
    with scripted(sandbox(tree)) as server:
        done = sdk.Files(connect(server.url), SESSION).copy_out("/src", tmp_path / "target")
    assert [path for path, _ in done.skipped] == ["/src/l", "/src/n"]
    assert (tmp_path / "target/src/l").is_dir()
    assert (tmp_path / "target/src/l/secret").read_bytes() == b"evil"


def test_a_file_does_not_replace_a_folder(sdk: Any, connect: Connect, tmp_path: pathlib.Path) -> None:
    (tmp_path / "src" / "d").mkdir(parents=True)
    with scripted(sandbox({"/src": [entry("d")], "/src/d": b"x"})) as server, pytest.raises(RequestError):
        sdk.Files(connect(server.url), SESSION).copy_out("/src", tmp_path)
    assert [path.name for path in (tmp_path / "src").iterdir()] == ["d"]


def test_bytes_that_break_off_leave_the_old_file(sdk: Any, connect: Connect, tmp_path: pathlib.Path) -> None:
    (tmp_path / "f").write_text("old")

    def script(asked: Asked) -> Answer:
        if asked.path.endswith("/stat"):
            return Answer(body=entry("f"))
        return Answer(pieces=[b"half"], type="application/octet-stream", drop=True)

    with scripted(script) as server:
        with pytest.raises(TransferError) as caught:
            sdk.Files(connect(server.url), SESSION).copy_out("f", tmp_path / "f")
        assert caught.value.code == "stream_lost"
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("f", "old")]


def test_folders_without_end_are_ended(sdk: Any, connect: Connect, tmp_path: pathlib.Path) -> None:
    class Endless(dict[str, Any]):
        def get(self, path: str, default: object = None) -> Any:
            return [entry("d", "directory")]

    before = open_files()
    with scripted(sandbox(Endless())) as server:
        transport = connect(server.url)
        with pytest.raises(RequestError, match=str(DEEPEST)):
            sdk.Files(transport, SESSION).copy_out("d", tmp_path)
        transport.close()
    assert open_files() <= before


def test_a_tree_goes_in_without_what_it_links_to(sdk: Any, connect: Connect, tmp_path: pathlib.Path) -> None:
    (tmp_path / "secret").write_text("host secret")
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "a").write_bytes(b"x" * 300_000)
    (source / "sub" / "b").write_text("b")
    (source / "run").write_text("#!")
    (source / "run").chmod(0o755)
    (source / "link").symlink_to(tmp_path / "secret")
    (source / "folder-link").symlink_to(tmp_path)
    os.mkfifo(source / "pipe")
    with scripted(sandbox({})) as server:
        done = sdk.Files(connect(server.url), SESSION).copy_in(source, "/w")
        puts = {asked.query["path"]: asked for asked in server.asked if asked.method == "PUT"}
        folders = [asked.query["path"] for asked in server.asked if asked.path == f"{BASE}/folder"]
    assert sorted(puts) == ["/w/a", "/w/run", "/w/sub/b"]
    assert puts["/w/a"].body == b"x" * 300_000
    assert int(puts["/w/run"].query["mode"]) & 0o777 == 0o755
    assert folders == ["/w", "/w/sub"]
    assert sorted(pathlib.Path(path).name for path, _ in done.skipped) == ["folder-link", "link", "pipe"]
    assert done.files == 3


def test_a_file_goes_into_a_folder_that_is_there(sdk: Any, connect: Connect, tmp_path: pathlib.Path) -> None:
    (tmp_path / "f").write_text("x")
    with scripted(sandbox({"/w": []})) as server:
        sdk.Files(connect(server.url), SESSION).copy_in(tmp_path / "f", "/w")
        assert server.asked[-1].query["path"] == "/w/f"


def test_a_file_is_sent_again_whole(sdk: Any, connect: Connect, tmp_path: pathlib.Path) -> None:
    (tmp_path / "f").write_bytes(b"y" * 1000)
    turns = iter([Answer(drop=True), Answer(204, b"")])

    def script(asked: Asked) -> Answer:
        return next(turns) if asked.method == "PUT" else refusal(422, "path_not_found")

    with scripted(script) as server:
        sdk.Files(connect(server.url), SESSION).copy_in(tmp_path / "f", "/f")
        assert [asked.body for asked in server.asked if asked.method == "PUT"] == [b"y" * 1000] * 2


@pytest.mark.parametrize("data, body", [(b"\0\1", b"\0\1"), ("é", b"\xc3\xa9"), ([b"a", b"b"], b"ab"), (b"", b"")])
def test_write_takes_bytes_text_and_pieces(sdk: Any, connect: Connect, data: Any, body: bytes) -> None:
    with scripted(lambda asked: Answer(204, b"")) as server:
        sdk.Files(connect(server.url), SESSION).write(
            "a b/ü&x", iter(data) if isinstance(data, list) else data, mode=0o600
        )
        assert server.asked[0].what == f"PUT {BASE}/content"
        assert server.asked[0].query == {"path": "a b/ü&x", "mode": str(0o600)}
        assert server.asked[0].body == body


def test_pieces_are_not_sent_twice(sdk: Any, connect: Connect) -> None:
    with scripted(lambda asked: Answer(drop=True)) as server:
        with pytest.raises(SandbayError):
            sdk.Files(connect(server.url), SESSION).write("f", iter([b"a"]))
        assert len(server.asked) == 1


def test_the_other_calls(sdk: Any, connect: Connect) -> None:
    with scripted(sandbox({"d": [entry("f", size=5)], ".": [], "f": b"12345"})) as server:
        files = sdk.Files(connect(server.url), SESSION)
        assert [(found.name, found.size) for found in files.list("d")] == [("f", 5)]
        assert files.list() == []
        assert files.read("f") == b"12345"
        assert files.stat("d").kind == "directory"
        files.make_folder("n")
        files.move("a", "b")
        assert server.asked[-1].json == {"source": "a", "target": "b"}
        with pytest.raises(RequestError):
            files.remove("nothing")
        assert server.whats()[-3:] == [f"POST {BASE}/folder", f"POST {BASE}/move", f"DELETE {BASE}"]
