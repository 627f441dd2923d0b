"""Tools through the command line, with real sandboxes, and kill -9 of the installation in the middle of a check."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.installation import Installation
from tests.support.tar_entries import file

pytestmark = pytest.mark.real

SLOW = file("bin/slow", "#!/bin/sh\nsleep 4\necho slow 3.2.1\n", 0o755)


@pytest.fixture
def own() -> Iterator[Installation]:
    """An installation that a test may kill."""
    it = Installation()
    try:
        it.up()
        yield it
    finally:
        it.close()


def release_of(own: Installation) -> Any:
    return own.get("/core/v1/sandbox/images/web/releases/1")


def readiness(own: Installation) -> str | None:
    items = own.get("/core/v1/sandbox/images/web/readiness")["items"]
    return items[0]["state"] if items else None


def test_tools_are_promised_checked_shown_required_and_frozen(own: Installation) -> None:
    done = own.register(
        "web", own.image("web"), "--tool", "box=busybox echo box v1.35.0", "--tool", "sh=sh -c 'echo 2.0'"
    )
    assert done.code == 0, done.err
    assert done.data["tools"] == {"box": "1.35.0", "sh": "2.0"}
    shown = own.ok("images", "inspect", "web").out
    assert "kept" in shown
    assert "box v1.35.0" in shown
    assert own.ok("images", "check", "web", "--json").data["contract"]["checks"] == 2
    session = own.ok("sessions", "create", "--image", "web", "--json").data
    assert session["image"]["tools"] == {"box": "1.35.0", "sh": "2.0"}

    broken = own.register("broken", own.image("broken"), "--tool", "node=node --version")
    assert (broken.code, broken.refusal["code"]) == (125, "contract_violated")
    assert broken.refusal["details"]["tools"]["node"]["violation"] == "not_found"


@pytest.mark.slow
def test_kill_9_in_the_middle_of_a_check_repeats_it(own: Installation) -> None:
    done = own.cli("images", "register", "web", "--from-layout", str(own.image("web", SLOW)), "--tool", "slow=slow")
    assert done.code == 0, done.err
    own.eventually(lambda: readiness(own) == "ready" and "mounts" in own.left())
    assert release_of(own)["contract"]["state"] == "due"
    own.kill()
    own.up()
    own.eventually(lambda: release_of(own)["state"] == "active", within=60)
    release = release_of(own)
    assert (release["tools"], release["contract"]["checks"]) == ({"slow": "3.2.1"}, 1)
    assert [it["number"] for it in own.get("/core/v1/sandbox/images/web/releases/1/reports")["items"]] == [1]
    own.eventually(lambda: "mounts" not in own.left())
