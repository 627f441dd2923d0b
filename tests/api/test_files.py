"""Files through the API: streamed both ways, whatever their names are, refused by name."""

import io
import json
import os
import threading
from collections.abc import Iterator

import pytest

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from tests.api.served import SESSIONS, Served, answered, refused
from tests.app.world import eventually

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def files(shared: Served) -> str:
    return f"{SESSIONS}/{shared.session()['id']}/files"


def test_write_read_list_move_remove(shared: Served, files: str) -> None:
    client = shared.project
    assert client.put(f"{files}/content", params={"path": "a/b.txt", "mode": 0o600}, content=b"hi").status_code == 204
    assert client.get(f"{files}/content", params={"path": "/workspace/a/b.txt"}).content == b"hi"
    told = answered(client.get(f"{files}/stat", params={"path": "a/b.txt"}))
    assert (told["name"], told["kind"], told["size"], told["mode"] & 0o777) == ("b.txt", "file", 2, 0o600)
    assert client.post(f"{files}/folder", params={"path": "a/sub/deep"}).status_code == 204
    assert client.post(f"{files}/folder", params={"path": "a/sub/deep"}).status_code == 204
    assert client.post(f"{files}/move", json={"source": "a/b.txt", "target": "a/c.txt"}).status_code == 204
    listed = answered(client.get(files, params={"path": "a"}))["items"]
    assert [(it["name"], it["kind"]) for it in listed] == [("c.txt", "file"), ("sub", "directory")]
    assert client.delete(files, params={"path": "a"}).status_code == 204
    refused(client.get(f"{files}/stat", params={"path": "a"}), 422, "path_not_found", "path")


def test_bytes_are_the_same_both_ways(shared: Served, files: str) -> None:
    data = os.urandom(5 * MIB + 7)
    chunks = (data[start : start + 100_000] for start in range(0, len(data), 100_000))
    assert shared.project.put(f"{files}/content", params={"path": "big"}, content=chunks).status_code == 204
    response = shared.project.get(f"{files}/content", params={"path": "big"})
    assert response.headers["content-type"] == "application/octet-stream"
    assert response.content == data
    assert shared.project.put(f"{files}/content", params={"path": "big"}, content=b"").status_code == 204
    assert shared.project.get(f"{files}/content", params={"path": "big"}).content == b""


@pytest.mark.parametrize("name", [b"sp ace", "é中".encode(), b"\xff\xfe", b"a\xffb", b"100%", b"a+b&c=d#e?f", b"\n"])
def test_any_name_that_linux_takes(shared: Served, files: str, name: bytes) -> None:
    quoted = "".join(f"%{byte:02x}" for byte in name)
    assert shared.project.put(f"{files}/content?path=names/{quoted}", content=name).status_code == 204
    listed = answered(shared.project.get(files, params={"path": "names"}))["items"]
    assert name in [os.fsencode(it["name"]) for it in listed]
    assert shared.project.get(f"{files}/content?path=names/{quoted}").content == name
    moved = {"source": os.fsdecode(b"names/" + name), "target": os.fsdecode(b"moved/" + name)}
    assert shared.project.post(f"{files}/folder?path=moved").status_code == 204
    response = shared.project.request(
        "POST", f"{files}/move", content=json.dumps(moved), headers={"Content-Type": "application/json"}
    )
    assert response.status_code == 204, response.text
    assert shared.project.get(f"{files}/content?path=moved/{quoted}").content == name


def test_a_long_folder_comes_in_pages(shared: Served, files: str) -> None:
    names = [f"f{n:03d}" for n in range(25)]
    for name in names:
        shared.project.put(f"{files}/content", params={"path": f"many/{name}"}, content=b"")
    got: list[str] = []
    after: str | None = None
    while True:
        cursor = f"&after={after}" if after else ""
        page = answered(shared.project.get(f"{files}?path=many&limit=10{cursor}"))
        got += [it["name"] for it in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert got == names


@pytest.mark.produces(Reason.PATH_NOT_FOUND, Reason.PATH_INVALID)
def test_paths_that_cannot_be_used(shared: Served, files: str) -> None:
    client = shared.project
    client.put(f"{files}/content", params={"path": "plain"}, content=b"x")
    refused(client.get(f"{files}/content", params={"path": "nope"}), 422, "path_not_found", "path")
    refused(client.get(files, params={"path": "plain"}), 422, "path_invalid", "path")
    refused(client.get(f"{files}/content", params={"path": "/workspace"}), 422, "path_invalid", "path")
    refused(client.put(f"{files}/content", params={"path": "plain/below"}, content=b"x"), 422, "path_invalid", "path")
    refused(client.delete(files, params={"path": "nope"}), 422, "path_not_found", "path")


class Endless(io.RawIOBase):
    """A file that has no end; `closed_by` is set when it is closed."""

    def __init__(self, gone: threading.Event) -> None:
        self._gone = gone

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return bytes(size)

    def close(self) -> None:
        self._gone.set()


def test_a_reader_that_goes_away_lets_the_file_go(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.image("web")
    path = f"{SESSIONS}/{served.session()['id']}/files/content"
    gone = threading.Event()
    monkeypatch.setattr("tests.fakes.memory_files.MemoryFiles.read", lambda *_: Endless(gone))
    with served.project.stream("GET", path, params={"path": "x"}) as response:
        chunks = response.iter_raw()  # kept: dropping it would end the connection
        next(chunks)
        assert not gone.is_set()
    assert gone.wait(20)


def test_a_writer_that_goes_away_leaves_no_file(served: Served) -> None:
    served.image("web")
    files = f"{SESSIONS}/{served.session()['id']}/files"

    def half() -> Iterator[bytes]:
        yield b"x" * MIB
        raise ConnectionAbortedError("the client dies")

    with pytest.raises(ConnectionAbortedError):
        served.project.put(f"{files}/content", params={"path": "half"}, content=half())
    eventually(lambda: served.project.get(f"{files}/stat", params={"path": "half"}).status_code == 422)
    refused(served.project.get(f"{files}/stat", params={"path": "half"}), 422, "path_not_found", "path")


@pytest.mark.produces(Reason.NO_SPACE)
def test_a_full_disk_says_so(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.image("web")
    files = f"{SESSIONS}/{served.session()['id']}/files"

    def full(*_: object) -> None:
        raise RefusedError(Reason.NO_SPACE, "the disk is full")

    monkeypatch.setattr("tests.fakes.memory_files.MemoryFiles.write", full)
    refused(served.project.put(f"{files}/content", params={"path": "x"}, content=b"x"), 507, "no_space")
