"""kill -9 of the process that serves: sandboxes live on, the next start adopts them and removes what nobody owns."""

from collections.abc import Iterator

import pytest

from tests.e2e.installation import Installation

pytestmark = [pytest.mark.real, pytest.mark.slow]

COUNT = "n=0; while true; do n=$((n+1)); echo $n >> /workspace/n; sleep 0.1; done"


@pytest.fixture(scope="module")
def killed() -> Iterator[Installation]:
    it = Installation()
    try:
        it.up()
        assert it.register("plain", it.image("plain")).code == 0
        yield it
    finally:
        it.close()


@pytest.fixture
def own(killed: Installation) -> Installation:
    """An installation that a test may kill; one may have done so."""
    killed.up()
    return killed


def test_a_running_sandbox_is_adopted(own: Installation) -> None:
    session = own.ok("sessions", "create", "--image", "plain", "--json").data["id"]
    own.ok("sessions", "exec", session, "--shell", f"({COUNT}) >/dev/null 2>&1 &")
    before = own.ok("sessions", "get", session, "--json").data
    own.kill()
    own.up()
    after = own.ok("sessions", "get", session, "--json").data
    assert (after["status"], after["host_pid"], after["image"]) == ("running", before["host_pid"], before["image"])
    first = own.ok("sessions", "exec", session, "--", "cat", "n").out
    own.ok("sessions", "exec", session, "--shell", "sleep 0.5")
    assert len(own.ok("sessions", "exec", session, "--", "cat", "n").out) > len(first), "it did not live on"
    own.ok("sessions", "rm", session)


def test_what_nobody_owns_is_removed(own: Installation) -> None:
    """The row says that the Session has ended; the process died before the node heard of it."""
    session = own.ok("sessions", "create", "--image", "plain", "--json").data["id"]
    assert own.left()["mounts"], "a running sandbox shows on the host"
    own.kill()
    own.sql("UPDATE allocations SET state = 'closed' WHERE session = ?", session)
    own.sql("UPDATE sessions SET state = 'ended' WHERE id = ?", session)
    own.up()
    own.eventually(lambda: "mounts" not in own.left())
    assert own.ok("sessions", "get", session, "--json").data["status"] == "ended"


def test_a_sandbox_that_died_meanwhile_is_told(own: Installation) -> None:
    session = own.ok("sessions", "create", "--image", "plain", "--json").data["id"]
    pid = own.ok("sessions", "get", session, "--json").data["host_pid"]
    own.kill()
    own.end_process(pid)
    own.up()
    own.eventually(lambda: own.ok("sessions", "get", session, "--json").data["status"] == "failed")
    assert own.ok("sessions", "get", session, "--json").data["reason"]["code"] == "node_lost"


def test_down_may_leave_sessions_for_the_next_up(own: Installation) -> None:
    session = own.ok("sessions", "create", "--image", "plain", "--json").data["id"]
    own.ok("down", "--keep-sessions")
    own.up()
    assert own.ok("sessions", "exec", session, "--", "cat", "/which").out == "plain\n"
    own.ok("down")
    assert own.left() == {}
    own.up()
    assert own.ok("sessions", "get", session, "--json").data["status"] == "ended"
