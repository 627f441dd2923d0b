"""Suspend and resume with real sandboxes: the files, on the same release, whatever has changed meanwhile."""

from collections.abc import Iterator

import pytest

from tests.e2e.installation import Installation
from tests.support.tar_entries import file

pytestmark = [pytest.mark.real, pytest.mark.slow]


@pytest.fixture
def own() -> Iterator[Installation]:
    """An installation with a healthy default image `plain` beside `web`, whose first release is `stable`."""
    it = Installation()
    try:
        it.up()
        for name in ("plain", "web"):
            assert it.register(name, it.image(name), "--promote", "stable").code == 0
        it.ok("deployment", "set", "--default-image", "plain")
        yield it
    finally:
        it.close()


def _status(house: Installation, session: str) -> str:
    return house.ok("sessions", "get", session, "-q").out.strip()


def test_it_comes_back_on_its_release_whatever_has_changed(own: Installation) -> None:
    made = own.ok("sessions", "create", "--image", "web", "--env", "A=1", "--json").data
    session, image = made["id"], made["image"]
    own.ok("sessions", "exec", session, "--shell", "echo kept > file; echo root > /etc/mine; rm /etc/hosts")
    own.ok("sessions", "exec", session, "--shell", "(while true; do sleep 1; done) >/dev/null 2>&1 &")
    own.ok("sessions", "suspend", session)
    assert _status(own, session) == "suspended"
    assert "mounts" not in own.left(), "nothing of it runs or is mounted"
    refused = own.cli("sessions", "exec", session, "--json", "--", "true")
    assert refused.refusal["code"] == "not_running"
    assert own.register("web", own.image("web", file("new", b"2")), "--promote", "stable").code == 0
    own.ok("images", "retire", "web:1")
    own.ok("images", "retire", "web")
    assert own.cli("run", "web", "--json", "--", "true").refusal["code"] == "image_retired"
    own.ok("sessions", "suspend", session)
    own.ok("sessions", "resume", session)
    own.ok("sessions", "resume", session)
    again = own.ok("sessions", "get", session, "--json").data
    assert (again["status"], again["image"]) == ("running", image), "the very release that it was admitted on"
    said = own.ok(
        "sessions", "exec", session, "--shell", "cat file /etc/mine /which; ls /new /etc/hosts; echo $A; ps"
    ).out
    assert said.split()[:3] == ["kept", "root", "web"]
    assert "sleep" not in said, "processes are not kept"
    assert "\n1\n" in said
    assert own.ok("run", "plain", "--", "cat", "/which").out == "plain\n"
    own.ok("sessions", "rm", session)
    assert list((own.node_home / "snapshots").iterdir()) == []


def test_kill_9_of_everything_loses_nothing_that_is_kept(own: Installation) -> None:
    session = own.ok("sessions", "create", "--image", "web", "--json").data["id"]
    own.ok("sessions", "exec", session, "--shell", "echo kept > file")
    own.ok("sessions", "suspend", session)
    own.kill()
    own.up()
    assert _status(own, session) == "suspended"
    said = own.ok("images", "evict", "web").out
    assert said.startswith("kept"), "what it stands on is needed"
    own.ok("sessions", "resume", session)
    assert own.ok("sessions", "exec", session, "--", "cat", "file", "/which").out == "kept\nweb\n"
    own.ok("sessions", "rm", session)


def test_going_down_ends_what_runs_and_leaves_what_is_suspended(own: Installation) -> None:
    session, running = (own.ok("sessions", "create", "--image", "web", "--json").data["id"] for _ in range(2))
    own.ok("sessions", "exec", session, "--shell", "echo kept > file")
    own.ok("sessions", "suspend", session)
    own.ok("down")
    assert own.left() == {}
    own.up()
    assert (_status(own, session), _status(own, running)) == ("suspended", "ended")
    own.ok("sessions", "resume", session)
    assert own.ok("sessions", "exec", session, "--", "cat", "file", "/which").out == "kept\nweb\n"
    own.ok("sessions", "rm", session)


def test_one_that_is_deleted_while_it_is_suspended_leaves_nothing(own: Installation) -> None:
    session = own.ok("sessions", "create", "--image", "web", "--json").data["id"]
    own.ok("sessions", "suspend", session)
    assert len(list((own.node_home / "snapshots").iterdir())) == 1
    own.ok("sessions", "rm", session)
    assert _status(own, session) == "ended"
    own.eventually(lambda: list((own.node_home / "snapshots").iterdir()) == [])
    refused = own.cli("sessions", "resume", session, "--json")
    assert refused.refusal["code"] == "already_ended"
