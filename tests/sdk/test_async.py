"""What only the asynchronous client has to answer for: the loop goes on, and a cancellation leaves nothing."""

import asyncio
import os
import pathlib
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

import sandbay
from sandbay import AsyncAdminClient, AsyncClient, AsyncSandbox
from sandbay.sdk import Progress
from sandbay.sdk._async.files import AsyncFiles
from sandbay.sdk._async.transport import AsyncTransport
from tests.support.scripted_http import DIGEST, SESSION, Answer, Asked, refusal, scripted, session

CREATE, DELETE = "POST /v1/sessions", f"DELETE /v1/sessions/{SESSION}"


def on_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """The test on a loop of its own; it keeps its name and takes the two fixtures that tests here need."""

    def run(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        asyncio.run(test(tmp_path, monkeypatch))

    run.__name__ = test.__name__
    return run


Held = Callable[..., Any]


def held_until(loop_ran: threading.Event, function: Held) -> Held:
    """The function, which goes on only when the loop has."""

    def hold(*args: Any, **options: Any) -> Any:
        assert loop_ran.wait(30), "the loop stood still meanwhile"
        return function(*args, **options)

    return hold


@on_a_loop
async def test_reading_and_writing_files_leaves_the_loop_free(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_bytes(b"x" * 1000)
    loop_ran = threading.Event()
    monkeypatch.setattr(os, "read", held_until(loop_ran, os.read))

    arrived = threading.Event()

    def script(asked: Asked) -> Answer:
        arrived.set()
        return Answer(204, b"") if asked.method == "PUT" else refusal(422, "path_not_found")

    with scripted(script) as server:
        transport = AsyncTransport(server.url, "k")
        copy = asyncio.create_task(AsyncFiles(transport, SESSION).copy_in(tmp_path / "f", "/f"))
        assert await asyncio.to_thread(arrived.wait, 30)
        loop_ran.set()
        assert (await copy).files == 1
        await transport.aclose()
        assert server.asked[-1].body == b"x" * 1000


@on_a_loop
async def test_an_upload_leaves_the_loop_free_and_tells_of_it_there(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.tar").write_bytes(b"x" * 3_000_000)
    told: list[tuple[int, threading.Thread]] = []
    loop_ran = threading.Event()
    opened = pathlib.Path.open
    monkeypatch.setattr(pathlib.Path, "open", held_until(loop_ran, opened))

    def script(asked: Asked) -> Answer:
        body = {"id": "upl_1"} if asked.path.endswith("uploads") else {"name": "web", "state": "active", "revision": 1}
        release = {"id": "rel_1", "image": "img_1", "number": 1, "state": "pending", "variants": []}
        return Answer(201, release if asked.path.endswith("releases") else {"id": "img_1", **body})

    def progress(now: Progress) -> None:
        told.append((now.bytes_done, threading.current_thread()))

    with scripted(script) as server:
        async with AsyncAdminClient(server.url, "k") as admin:
            upload = asyncio.create_task(admin.images.register_archive("web", tmp_path / "a.tar", progress=progress))
            await asyncio.sleep(0.01)
            loop_ran.set()
            assert (await upload).number == 1
    assert told[-2][0] == 3_000_000
    assert {thread for _, thread in told} == {threading.current_thread()}


@on_a_loop
async def test_a_cancelled_create_finds_out_what_was_made_and_ends_it(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived, answering = threading.Event(), threading.Event()

    def script(asked: Asked) -> Answer:
        arrived.set()
        if asked.what == CREATE and not answering.is_set():
            answering.wait(30)
        return Answer(200, session("ending" if asked.method == "DELETE" else "running"))

    with scripted(script) as server:
        async with AsyncClient(server.url, "k") as client:
            create = asyncio.create_task(AsyncSandbox.create("web", client=client))
            assert await asyncio.to_thread(arrived.wait, 30)
            create.cancel()
            await asyncio.sleep(0)
            answering.set()
            with pytest.raises(asyncio.CancelledError):
                await create
        assert server.whats() == [CREATE, CREATE, DELETE]
        assert server.asked[0].headers["idempotency-key"] == server.asked[1].headers["idempotency-key"]


@on_a_loop
async def test_a_cancelled_block_ends_its_session(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    within = asyncio.Event()

    async def work(client: AsyncClient) -> None:
        async with await AsyncSandbox.create("web", client=client):
            within.set()
            await asyncio.Event().wait()

    with scripted(lambda asked: Answer(200, session())) as server:
        async with AsyncClient(server.url, "k") as client:
            task = asyncio.create_task(work(client))
            await within.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert server.whats() == [CREATE, DELETE]


@on_a_loop
async def test_pieces_may_come_from_the_loop(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"a"
        await asyncio.sleep(0)
        yield b"b"

    with scripted(lambda asked: Answer(204, b"")) as server:
        transport = AsyncTransport(server.url, "k")
        await AsyncFiles(transport, SESSION).write("f", pieces())
        await transport.aclose()
        assert server.asked[0].body == b"ab"


@on_a_loop
async def test_many_at_once_on_one_client(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(4)

    def script(asked: Asked) -> Answer:
        if asked.what == CREATE:
            together.wait(30)
        return Answer(200, session())

    with scripted(script) as server:
        async with AsyncClient(server.url, "k") as client:
            boxes = await asyncio.gather(*(AsyncSandbox.create("web", client=client) for _ in range(4)))
            assert [box.image.digest for box in boxes] == [DIGEST] * 4


def test_the_root_gives_both_clients() -> None:
    names = ["AdminClient", "AsyncAdminClient", "AsyncClient", "AsyncSandbox", "Client", "Sandbox"]
    assert sandbay.__all__ == names
    assert [getattr(sandbay, name).__name__ for name in names] == names


def test_neither_client_loads_the_other() -> None:
    look = "print(*sorted(m for m in sys.modules if m.startswith(('sandbay.sdk._async', 'sandbay.sdk._sync'))))"
    for mine, other in (("Sandbox", "_async"), ("AsyncSandbox", "_sync")):
        program = f"import sys; from sandbay import {mine}; {look}"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.strip()
        assert other not in done.stdout
