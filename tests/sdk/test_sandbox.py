"""A Session is never made twice and never left behind."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from sandbay.sdk import Progress
from sandbay.sdk.errors import ChoosingError, LostAnswerError, PlacementError, StartError
from tests.support.scripted_http import DIGEST, SESSION, Answer, Asked, refusal, scripted, session

CREATE, DELETE = "POST /v1/sessions", f"DELETE /v1/sessions/{SESSION}"
GONE = Answer(202, session("ending"))


def answers(*creates: Answer, then: Callable[[Asked], Answer] = lambda asked: GONE) -> Callable[[Asked], Answer]:
    """Creates are answered in turn, the last for ever; all else by `then`."""
    turns = itertools.chain(creates, itertools.repeat(creates[-1]))
    return lambda asked: next(turns) if asked.what == CREATE else then(asked)


Connect = Callable[[str], Any]


def test_a_block_ends_its_session(sdk: Any, connect: Connect) -> None:
    with scripted(answers(Answer(201, session()))) as server:
        with sdk.Sandbox.create("web:stable", client=sdk.Client(transport=connect(server.url))) as box:
            assert box.id == SESSION
            assert box.image.digest == DIGEST
            assert box.image.decided_by.level == "session"
        assert server.whats() == [CREATE, DELETE]
        assert server.asked[0].json == {"runtime_image_id": "web:stable", "wait_seconds": 1800}


def test_a_block_that_fails_ends_its_session(sdk: Any, connect: Connect) -> None:
    with scripted(answers(Answer(201, session()))) as server:
        with (
            pytest.raises(ZeroDivisionError),
            sdk.Sandbox.create("web", client=sdk.Client(transport=connect(server.url))),
        ):
            _ = 1 / 0
        assert server.whats() == [CREATE, DELETE]


def test_a_connected_session_is_let_go_of_and_lives(sdk: Any, connect: Connect) -> None:
    with scripted(lambda asked: Answer(body=session())) as server:
        with sdk.Sandbox.connect(SESSION, client=sdk.Client(transport=connect(server.url))) as box:
            assert box.session.status == "running"
        assert server.whats() == [f"GET /v1/sessions/{SESSION}"]


def test_a_lost_answer_is_asked_for_with_the_same_key(sdk: Any, connect: Connect) -> None:
    with scripted(answers(Answer(drop=True), Answer(drop=True), Answer(200, session()))) as server:
        sdk.Sandbox.create("web", client=sdk.Client(transport=connect(server.url)))
        keys = [asked.headers["idempotency-key"] for asked in server.asked]
        assert len(keys) == 3
        assert len(set(keys)) == 1


def test_two_creates_have_two_keys(sdk: Any, connect: Connect) -> None:
    with scripted(answers(Answer(201, session()))) as server:
        for _ in range(2):
            sdk.Sandbox.create("web", client=sdk.Client(transport=connect(server.url)))
        assert len({asked.headers["idempotency-key"] for asked in server.asked}) == 2


def test_a_refusal_makes_nothing_and_asks_once(sdk: Any, connect: Connect) -> None:
    with scripted(answers(refusal(409, "image_retired", param="runtime_image_id"))) as server:
        with pytest.raises(ChoosingError) as caught:
            sdk.Sandbox.create("web", client=sdk.Client(transport=connect(server.url)))
        assert (caught.value.code, caught.value.param) == ("image_retired", "runtime_image_id")
        assert server.whats() == [CREATE]


def test_waiting_tells_how_far_it_is(sdk: Any, connect: Connect) -> None:
    states = iter(
        [
            session("waiting", waiting_for="image", progress={"phase": "fetch", "bytes_done": 5, "bytes_total": 10}),
            session("starting"),
            session("running"),
        ]
    )
    seen: list[Progress] = []
    script = answers(Answer(201, session("waiting", waiting_for="image")), then=lambda asked: Answer(body=next(states)))
    with scripted(script) as server:
        box = sdk.Sandbox.create("web", client=sdk.Client(transport=connect(server.url)), progress=seen.append)
        assert box.session.status == "running"
        assert [asked.query["status"] for asked in server.asked[1:]] == ["waiting", "waiting", "starting"]
    assert seen == [Progress("waiting for image"), Progress("fetch", 5, 10), Progress("starting")]


def test_a_wait_that_ends_badly_raises_the_sessions_reason(sdk: Any, connect: Connect) -> None:
    why = {"code": "wait_expired", "message": "time is up", "details": {"waited": 5}}
    script = answers(Answer(201, session("waiting")), then=lambda asked: Answer(body=session("failed", reason=why)))
    with scripted(script) as server:
        with pytest.raises(PlacementError) as caught:
            sdk.Sandbox.create("web", client=sdk.Client(transport=connect(server.url)))
        assert caught.value.code == "wait_expired"
        assert caught.value.details == {"waited": 5}
        assert caught.value.session_id == SESSION
        assert DELETE not in server.whats()


def test_a_session_that_failed_at_once_is_an_error(sdk: Any, connect: Connect) -> None:
    why = {"code": "start_failed", "message": "no"}
    with scripted(answers(Answer(201, session("failed", reason=why)))) as server, pytest.raises(StartError):
        sdk.Sandbox.create("web", client=sdk.Client(transport=connect(server.url)))


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, ValueError])
def test_an_interrupted_wait_leaves_nothing(sdk: Any, connect: Connect, interruption: type[BaseException]) -> None:
    def interrupt(progress: Progress) -> None:
        raise interruption

    with scripted(answers(Answer(201, session("waiting")))) as server:
        with pytest.raises(interruption):
            sdk.Sandbox.create("web", client=sdk.Client(transport=connect(server.url)), progress=interrupt)
        assert server.whats() == [CREATE, DELETE]


def test_an_interrupted_create_finds_out_what_was_made_and_ends_it(sdk: Any) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    with scripted(answers(Answer(drop=True), Answer(200, session()))) as server:
        ours = sdk.Client(transport=sdk.Transport(server.url, "k", sleep=sdk.sleeper(interrupt)))
        with ours, pytest.raises(KeyboardInterrupt):
            sdk.Sandbox.create("web", client=ours)
        assert server.whats() == [CREATE, CREATE, DELETE]
        assert server.asked[0].headers["idempotency-key"] == server.asked[1].headers["idempotency-key"]


def test_an_unknown_outcome_is_not_taken_for_nothing(sdk: Any, connect: Connect) -> None:
    turns = [Answer(drop=True)] * 4
    with scripted(answers(*turns, Answer(200, session()))) as server:
        with pytest.raises(LostAnswerError):
            sdk.Sandbox.create("web", client=sdk.Client(transport=connect(server.url)))
        assert server.whats() == [CREATE] * 5 + [DELETE]
