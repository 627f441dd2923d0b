"""Commands through the API: collected and streamed, capped, refused by name, killed when nobody listens."""

import base64
import contextlib
import json
import resource
import sys
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import structlog.testing
from websockets.exceptions import ConnectionClosedError, ConnectionClosedOK, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from sandbay.api.exec import KEPT_BYTES
from sandbay.api.exec_socket import CREDIT, MESSAGE_BYTES
from sandbay.domain.declaration import Ability
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey
from tests.api.served import SESSIONS, Json, Served, answered, refused
from tests.app.world import eventually
from tests.fakes.memory_provider import DECLARATION, small_system
from tests.support.reasons import note


@pytest.fixture(scope="module")
def path(shared: Served) -> str:
    """The exec path of a running Session that no test ends."""
    return f"{SESSIONS}/{shared.session(env={'FROM': 'session'})['id']}/exec"


def run(served: Served, path: str, **body: object) -> tuple[int | None, bytes, bytes]:
    answer = answered(served.project.post(path, json=body))
    return answer["exit_code"], base64.b64decode(answer["stdout"]), base64.b64decode(answer["stderr"])


def connected(served: Served, path: str, key: str | None = None) -> ClientConnection:
    url = served.address.replace("http", "ws") + path
    headers = {"Authorization": f"Bearer {key or served.project_key}"}
    with contextlib.ExitStack() as stack:
        made = connect(url, additional_headers=headers, compression=None, proxy=None, max_queue=None, open_timeout=60)
        socket = stack.enter_context(made)
        stack.pop_all()
    return socket


def texts(socket: ClientConnection) -> Iterator[Json]:
    """All texts up to the last one; binary messages are left out."""
    with contextlib.suppress(ConnectionClosedOK):
        while True:
            message = socket.recv(timeout=60)
            if isinstance(message, str):
                note(message)
                yield json.loads(message)


def streamed(served: Served, path: str, **body: object) -> tuple[Json, bytes, bytes]:
    """The end and both streams."""
    stdin = base64.b64decode(str(body.pop("stdin", "")))
    out = {1: b"", 2: b""}
    end: Json | None = None
    with connected(served, path) as socket:
        socket.send(json.dumps({"exec": body}))
        if stdin:
            socket.send(b"\0" + stdin)
        socket.send(json.dumps({"eof": True}))
        with contextlib.suppress(ConnectionClosedOK):
            while True:
                message = socket.recv(timeout=60)
                assert end is None, "something came after the last message"
                if isinstance(message, bytes):
                    out[message[0]] += message[1:]
                    with contextlib.suppress(ConnectionClosedOK):  # the end may have come after it
                        socket.send(json.dumps({"credit": len(message) - 1}))
                elif "credit" not in message:
                    end = json.loads(message)
                    note(message)
    assert end is not None
    return end, out[1], out[2]


def ended(exit_code: int | None, *, timed_out: bool = False) -> Json:
    return {"exit": exit_code, "timed_out": timed_out, "truncated": False}


def denied(served: Served, path: str, key: str | None = None) -> Json:
    """The answer in place of the upgrade."""
    with pytest.raises(InvalidStatus) as caught:
        connected(served, path, key)
    response = caught.value.response
    note(bytes(response.body or b""))
    return {"status": response.status_code, **json.loads(response.body or b"")["error"]}


COMMANDS: list[tuple[Json, int, bytes, bytes]] = [
    ({"argv": ["echo", "a", "b"]}, 0, b"a b\n", b""),
    ({"argv": ["false"]}, 1, b"", b""),
    ({"argv": ["nope"]}, 127, b"", b""),
    ({"argv": ["/etc/passwd"]}, 126, b"", b""),
    ({"shell": "echo out; echo err >&2; exit 7"}, 7, b"out\n", b"err\n"),
    ({"argv": ["cat"], "stdin": base64.b64encode(b"\0\xff in").decode()}, 0, b"\0\xff in", b""),
    ({"argv": ["pwd"], "workdir": "/tmp"}, 0, b"/tmp\n", b""),
    ({"argv": ["id", "-u"], "user": "agent"}, 0, b"1000\n", b""),
    ({}, 0, b"", b""),
    ({"argv": ["x"], "entrypoint": ["echo"]}, 0, b"x\n", b""),
    ({"shell": "kill -9 $$"}, 137, b"", b""),
]


@pytest.mark.parametrize("body, code, out, err", COMMANDS)
def test_both_forms_say_the_same(shared: Served, path: str, body: Json, code: int, out: bytes, err: bytes) -> None:
    assert run(shared, path, **body) == (code, out, err)
    assert streamed(shared, path, **body) == (ended(code), out, err)


def test_the_environment_of_session_and_command(shared: Served, path: str) -> None:
    _, out, _ = run(shared, path, argv=["env"], env={"MORE": "1"})
    assert {b"FROM=session", b"MORE=1"} <= set(out.splitlines())


def test_a_time_out_is_an_answer(shared: Served, path: str) -> None:
    body = {"shell": "echo first; sleep 60", "timeout": 0.2}
    answer = answered(shared.project.post(path, json=body))
    assert (answer["exit_code"], answer["timed_out"]) == (None, True)
    assert base64.b64decode(answer["stdout"]) == b"first\n"
    assert streamed(shared, path, **body) == (ended(None, timed_out=True), b"first\n", b"")


def test_collected_output_is_capped_and_says_so(shared: Served, path: str) -> None:
    more = KEPT_BYTES + 1000
    answer = answered(shared.project.post(path, json={"shell": f"head -c {more} /dev/zero; echo err >&2"}))
    assert (answer["stdout_bytes"], answer["stdout_truncated"]) == (more, True)
    assert len(base64.b64decode(answer["stdout"])) == KEPT_BYTES
    assert (answer["stderr_bytes"], answer["stderr_truncated"]) == (4, False)
    _, out, _ = streamed(shared, path, argv=["head", "-c", str(more), "/dev/zero"])
    assert len(out) == more


@pytest.mark.parametrize(
    "body, code, param",
    [
        pytest.param({"argv": []}, "no_command", "argv", marks=pytest.mark.produces(Reason.NO_COMMAND)),
        ({"argv": [""]}, "no_command", "argv"),
        pytest.param(
            {"argv": ["true"], "user": "ghost"},
            "user_not_found",
            "user",
            marks=pytest.mark.produces(Reason.USER_NOT_FOUND),
        ),
        pytest.param(
            {"argv": ["true"], "workdir": "/etc/passwd"},
            "invalid_workdir",
            "workdir",
            marks=pytest.mark.produces(Reason.INVALID_WORKDIR),
        ),
    ],
)
def test_refused_by_name_in_both_forms(shared: Served, path: str, body: Json, code: str, param: str) -> None:
    error = refused(shared.project.post(path, json=body), 422, code, param)
    end, out, err = streamed(shared, path, **body)
    assert (out, err) == (b"", b"")
    assert {**end["error"], "request_id": None} == {**error, "request_id": None}


@pytest.mark.produces(Reason.NO_SHELL)
def test_an_image_without_a_shell(served: Served) -> None:
    release = served.image("bare")
    digest = release["variants"][0]["digest"]
    key = next(key for key, variant in served.world.node.held.items() if variant.digest == digest)
    served.world.node.contents[ContentKey(key)] = small_system("bare", leave_out=["sh"])
    path = f"{SESSIONS}/{served.session()['id']}/exec"
    refused(served.project.post(path, json={"shell": "true"}), 422, "no_shell", "shell")


@pytest.mark.produces(Reason.NOT_RUNNING, Reason.ALREADY_ENDED)
def test_a_session_that_does_not_run(served: Served) -> None:
    served.image("web")
    answered(served.deploy(pools=[served.pool(admission="paused")]))
    session = answered(served.project.post(SESSIONS, json={"wait_seconds": 60}), 201)
    path = f"{SESSIONS}/{session['id']}"
    response = served.project.post(f"{path}/exec", json={"argv": ["true"]})
    assert refused(response, 409, "not_running")["details"] == {"status": "waiting"}
    assert denied(served, f"{path}/exec")["code"] == "not_running"
    answered(served.project.delete(path), 200)
    response = served.project.post(f"{path}/exec", json={"argv": ["true"]})
    assert refused(response, 409, "already_ended")["details"] == {"status": "ended"}
    assert denied(served, f"{path}/exec")["code"] == "already_ended"


def test_output_comes_while_the_command_runs(shared: Served, path: str) -> None:
    with connected(shared, path) as socket:
        socket.send(json.dumps({"exec": {"shell": "echo now; sleep 60"}}))
        assert socket.recv(timeout=60) == b"\1now\n"
        eventually(busy)
    eventually(lambda: not busy())


def test_input_flows_while_the_command_runs(shared: Served, path: str) -> None:
    """More of it than there is credit for, each piece answered before the next one."""
    with connected(shared, path) as socket:
        socket.send(json.dumps({"exec": {"argv": ["cat"]}}))
        room = CREDIT
        for size in (1, 1000, CREDIT // 4, CREDIT // 4, CREDIT // 4, CREDIT // 4, CREDIT // 4):
            piece, back = bytes([size % 251]) * size, b""
            socket.send(b"\0" + piece)
            room -= size
            while len(back) < size or room < CREDIT // 4:
                message = socket.recv(timeout=60)
                if isinstance(message, bytes):
                    back += message[1:]
                    socket.send(json.dumps({"credit": len(message) - 1}))
                else:
                    room += json.loads(message)["credit"]
            assert back == piece
        socket.send(json.dumps({"eof": True}))
        assert list(texts(socket))[-1] == ended(0)


NONSENSE: list[tuple[bytes | str, str]] = [
    (b"", "stdin"),
    (b"\1out", "stdin"),
    ("nope", "body"),
    ("[]", "body"),
    ("{}", "body"),
    ('{"eof": false}', "eof"),
    ('{"eof": true, "eof": true}', "eof"),
    ('{"credit": 0}', "credit"),
    ('{"credit": 1.5}', "credit"),
    ('{"eof": true, "credit": 1}', "body"),
    ('{"what": 1}', "what"),
    ('{"resize": {"rows": 0, "columns": 1}}', "resize.rows"),
    ('{"signal": "NONE"}', "signal"),
    ('{"signal": "SIGTERM"}', "signal"),
    (b"\0" + b"x" * (CREDIT + 1), "stdin"),
]


@pytest.mark.parametrize("message, param", NONSENSE)
def test_what_is_not_understood_ends_the_exchange_and_the_command(
    shared: Served, path: str, message: bytes | str, param: str
) -> None:
    with connected(shared, path) as socket:
        socket.send(json.dumps({"exec": {"shell": "echo; sleep 60"}}))
        assert socket.recv(timeout=60) == b"\1\n"
        socket.send(message)
        error = list(texts(socket))[-1]["error"]
    assert (error["code"], error["param"]) == ("invalid_body", param)
    eventually(lambda: not busy())


@pytest.mark.parametrize(
    "message, param",
    [
        (b"\0x", "exec"),
        ("{}", "exec"),
        ('{"exec": {"argv": ["true"], "shell": "true"}}', "exec.shell"),
        ('{"exec": {"argv": ["true"], "stdin": ""}}', "exec"),
        ('{"exec": {}, "more": 1}', "more"),
        ('{"exec": {}, "tty": {"rows": 1}}', "tty"),
        ('{"exec": {}, "tty": true, "size": {"rows": 70000}}', "size.rows"),
        ('{"exec": {"env": {"A": 1}}}', "exec.env.A"),
    ],
)
def test_a_start_is_read_strictly(shared: Served, path: str, message: bytes | str, param: str) -> None:
    with connected(shared, path) as socket:
        socket.send(message)
        error = list(texts(socket))[-1]["error"]
    assert (error["code"], error["param"]) == ("invalid_body", param)


def test_a_message_that_is_too_long_ends_the_command(shared: Served, path: str) -> None:
    with connected(shared, path) as socket:
        socket.send(json.dumps({"exec": {"argv": ["sleep", "60"]}}))
        socket.send(b"\0" * (MESSAGE_BYTES + 1))
        with pytest.raises(ConnectionClosedError) as caught:
            socket.recv(timeout=60)
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1009
    eventually(lambda: not busy())


def test_a_command_gets_a_terminal_that_can_be_resized(shared: Served, path: str) -> None:
    size = {"rows": 33, "columns": 101}
    with connected(shared, path) as socket:
        start = {"exec": {"shell": "stty size; cat; stty size; echo no >&2"}, "tty": True, "size": size}
        socket.send(json.dumps(start))
        assert socket.recv(timeout=60) == b"\x0133 101\r\n"
        socket.send(json.dumps({"resize": {"rows": 50, "columns": 132}}))
        socket.send(json.dumps({"eof": True}))
        assert socket.recv(timeout=60) == b"\x0150 132\r\n"
        assert socket.recv(timeout=60) == b"\1no\r\n"
        assert list(texts(socket))[-1] == ended(0)


def test_a_size_that_comes_before_the_terminal_is_kept(shared: Served, path: str) -> None:
    with connected(shared, path) as socket:
        socket.send(json.dumps({"exec": {"shell": "cat; stty size"}, "tty": True}))
        socket.send(json.dumps({"resize": {"rows": 7, "columns": 9}}))
        socket.send(json.dumps({"eof": True}))
        assert socket.recv(timeout=60) == b"\x017 9\r\n"


def test_a_signal_is_sent_to_the_command(shared: Served, path: str) -> None:
    with connected(shared, path) as socket:
        socket.send(json.dumps({"exec": {"shell": "echo; sleep 60"}}))
        assert socket.recv(timeout=60) == b"\1\n"
        socket.send(json.dumps({"signal": "TERM"}))
        assert list(texts(socket))[-1] == ended(143)


@pytest.mark.produces(Reason.ABILITY_UNSUPPORTED)
def test_a_terminal_that_the_provider_cannot_make_is_refused(tmp_path: Path) -> None:
    served = Served(tmp_path, declaration=replace(DECLARATION, abilities=frozenset({Ability.EXEC})))
    try:
        served.image("web")
        path = f"{SESSIONS}/{served.session()['id']}/exec"
        with connected(served, path) as socket:
            socket.send(json.dumps({"exec": {"argv": ["true"]}, "tty": True}))
            assert list(texts(socket))[-1]["error"]["code"] == "ability_unsupported"
        assert streamed(served, path, argv=["true"])[0] == ended(0)
    finally:
        served.close()


def test_keys_are_asked_before_the_upgrade(shared: Served, path: str) -> None:
    assert (denied(shared, path, "sbp_no")["status"], denied(shared, path, "sbp_no")["code"]) == (
        401,
        "invalid_api_key",
    )
    assert denied(shared, path, shared.admin_key)["code"] == "forbidden"
    assert denied(shared, f"{SESSIONS}/ses_none/exec")["status"] == 404
    assert denied(shared, f"{path}?x=1")["param"] == "x"


def busy(program: str = "_sleep") -> list[str]:
    """Threads in a simulated program, by the frames that they stand in."""
    stacks = [traceback.extract_stack(top) for top in sys._current_frames().values()]
    return [frame.name for stack in stacks for frame in stack if frame.name == program]


def test_a_client_that_goes_away_kills_its_command(shared: Served, path: str) -> None:
    with pytest.raises(httpx.ReadTimeout), shared.client(shared.project_key) as client:
        client.post(path, json={"argv": ["sleep", "60"]}, timeout=0.5)
    eventually(lambda: not busy())


def test_a_connection_that_breaks_kills_its_command(shared: Served, path: str) -> None:
    socket = connected(shared, path)
    socket.send(json.dumps({"exec": {"shell": "echo; sleep 60"}}))
    assert socket.recv(timeout=60) == b"\1\n"
    socket.close_socket()
    eventually(lambda: not busy())


def test_a_slow_reader_slows_the_command_and_nobody_else(shared: Served, path: str) -> None:
    """It is sent what it gave credit for and not a byte more, and the server goes on serving others."""
    huge = 512 * 1024 * 1024
    with connected(shared, path) as socket:
        socket.send(json.dumps({"exec": {"argv": ["head", "-c", str(huge), "/dev/zero"]}}))
        got = 0
        while got < CREDIT:
            got += len(socket.recv(timeout=60)) - 1
        before = _peak()
        with pytest.raises(TimeoutError):
            socket.recv(timeout=0.5)
        assert got == CREDIT
        assert run(shared, path, argv=["echo", "hi"]) == (0, b"hi\n", b"")
        assert busy("_head")
        assert _peak() - before < 64 * 1024 * 1024
    eventually(lambda: not busy("_head"))


def _peak() -> int:
    """Bytes of memory that this process had at most."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.produces(Reason.INTERNAL)
def test_a_fault_of_ours_is_told_as_that_and_nothing_more(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.image("web")
    path = f"{SESSIONS}/{served.session()['id']}/exec"

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(served.running.agent, "exec", broken)
    with structlog.testing.capture_logs() as logs:
        end, _, _ = streamed(served, path, argv=["true"])
        assert end["error"]["code"] == "internal"
        assert "secret" not in json.dumps(end)
        assert "ZeroDivision" not in json.dumps(end)
        assert logs[-1]["request_id"] == end["error"]["request_id"]
        refused(served.project.post(path, json={"argv": ["true"]}), 500, "internal")
    assert len([entry for entry in logs if entry["log_level"] == "error" and entry["exc_info"]]) == 2
    monkeypatch.undo()
    assert run(served, path, argv=["true"])[0] == 0
