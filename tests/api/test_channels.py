"""Channels through HTTP: promote, roll back, and what was before. Sessions keep what they were admitted with."""

from collections.abc import Iterator

import pytest

from tests.api.served import CORE, IMAGES, SESSIONS, Json, Served, answered, refused
from tests.app.world import eventually

STABLE = f"{IMAGES}/web/channels/stable"


def three(served: Served) -> None:
    """`web` with the releases 1 to 3, all proved; `stable` is the first."""
    for number in ("1", "2", "3"):
        served.image("web", f"web-{number}")


def test_what_was_before_is_told_and_is_one_write_away(served: Served) -> None:
    three(served)
    first = answered(served.admin.get(STABLE))
    assert (first["release"], first["revision"], first["previous"]) == (1, 1, None)
    error = refused(served.admin.post(f"{STABLE}/rollback"), 404, "release_unknown")
    assert error["details"] == {"release": 1}
    live = served.session(runtime_image_id="web")
    moved = answered(served.admin.put(STABLE, json={"release": 3, "why": "faster"}))
    assert (moved["release"], moved["previous"]) == (3, 1)
    back = answered(served.admin.post(f"{STABLE}/rollback", json={"why": "slower", "expected_revision": 2}))
    assert (back["release"], back["revision"], back["previous"]) == (1, 3, 3)
    forth = answered(served.admin.post(f"{STABLE}/rollback"))
    assert (forth["release"], forth["previous"]) == (3, 1)
    told = [(it["before"], it["release"], it["why"]) for it in answered(served.admin.get(f"{STABLE}/history"))["items"]]
    assert told == [(1, 3, ""), (3, 1, "slower"), (1, 3, "faster"), (None, 1, "first proof")]
    assert answered(served.project.get(f"{SESSIONS}/{live['id']}"))["image"]["release"] == 1
    assert served.session(runtime_image_id="web")["image"]["release"] == 3


def test_history_comes_in_pages(served: Served) -> None:
    three(served)
    for number in (2, 3, 1):
        answered(served.admin.put(STABLE, json={"release": number}))
    first = answered(served.admin.get(f"{STABLE}/history", params={"limit": 3}))
    assert [it["revision"] for it in first["items"]] == [4, 3, 2]
    rest = answered(served.admin.get(f"{STABLE}/history", params={"after": first["next"]}))
    assert ([it["revision"] for it in rest["items"]], rest["next"]) == ([1], None)
    refused(served.admin.get(f"{STABLE}/history", params={"after": "x"}), 400, "invalid_body", "after")
    refused(served.admin.get(f"{IMAGES}/web/channels/none/history"), 404, "channel_unknown")
    refused(served.admin.get(f"{IMAGES}/none/channels/stable/history"), 404, "image_unknown")


def test_a_rollback_goes_where_it_was_seen_to_go(served: Served) -> None:
    three(served)
    answered(served.admin.put(STABLE, json={"release": 2}))
    late = served.admin.post(f"{STABLE}/rollback", json={"expected_revision": 1})
    error = refused(late, 409, "revision_stale", "expected_revision")
    assert error["details"] == {"current": 2}
    answered(served.admin.patch(f"{IMAGES}/web/releases/1", json={"state": "retired"}))
    refused(served.admin.post(f"{STABLE}/rollback"), 409, "release_retired", "release")
    assert answered(served.admin.get(STABLE))["release"] == 2


@pytest.mark.parametrize("how", ["promote", "rollback"])
def test_what_is_advised_against_says_so_and_not_that_somebody_was_faster(served: Served, how: str) -> None:
    three(served)
    answered(served.admin.put(STABLE, json={"release": 2}))
    answered(served.admin.patch(f"{IMAGES}/web/releases/1", json={"state": "deprecated"}))
    if how == "promote":
        response = served.admin.put(STABLE, json={"release": 1})
    else:
        response = served.admin.post(f"{STABLE}/rollback")
    assert refused(response, 400, "invalid_body", "release")["details"] == {"state": "deprecated"}
    answered(served.admin.patch(f"{IMAGES}/web/releases/1", json={"state": "active"}))
    assert answered(served.admin.put(STABLE, json={"release": 1}))["release"] == 1


def test_both_moves_are_in_the_audit_with_why(served: Served) -> None:
    three(served)
    answered(served.admin.put(STABLE, json={"release": 2, "why": "new"}))
    answered(served.admin.post(f"{STABLE}/rollback", json={"why": "broken"}))
    entries = answered(served.admin.get(f"{CORE}/audit"))["items"]
    moves = [(it["action"], it["principal"], it["details"]) for it in entries if it["action"].startswith("channel.")]
    assert moves == [
        ("channel.rollback", "local administrator", {"channel": "stable", "from": 2, "to": 1, "why": "broken"}),
        ("channel.promote", "local administrator", {"channel": "stable", "from": 1, "to": 2, "why": "new"}),
    ]


PROMOTIONS = f"{IMAGES}/web/promotions"


def until_ended(served: Served, promotion: Json) -> Json:
    path = f"{PROMOTIONS}/{promotion['id']}"
    eventually(lambda: answered(served.admin.get(path))["outcome"] is not None)
    return answered(served.admin.get(path))


def test_a_promotion_tells_how_far_it_is_and_how_it_ended(served: Served) -> None:
    three(served)
    body = {"release": 2, "nodes": 2, "deadline_seconds": 60, "why": "faster"}
    begun = answered(served.admin.post(PROMOTIONS, json=body), 201)
    assert (begun["before"], begun["nodes"], begun["outcome"]) == (1, 2, None)
    assert (begun["progress"]["ready"], begun["progress"]["needed"]) == (1, 2)
    assert [(it["node"], it["online"], it["state"]) for it in begun["progress"]["nodes"]] == [("n1", True, "ready")]
    other = answered(served.admin.post(PROMOTIONS, json={"release": 3, "channel": "canary"}), 201)
    settled = until_ended(served, other)
    assert (settled["outcome"], settled["ended_by"], settled["progress"]) == ("settled", "system", None)
    assert answered(served.admin.get(f"{IMAGES}/web/channels/canary"))["release"] == 3
    error = refused(served.admin.post(PROMOTIONS, json={"release": 3}), 409, "in_use", "channel")
    assert error["details"] == {"by": [begun["id"]]}
    aborted = answered(served.admin.post(f"{PROMOTIONS}/{begun['id']}/abort"))
    assert (aborted["outcome"], aborted["ended_by"]) == ("aborted", "local administrator")
    refused(served.admin.post(f"{PROMOTIONS}/{other['id']}/abort"), 409, "already_ended")
    listed = [answered(served.admin.get(PROMOTIONS, params={"limit": 1}))]
    listed.append(answered(served.admin.get(PROMOTIONS, params={"after": listed[0]["next"]})))
    assert [it["id"] for page in listed for it in page["items"]] == [other["id"], begun["id"]]
    assert answered(served.admin.get(STABLE))["release"] == 1
    said = {
        it["action"]: it["details"]["reason"]
        for it in answered(served.admin.get(f"{CORE}/audit"))["items"]
        if it["action"].startswith("promotion.") and "reason" in it["details"]
    }
    assert said == {"promotion.settled": None, "promotion.aborted": None}


def test_time_that_is_over_is_told_with_the_nodes(served: Served) -> None:
    three(served)
    begun = answered(served.admin.post(PROMOTIONS, json={"release": 2, "nodes": 2, "deadline_seconds": 1}), 201)
    failed = until_ended(served, begun)
    assert (failed["outcome"], failed["failure"]["code"]) == ("failed", "wait_expired")
    assert failed["failure"]["details"] == {"ready": 1, "needed": 2, "missing": [], "diagnostics": {}}
    assert answered(served.admin.get(STABLE))["release"] == 1


@pytest.mark.parametrize(
    "body, status, code, param",
    [
        ({"release": 9}, 404, "release_unknown", None),
        ({"release": 2, "channel": "7"}, 400, "invalid_body", "channel"),
        ({"release": 2, "nodes": 0}, 400, "invalid_body", "nodes"),
        ({"release": 2, "deadline_seconds": 0}, 400, "invalid_body", "deadline_seconds"),
        ({"release": 2, "expected_revision": 5}, 409, "revision_stale", "expected_revision"),
    ],
)
def test_what_no_promotion_can_begin_with(pair: Served, body: Json, status: int, code: str, param: str | None) -> None:
    refused(pair.admin.post(PROMOTIONS, json=body), status, code, param)
    assert answered(pair.admin.get(PROMOTIONS))["items"] == []


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With `web` in two releases; nothing here changes it."""
    it = Served(tmp_path_factory.mktemp("pair"))
    try:
        it.image("web", "web-1")
        it.image("web", "web-2")
        yield it
    finally:
        it.close()
