"""Commands: as they run, collected, and the killed ones."""

import base64
import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from sandbay.sdk.errors import BadAnswerError, RequestError, SandbayError, TransferError
from sandbay.sdk.frames import CREDIT, END_OF_INPUT, Chunk
from tests.support.scripted_http import SESSION, Answer, refusal, scripted

Connect = Callable[[str], Any]
Say = Callable[[ServerConnection], None]


@contextlib.contextmanager
def talking(say: Say) -> Iterator[str]:
    """The address of a server that holds one conversation as told."""

    def hold(socket: ServerConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            say(socket)

    with serve(hold, "127.0.0.1", 0, compression=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        finally:
            server.shutdown()
            thread.join()


def saying(*messages: bytes | str) -> Say:
    def say(socket: ServerConnection) -> None:
        socket.recv()
        for message in messages:
            socket.send(message)

    return say


def ended(code: int | None = 0, *, timed_out: bool = False) -> str:
    return json.dumps({"exit": code, "timed_out": timed_out, "truncated": False})


@pytest.mark.parametrize(
    "message",
    [b"", b"\0in", b"\3x", "{", "[]", "{}", '{"exit": null, "timed_out": false}', '{"exit": "0", "timed_out": false}'],
)
def test_nonsense_is_told_from_an_end(sdk: Any, connect: Connect, message: bytes | str) -> None:
    with talking(saying(message)) as url, pytest.raises(BadAnswerError):
        list(sdk.Commands(connect(url), SESSION).stream("x"))


def test_a_stream_over_the_network(sdk: Any, connect: Connect) -> None:
    said: list[Any] = []

    def say(socket: ServerConnection) -> None:
        assert socket.request is not None
        said.extend([socket.request.path, socket.request.headers["Authorization"], json.loads(socket.recv())])
        for message in (b"\1out", b"\2er", b"\2r", ended(7)):
            socket.send(message)

    with talking(say) as url:
        stream = sdk.Commands(connect(url), SESSION).stream(
            ["sh", "…"], env={"A": "b"}, workdir="/w", user="u", timeout=5
        )
        assert list(stream) == [Chunk("stdout", b"out"), Chunk("stderr", b"er"), Chunk("stderr", b"r")]
        assert (stream.exit_code, stream.timed_out) == (7, False)
    asked = {"argv": ["sh", "…"], "env": {"A": "b"}, "workdir": "/w", "user": "u", "timeout": 5}
    assert said == [f"/v1/sessions/{SESSION}/exec", "Bearer sbp_1", {"exec": asked, "stdin": False}]


def test_a_time_out_has_no_code(sdk: Any, connect: Connect) -> None:
    with talking(saying(ended(None, timed_out=True))) as url:
        stream = sdk.Commands(connect(url), SESSION).stream("x")
        assert list(stream) == []
        assert (stream.exit_code, stream.timed_out) == (None, True)


def test_a_conversation_without_its_end_is_lost(sdk: Any, connect: Connect) -> None:
    with talking(saying(b"\1a")) as url:
        stream = iter(sdk.Commands(connect(url), SESSION).stream("x"))
        assert next(stream).data == b"a"
        with pytest.raises(TransferError) as caught:
            next(stream)
        assert caught.value.code == "stream_lost"


def test_a_refusal_in_the_end_has_its_name(sdk: Any, connect: Connect) -> None:
    error = {"error": {"type": "conflict_error", "code": "not_running", "message": "gone", "param": None}}
    with talking(saying(b"\1a", json.dumps(error))) as url:
        with pytest.raises(SandbayError) as caught:
            list(sdk.Commands(connect(url), SESSION).stream("x"))
        assert caught.value.code == "not_running"


def test_leaving_a_stream_early_ends_the_conversation(sdk: Any, connect: Connect) -> None:
    gone = threading.Event()

    def say(socket: ServerConnection) -> None:
        socket.recv()
        socket.send(b"\1x")
        with pytest.raises(ConnectionClosed):
            socket.recv()
        gone.set()

    with talking(say) as url:
        with sdk.Commands(connect(url), SESSION).stream("yes") as stream:
            assert next(iter(stream)).data
        assert gone.wait(20)


def test_input_waits_for_credit_and_output_gives_it(sdk: Any, connect: Connect) -> None:
    """Each side sends what the other one has room for, however much there is."""
    total = 5 * CREDIT + 7
    got: list[int] = []

    def say(socket: ServerConnection) -> None:
        socket.recv()
        left, size = CREDIT, 0
        while isinstance(message := socket.recv(), bytes):
            left -= len(message) - 1
            size += len(message) - 1
            assert left >= 0, "more than there was room for"
            if left < CREDIT // 2:
                socket.send(json.dumps({"credit": CREDIT}))
                left += CREDIT
        got.append(size)
        left, out = CREDIT, total
        while out:
            piece = min(left, out, 1000)
            if piece:
                socket.send(b"\1" + b"x" * piece)
                left, out = left - piece, out - piece
            else:
                left += json.loads(socket.recv())["credit"]
        socket.send(ended())

    with talking(say) as url:
        stdin = (b"y" * size for size in (total - 10, 10))
        stream = sdk.Commands(connect(url), SESSION).stream("x", stdin=stdin)
        assert sum(len(chunk.data) for chunk in stream) == total
    assert got == [total]


def test_input_that_cannot_be_read_is_no_end_of_input(sdk: Any, connect: Connect) -> None:
    def broken() -> Iterator[bytes]:
        yield b"first"
        raise ZeroDivisionError

    def say(socket: ServerConnection) -> None:
        while True:
            assert socket.recv() != END_OF_INPUT

    with talking(say) as url, pytest.raises(ZeroDivisionError):
        list(sdk.Commands(connect(url), SESSION).stream("x", stdin=broken()))


def result(**more: Any) -> dict[str, Any]:
    return {
        "exit_code": 0,
        "timed_out": False,
        "stdout": base64.b64encode(b"caf\xc3\xa9 \xff").decode(),
        "stderr": "",
        "stdout_bytes": 7,
        "stderr_bytes": 0,
        "stdout_truncated": False,
        "stderr_truncated": False,
        **more,
    }


def test_a_collected_result_has_bytes_and_text(sdk: Any, connect: Connect) -> None:
    with scripted(lambda asked: Answer(body=result())) as server:
        done = sdk.Commands(connect(server.url), SESSION).run("cat café", stdin="in")
        assert done.stdout_bytes == b"caf\xc3\xa9 \xff"
        assert done.stdout == "café �"
        assert (done.exit_code, done.truncated) == (0, False)
        assert server.asked[0].json == {"shell": "cat café", "stdin": base64.b64encode(b"in").decode()}


def test_truncation_and_time_out_are_told(sdk: Any, connect: Connect) -> None:
    cut_off = result(exit_code=None, timed_out=True, stderr_truncated=True, stderr_bytes=1 << 30)
    with scripted(lambda asked: Answer(body=cut_off)) as server:
        done = sdk.Commands(connect(server.url), SESSION).run("x")
        assert done.timed_out
        assert done.truncated
        assert done.stderr_total == 1 << 30


@pytest.mark.parametrize("how", ["run", "stream"])
def test_a_command_is_never_sent_twice(sdk: Any, connect: Connect, how: str) -> None:
    with scripted(lambda asked: Answer(drop=True)) as server:
        with pytest.raises(SandbayError):
            getattr(sdk.Commands(connect(server.url), SESSION), how)("x")
        assert len(server.asked) == 1


@pytest.mark.parametrize("how", ["run", "stream"])
def test_a_refused_command_has_its_name(sdk: Any, connect: Connect, how: str) -> None:
    with scripted(lambda asked: refusal(422, "no_shell")) as server, pytest.raises(RequestError) as caught:
        getattr(sdk.Commands(connect(server.url), SESSION), how)("x")
    assert caught.value.code == "no_shell"
