"""How long Sessions live, with real sandboxes: who asked for little is told and ended, who is beside lives on."""

import json

import pytest

from tests.e2e.installation import Installation

pytestmark = [pytest.mark.real, pytest.mark.slow]


def test_an_unused_session_is_told_and_ended_and_the_others_live_on(house: Installation) -> None:
    beside = house.ok("sessions", "create", "--image", "plain", "--json").data["id"]
    session = house.ok("sessions", "create", "--image", "plain", "--idle-timeout", "10", "--json").data
    assert (session["idle_timeout"], session["max_life"], session["foretold"]) == (10, None, None)
    house.eventually(lambda: house.ok("sessions", "get", session["id"], "-q").out == "ended\n", within=60)
    lines = house.ok("sessions", "get", session["id"], "--watch", "--json").out.splitlines()
    told = [it for it in map(json.loads, lines) if it["event"] == "state"]
    assert [it["status"] for it in told] == ["starting", "running", "running", "ending", "ended"]
    assert told[2]["foretold"]["because"] == "idle"
    assert told[-1]["ended_because"] == "idle"
    shown = [line.split() for line in house.ok("sessions", "get", session["id"]).out.splitlines()]
    assert ["because", "idle"] in shown
    refused = house.cli("sessions", "exec", session["id"], "--json", "--", "true")
    assert refused.refusal["code"] == "already_ended"
    assert house.ok("sessions", "exec", beside, "--", "cat", "/which").out == "plain\n"
    house.ok("sessions", "rm", beside)


def test_a_session_in_use_lives_for_its_life_and_no_longer(house: Installation) -> None:
    session = house.ok("sessions", "create", "--image", "plain", "--idle-timeout", "10", "--max-life", "25", "--json")
    done = house.cli("sessions", "exec", session.data["id"], "--json", "--", "sleep", "100", timeout=100)
    assert done.code == 143, "its command was asked to end, when it was over"
    house.eventually(lambda: house.ok("sessions", "get", session.data["id"], "-q").out == "ended\n")
    shown = house.get(f"/core/v1/sandbox/sessions/{session.data['id']}")
    assert shown["ended_because"] == "life_over"
    assert shown["ended_at"] > session.data["created_at"]


@pytest.mark.parametrize("option", ["--idle-timeout", "--max-life"])
def test_a_life_that_is_too_short_is_wrong_usage(house: Installation, option: str) -> None:
    assert house.cli("sessions", "create", "--image", "plain", option, "9").code == 2
