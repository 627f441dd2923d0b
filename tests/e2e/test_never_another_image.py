"""Every way an image could be swapped is tried; a healthy default stands beside each, and never runs instead."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.installation import Done, Installation
from tests.e2e.rigged import Rigged
from tests.support.oci_layout import BUSYBOX_CONFIG, HOST_PLATFORM, Layout, busybox_layers
from tests.support.tar_entries import file

pytestmark = pytest.mark.real

FOREIGN = "linux/arm64" if HOST_PLATFORM == "linux/amd64" else "linux/amd64"
WHICH = ("--", "cat", "/which")


def refused(done: Done, code: str) -> Any:
    """The refusal's error, after looking that nothing ran: no output, our exit code, no traceback."""
    assert done.code == 125, done
    assert done.out == "", "something ran"
    assert "Traceback" not in done.err
    assert done.refusal["code"] == code
    return done.refusal


def run(house: Installation, reference: str, *options: str) -> Done:
    return house.cli("run", reference, "--wait", "0", "--json", *options, *WHICH)


@pytest.fixture(autouse=True)
def _default_stays_healthy(house: Installation) -> Iterator[None]:
    yield
    done = house.cli("run", "@default", *WHICH)
    assert (done.code, done.out) == (0, "plain\n"), "the default beside the case was not healthy"


@pytest.mark.parametrize(
    "code, references",
    [
        ("image_unknown", ["nosuch", "nosuch:stable", "nosuch:1", "img_00000000000000000000"]),
        ("invalid_reference", ["PLAIN", "plain "]),
        ("release_unknown", ["plain:99", "plain@sha256:" + "0" * 64, "rel_00000000000000000000"]),
        ("channel_unknown", ["plain:nightly"]),
    ],
)
def test_what_is_unknown_is_neither_the_default_nor_its_stable(
    house: Installation, code: str, references: list[str]
) -> None:
    for reference in references:
        assert refused(run(house, reference), code)["param"] == "runtime_image_id", reference


def test_a_retired_image(house: Installation) -> None:
    assert house.register("old", house.image("old")).code == 0
    house.ok("images", "retire", "old")
    refused(run(house, "old"), "image_retired")


def test_a_rejected_release(house: Installation) -> None:
    path = house.layouts / "climbing"
    Layout(path).image([*busybox_layers(), [file("../which", b"climbing\n")]], BUSYBOX_CONFIG)
    refused(house.register("climbing", path), "unsafe_layer_path")
    assert refused(run(house, "climbing"), "release_rejected")["details"]["fault"]["code"] == "unsafe_layer_path"
    refused(run(house, "climbing:1"), "release_rejected")


def test_a_platform_that_the_image_has_not(house: Installation) -> None:
    error = refused(run(house, "plain", "--platform", FOREIGN), "image_unsupported")
    assert error["details"]["platforms"] == [HOST_PLATFORM]


def test_a_platform_that_no_pool_has(house: Installation) -> None:
    path = house.image("foreign", platform=FOREIGN)
    house.ok("images", "register", "foreign", "--from-layout", str(path), "--platform", FOREIGN)
    refused(run(house, "foreign", "--platform", FOREIGN), "image_unsupported")
    refused(run(house, "foreign"), "image_unsupported")


def test_not_ready(house: Installation) -> None:
    assert house.register("rare", house.image("rare")).code == 0
    house.ok("images", "evict", "rare")
    error = refused(run(house, "rare"), "image_not_ready")
    assert error["details"]["state"] in ("absent", "preparing")
    done = house.cli("run", "rare", *WHICH)
    assert (done.code, done.out) == (0, "rare\n"), "with time to wait it is that very image"


def test_a_moved_tag_moves_no_session(house: Installation) -> None:
    assert house.register("moved", house.image("moved-1")).code == 0
    session = house.ok("sessions", "create", "--image", "moved:stable", "--json").data
    assert house.register("moved", house.image("moved-2")).code == 0
    house.ok("images", "promote", "moved:2")
    assert house.ok("sessions", "exec", session["id"], *WHICH).out == "moved-1\n"
    again = house.ok("sessions", "get", session["id"], "--json").data
    assert again["image"] == session["image"]
    done = house.cli("run", "moved", *WHICH)
    assert (done.code, done.out) == (0, "moved-2\n")
    done = house.cli("run", "moved:1", *WHICH)
    assert (done.code, done.out) == (0, "moved-1\n")
    house.ok("sessions", "rm", session["id"])


def test_a_digest_means_that_digest(house: Installation) -> None:
    assert house.register("exact", house.image("exact-1")).code == 0
    assert house.register("exact", house.image("exact-2"), "--promote", "stable").code == 0
    first = house.ok("images", "inspect", "exact:1", "--json").data["release"]["variants"][0]["digest"]
    done = house.cli("run", f"exact@{first}", *WHICH)
    assert (done.code, done.out) == (0, "exact-1\n")


def test_a_project_preference_that_cannot_be_had_is_no_reason_for_the_default(house: Installation) -> None:
    assert house.register("liked", house.image("liked")).code == 0
    house.prefer("liked")
    try:
        session = house.ok("sessions", "create", "--json").data
        assert session["image"]["decided_by"]["level"] == "project"
        assert house.ok("sessions", "exec", session["id"], *WHICH).out == "liked\n"
        house.ok("sessions", "rm", session["id"])
        house.ok("images", "retire", "liked")
        refused(house.cli("sessions", "create", "--json"), "image_retired")
    finally:
        house.prefer(None)


def test_a_pending_release(rigged: Rigged) -> None:
    house = rigged.house
    rigged.provider.hold.clear()
    try:
        house.ok("images", "register", "slow", "--from-layout", str(house.image("slow")))
        refused(run(house, "slow"), "release_pending")
    finally:
        rigged.provider.hold.set()
    done = house.cli("images", "register", "slow", "--from-layout", str(house.layouts / "slow-1"), "--wait")
    assert done.code == 0, done
    assert house.cli("run", "slow", *WHICH).out == "slow\n"


def test_a_provider_that_boots_another_image(rigged: Rigged) -> None:
    """The real provider is told to boot the default instead: nobody gets to use what came up."""
    house = rigged.house
    assert house.register("wanted", house.image("wanted")).code == 0
    rigged.provider.boots = "plain"
    try:
        refused(run(house, "wanted"), "image_mismatch")
    finally:
        rigged.provider.boots = None
    listed = house.ok("sessions", "ls", "--json").data["items"]
    assert [s["reason"]["code"] for s in listed if s["image"]["name"] == "wanted"] == ["image_mismatch"]
    assert not rigged.provider.list_allocations()
    assert house.cli("run", "wanted", *WHICH).out == "wanted\n"
