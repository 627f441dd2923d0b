"""Channels through HTTP: promote, roll back, and what was before. Sessions keep what they were admitted with."""

import pytest

from tests.api.served import CORE, IMAGES, SESSIONS, Served, answered, refused

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
