"""Commands: the streamed form in pieces of any size, the collected form, and the killed ones."""

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbay.sdk.errors import BadAnswerError, RequestError, SandbayError, TransferError
from sandbay.sdk.frames import LONGEST, Chunk, Frames
from tests.support.scripted_http import SESSION, STREAM, Answer, ended, frame, refusal, scripted

Connect = Callable[[str], Any]


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [*pieces, data]


@given(
    st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=40)), max_size=8),
    st.lists(st.integers(0, 9), max_size=60),
    st.integers(0, 255),
)
def test_frames_come_whole_from_pieces_of_any_size(
    output: list[tuple[int, bytes]], sizes: list[int], code: int
) -> None:
    wire = b"".join(frame(kind, data) for kind, data in output) + ended(code)
    frames = Frames()
    got = [chunk for piece in cut(wire, sizes) for chunk in frames.feed(piece)]
    assert got == [Chunk("stdout" if kind == 1 else "stderr", data) for kind, data in output if data]
    assert frames.finish().exit_code == code


@given(st.integers(1, 30))
def test_a_stream_without_its_end_is_lost(missing: int) -> None:
    wire = frame(1, b"hello") + ended(0)
    frames = Frames()
    list(frames.feed(wire[: -min(missing, len(wire))]))
    with pytest.raises(TransferError) as caught:
        frames.finish()
    assert caught.value.code == "stream_lost"


@pytest.mark.parametrize(
    "wire",
    [
        frame(0, b"x"),
        frame(4, b"x"),
        b"\x01" + (LONGEST + 1).to_bytes(4),
        frame(3, b"{"),
        frame(3, b"[]"),
        frame(3, b"{}"),
        frame(3, b'{"exit_code": null}'),
        frame(3, b'{"exit_code": "0"}'),
        ended(0) + frame(1, b"late"),
        ended(0) + b"\x01",
    ],
)
def test_nonsense_is_told_from_an_end(wire: bytes) -> None:
    frames = Frames()

    def read() -> None:
        list(frames.feed(wire))
        frames.finish()

    with pytest.raises(BadAnswerError):
        read()


def test_a_stream_over_the_network(sdk: Any, connect: Connect) -> None:
    pieces = [frame(1, b"out")[:3], frame(1, b"out")[3:] + frame(2, b"er"), frame(2, b"r"), ended(7)]
    with scripted(lambda asked: Answer(pieces=pieces, type=STREAM)) as server:
        stream = sdk.Commands(connect(server.url), SESSION).stream(
            ["sh", "-c", "…"], env={"A": "b"}, workdir="/w", user="u", timeout=5
        )
        assert list(stream) == [Chunk("stdout", b"out"), Chunk("stderr", b"er"), Chunk("stderr", b"r")]
        assert (stream.exit_code, stream.timed_out) == (7, False)
        said = {"argv": ["sh", "-c", "…"], "env": {"A": "b"}, "workdir": "/w", "user": "u", "timeout": 5}
        assert server.asked[0].json == said
        assert server.asked[0].headers["accept"] == STREAM


def test_a_connection_cut_in_the_middle_is_no_success(sdk: Any, connect: Connect) -> None:
    with scripted(lambda asked: Answer(pieces=[frame(1, b"a")], type=STREAM, drop=True)) as server:
        stream = iter(sdk.Commands(connect(server.url), SESSION).stream("x"))
        assert next(stream).data == b"a"
        with pytest.raises(TransferError) as caught:
            next(stream)
        assert caught.value.code == "stream_lost"


def test_an_answer_that_ends_early_is_no_success(sdk: Any, connect: Connect) -> None:
    with scripted(lambda asked: Answer(pieces=[frame(1, b"a")], type=STREAM)) as server, pytest.raises(TransferError):
        list(sdk.Commands(connect(server.url), SESSION).stream("x"))


def test_a_refusal_in_the_end_frame_has_its_name(sdk: Any, connect: Connect) -> None:
    error = {"error": {"type": "conflict_error", "code": "not_running", "message": "gone", "param": None}}
    wire = frame(1, b"a") + frame(3, json.dumps(error).encode())
    with scripted(lambda asked: Answer(pieces=[wire], type=STREAM)) as server:
        with pytest.raises(SandbayError) as caught:
            list(sdk.Commands(connect(server.url), SESSION).stream("x"))
        assert caught.value.code == "not_running"


def test_leaving_a_stream_early_cuts_the_connection(sdk: Any, connect: Connect) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield frame(1, b"x" * 65536)

    with scripted(lambda asked: Answer(pieces=endless(), type=STREAM)) as server:
        with sdk.Commands(connect(server.url), SESSION).stream("yes") as stream:
            assert next(iter(stream)).data
        assert server.gone.wait(20)


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


def test_a_collected_answer_where_a_stream_belongs_is_refused(sdk: Any, connect: Connect) -> None:
    with scripted(lambda asked: Answer(body=result())) as server, pytest.raises(BadAnswerError):
        sdk.Commands(connect(server.url), SESSION).stream("x")
