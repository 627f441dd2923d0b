"""Commands through the API: collected and streamed, capped, refused by name, killed when nobody listens."""

import base64
import json
import resource
import sys
import traceback
from collections.abc import Iterator

import httpx
import pytest
import structlog.testing

from sandbay.api.exec import KEPT_BYTES, MEDIA_TYPE
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey
from tests.api.served import SESSIONS, Json, Served, answered, refused
from tests.app.world import eventually
from tests.fakes.memory_provider import small_system

STREAM = {"Accept": MEDIA_TYPE}


@pytest.fixture(scope="module")
def path(shared: Served) -> str:
    """The exec path of a running Session that no test ends."""
    return f"{SESSIONS}/{shared.session(env={'FROM': 'session'})['id']}/exec"


def run(served: Served, path: str, **body: object) -> tuple[int | None, bytes, bytes]:
    answer = answered(served.project.post(path, json=body))
    return answer["exit_code"], base64.b64decode(answer["stdout"]), base64.b64decode(answer["stderr"])


def frames(data: bytes) -> Iterator[tuple[int, bytes]]:
    while data:
        kind, length = data[0], int.from_bytes(data[1:5], "big")
        assert len(data) >= 5 + length, "a frame is cut off"
        yield kind, data[5 : 5 + length]
        data = data[5 + length :]


def streamed(served: Served, path: str, **body: object) -> tuple[Json, bytes, bytes]:
    """The end and both streams."""
    response = served.project.post(path, json=body, headers=STREAM)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == MEDIA_TYPE
    got = list(frames(response.content))
    assert [kind for kind, _ in got].count(3) == 1
    assert got[-1][0] == 3
    out, err = (b"".join(data for kind, data in got if kind == wanted) for wanted in (1, 2))
    end: Json = json.loads(got[-1][1])
    return end, out, err


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
    assert streamed(shared, path, **body) == ({"exit_code": code, "timed_out": False}, out, err)


def test_the_environment_of_session_and_command(shared: Served, path: str) -> None:
    _, out, _ = run(shared, path, argv=["env"], env={"MORE": "1"})
    assert {b"FROM=session", b"MORE=1"} <= set(out.splitlines())


def test_a_time_out_is_an_answer(shared: Served, path: str) -> None:
    body = {"shell": "echo first; sleep 60", "timeout": 0.2}
    answer = answered(shared.project.post(path, json=body))
    assert (answer["exit_code"], answer["timed_out"]) == (None, True)
    assert base64.b64decode(answer["stdout"]) == b"first\n"
    assert streamed(shared, path, **body) == ({"exit_code": None, "timed_out": True}, b"first\n", b"")


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
    for headers in ({}, STREAM):
        response = served.project.post(f"{path}/exec", json={"argv": ["true"]}, headers=headers)
        assert refused(response, 409, "not_running")["details"] == {"status": "waiting"}
    answered(served.project.delete(path), 200)
    for headers in ({}, STREAM):
        response = served.project.post(f"{path}/exec", json={"argv": ["true"]}, headers=headers)
        assert refused(response, 409, "already_ended")["details"] == {"status": "ended"}


def test_output_comes_while_the_command_runs(shared: Served, path: str) -> None:
    body = {"shell": "echo now; sleep 60"}
    with shared.project.stream("POST", path, json=body, headers=STREAM) as response:
        first = next(response.iter_raw())
        assert next(frames(first)) == (1, b"now\n")
    eventually(lambda: not busy())


def busy(program: str = "_sleep") -> list[str]:
    """Threads in a simulated program, by the frames that they stand in."""
    stacks = [traceback.extract_stack(top) for top in sys._current_frames().values()]
    return [frame.name for stack in stacks for frame in stack if frame.name == program]


@pytest.mark.parametrize("headers", [{}, STREAM], ids=["collected", "streamed"])
def test_a_client_that_goes_away_kills_its_command(shared: Served, path: str, headers: dict[str, str]) -> None:
    with pytest.raises(httpx.ReadTimeout), shared.client(shared.project_key) as client:
        client.post(path, json={"argv": ["sleep", "60"]}, headers=headers, timeout=0.5)
    eventually(lambda: not busy())


def test_a_slow_reader_slows_the_command_and_nobody_else(shared: Served, path: str) -> None:
    """Far more output than fits in between: the server must not collect it, and goes on serving others."""
    huge = 512 * 1024 * 1024
    with shared.project.stream(
        "POST", path, json={"argv": ["head", "-c", str(huge), "/dev/zero"]}, headers=STREAM
    ) as response:
        next(response.iter_raw())
        before = _peak()
        assert run(shared, path, argv=["echo", "hi"]) == (0, b"hi\n", b"")
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
        for headers in ({}, STREAM):
            response = served.project.post(path, json={"argv": ["true"]}, headers=headers)
            assert b"internal" in response.content
            assert b"secret" not in response.content
            assert b"ZeroDivision" not in response.content
            assert logs[-1]["request_id"] == response.headers["x-request-id"]
        refused(served.project.post(path, json={"argv": ["true"]}), 500, "internal")
    assert len([entry for entry in logs if entry["log_level"] == "error" and entry["exc_info"]]) == 3
    monkeypatch.undo()
    assert run(served, path, argv=["true"])[0] == 0
