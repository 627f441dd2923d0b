"""A registration's events, as either client takes them."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from sandbay.sdk.errors import BadAnswerError, ContentError, LostAnswerError
from sandbay.sdk.resources import Progress
from tests.support.scripted_http import Answer, Asked, refusal, scripted

Connect = Callable[[str], Any]
RELEASE = {"id": "rel_1", "image": "web", "number": 3, "state": "pending", "variants": []}
REFUSED = refusal(422, "digest_mismatch").body
HALF = {"bytes_done": 5, "bytes_total": 9, "layers": 2}


def event(name: str, data: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


def answering(*pieces: bytes, drop: bool = False) -> Callable[[Asked], Answer]:
    def script(asked: Asked) -> Answer:
        if not asked.path.endswith("/releases"):
            return refusal(409, "name_taken", "conflict_error")
        assert asked.headers["accept"] == "text/event-stream"
        return Answer(pieces=pieces, type="text/event-stream", drop=drop)

    return script


def registered(sdk: Any, connect: Connect, script: Callable[[Asked], Answer], seen: list[Progress]) -> Any:
    with scripted(script) as server:
        images = sdk.AdminClient(transport=connect(server.url)).images
        return images.register_registry("web", "reg.example/web:1", progress=seen.append)


def test_progress_is_told_however_the_bytes_are_cut(sdk: Any, connect: Connect) -> None:
    whole = event("progress", HALF) + b": still here\n\n" + event("release", RELEASE)
    seen: list[Progress] = []
    pieces = (whole[:9], whole[9:40], whole[40:-3], whole[-3:])
    assert registered(sdk, connect, answering(*pieces), seen).number == 3
    assert seen == [Progress("fetching"), Progress("fetching 2 layers", 5, 9)]


def test_an_answer_without_events_is_taken_as_it_is(sdk: Any, connect: Connect) -> None:
    def script(asked: Asked) -> Answer:
        return (
            Answer(201, RELEASE) if asked.path.endswith("/releases") else refusal(409, "name_taken", "conflict_error")
        )

    seen: list[Progress] = []
    assert registered(sdk, connect, script, seen).number == 3
    assert seen == [Progress("fetching")]


@pytest.mark.parametrize(
    "script, error",
    [
        (answering(event("progress", HALF), event("refused", REFUSED)), ContentError),
        (answering(event("progress", HALF), drop=True), LostAnswerError),
        (answering(event("progress", HALF)), LostAnswerError),
        (answering(b"event: release\ndata: nonsense\n\n"), BadAnswerError),
        (answering(b"event: progress\ndata: 7\n\n"), BadAnswerError),
        (answering(b"event: refused\ndata: 7\n\n"), BadAnswerError),
    ],
)
def test_what_keeps_it_from_a_release_is_raised(
    sdk: Any, connect: Connect, script: Callable[[Asked], Answer], error: type[Exception]
) -> None:
    with pytest.raises(error):
        registered(sdk, connect, script, [])
