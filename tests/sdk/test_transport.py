"""What is sent twice and what never is."""

import contextlib
import socket
from collections.abc import Callable
from typing import Any

import pytest

from sandbay.sdk._sync.transport import Call
from sandbay.sdk.errors import (
    BadAnswerError,
    LostAnswerError,
    NoContextError,
    UnknownReferenceError,
    UnreachableError,
)
from tests.support.scripted_http import Answer, Asked, page, refusal, scripted


def drops_first(times: int, then: Answer) -> Callable[[Asked], Answer]:
    left = iter(range(times))
    return lambda asked: Answer(drop=True) if next(left, None) is not None else then


Connect = Callable[[str], Any]


@pytest.mark.parametrize(
    "call",
    [
        Call("GET", "/x"),
        Call("PUT", "/x", body=lambda: iter([b"ab", b"c"])),
        Call("DELETE", "/x"),
        Call("POST", "/x", json={"a": 1}, repeatable=True),
    ],
)
def test_what_may_be_repeated_is_sent_again_and_whole(connect: Connect, call: Call) -> None:
    with scripted(drops_first(2, Answer(body={"ok": True}))) as server:
        assert connect(server.url).send(call) == {"ok": True}
        assert len(server.asked) == 3
        assert len({asked.body for asked in server.asked}) == 1


@pytest.mark.parametrize("call", [Call("POST", "/x", json={}), Call("PATCH", "/x", json={})])
def test_what_may_not_be_repeated_is_sent_once(connect: Connect, call: Call) -> None:
    with scripted(drops_first(1, Answer(body={}))) as server:
        with pytest.raises(LostAnswerError):
            connect(server.url).send(call)
        assert len(server.asked) == 1


def test_repeating_ends(connect: Connect) -> None:
    with scripted(lambda asked: Answer(drop=True)) as server:
        with pytest.raises(LostAnswerError) as caught:
            connect(server.url).send(Call("GET", "/x"))
        assert caught.value.code == "connection_lost"
        assert len(server.asked) == 4


def test_patience_outlasts_a_server_that_is_away(sdk: Any) -> None:
    now = [0.0]
    sleep = sdk.sleeper(lambda seconds: now.__setitem__(0, now[0] + seconds))
    waiting = sdk.Transport("http://127.0.0.1:1", "k", sleep=sleep, clock=lambda: now[0])
    with contextlib.closing(waiting), pytest.raises(UnreachableError):
        waiting.send(Call("POST", "/x", patience=30.0))
    assert 30.0 <= now[0] <= 33.0


def test_nobody_there_is_unreachable_and_nothing_was_sent(connect: Connect) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(UnreachableError) as caught:
            connect(f"http://127.0.0.1:{taken.getsockname()[1]}").send(Call("POST", "/x"))
    assert caught.value.code == "unreachable"


def test_a_refusal_is_not_tried_again(connect: Connect) -> None:
    with scripted(lambda asked: refusal(503, "no_capacity", "unavailable_error")) as server:
        with pytest.raises(Exception, match="no_capacity"):
            connect(server.url).send(Call("GET", "/x"))
        assert len(server.asked) == 1


def test_a_success_that_is_no_json_is_a_bad_answer(connect: Connect) -> None:
    with scripted(lambda asked: Answer(body=b"<html>")) as server, pytest.raises(BadAnswerError):
        connect(server.url).send(Call("GET", "/x"))


def test_a_redirect_is_not_followed_with_the_key(connect: Connect) -> None:
    with scripted(lambda asked: Answer(302, b"")) as server:
        with pytest.raises(BadAnswerError):
            connect(server.url).send(Call("GET", "/x"))
        assert len(server.asked) == 1


def test_pages_are_followed_to_the_end(connect: Connect) -> None:
    def script(asked: Asked) -> Answer:
        return page({"n": 1}, {"n": 2}, following="c2") if "after" not in asked.query else page({"n": 3})

    with scripted(script) as server:
        assert [item["n"] for item in connect(server.url).pages("/x", {"limit": "2"})] == [1, 2, 3]
        assert [asked.query for asked in server.asked] == [{"limit": "2"}, {"limit": "2", "after": "c2"}]


def test_the_key_goes_with_each_request(connect: Connect) -> None:
    with scripted(lambda asked: Answer(body={})) as server:
        connect(server.url).send(Call("GET", "/x"))
        assert server.asked[0].headers["authorization"] == "Bearer sbp_1"


def test_a_proxy_has_no_business_on_loopback(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with scripted(lambda asked: Answer(body={"ok": 1})) as server:
        assert connect(server.url).send(Call("GET", "/x")) == {"ok": 1}


@pytest.mark.parametrize("url", ["", "localhost:80", "ftp://h", "http://", "http://h:x", "file:///etc/passwd"])
def test_an_address_that_is_none_is_refused(sdk: Any, url: str) -> None:
    with pytest.raises(NoContextError):
        sdk.Transport(url, "k")


@pytest.mark.parametrize("name", ["a/../../v1", "a?b=c", "a#b", "ü", "a b", "%2e%2e"])
def test_a_name_stays_one_step_of_the_path(sdk: Any, name: str) -> None:
    with scripted(lambda asked: refusal(404, "not_found", "not_found_error")) as server:
        with sdk.Client(server.url, "k") as client, pytest.raises(UnknownReferenceError):
            client.sessions.get(name)
        path = server.asked[0].path
        assert path.startswith("/v1/sessions/")
        assert path.count("/") == 3
        assert server.asked[0].query == {}


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_is_a_step_elsewhere_is_never_sent(sdk: Any, name: str) -> None:
    with scripted(lambda asked: Answer(body={})) as server:
        with sdk.Client(server.url, "k") as client, pytest.raises(UnknownReferenceError):
            client.sessions.delete(name)
        assert server.asked == []
