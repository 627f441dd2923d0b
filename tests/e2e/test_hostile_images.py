"""Hostile and broken layers through the product's own front: refused by name, never run, the host untouched."""

from pathlib import Path

import pytest

from sandbay.domain.reasons import Reason
from tests.e2e.installation import Installation
from tests.support import reasons
from tests.support.canary import canary

pytestmark = pytest.mark.real

FIXTURES = Path(__file__).parents[1] / "fixtures" / "images"
CANARY = Path("/tmp/rfx-canary")

REFUSED = [
    pytest.param("a01-dotdot", "unsafe_layer_path", marks=pytest.mark.produces(Reason.UNSAFE_LAYER_PATH)),
    pytest.param("a06-hardlink-dotdot", "unsafe_link", marks=pytest.mark.produces(Reason.UNSAFE_LINK)),
    pytest.param("a07-hardlink-absolute", "unsafe_link"),
    pytest.param("a09-root-replaced", "unsafe_layer_path"),
    pytest.param("b06-whiteout-dotdot", "unsafe_whiteout", marks=pytest.mark.produces(Reason.UNSAFE_WHITEOUT)),
    pytest.param("b10-char-0-0", "unsafe_device", marks=pytest.mark.produces(Reason.UNSAFE_DEVICE)),
    pytest.param("d08-diff-id-wrong", "diff_id_mismatch", marks=pytest.mark.produces(Reason.DIFF_ID_MISMATCH)),
    pytest.param("d11-tar-garbage-inside", "malformed_layer", marks=pytest.mark.produces(Reason.MALFORMED_LAYER)),
    pytest.param("d13-tar-cut-in-data", "malformed_layer"),
]


@pytest.mark.parametrize("fixture, code", REFUSED)
def test_it_is_refused_by_name_and_never_runs(house: Installation, fixture: str, code: str) -> None:
    name = fixture[:3]
    with canary():
        done = house.register(name, FIXTURES / fixture / "layout", "--platform", "linux/amd64")
    reasons.note(done.err)
    assert (done.code, done.refusal["code"]) == (125, code), done
    assert "Traceback" not in done.err
    ran = house.cli("run", name, "--wait", "0", "--json", "--", "true")
    assert (ran.code, ran.refusal["code"]) == (125, "release_rejected")


@pytest.mark.parametrize("fixture", ["g01-archive", "g02-archive-linked-layer", "g06-archive-no-tags"])
def test_a_docker_archive_runs(house: Installation, fixture: str) -> None:
    archive = str(FIXTURES / fixture / "archive.tar")
    options = ("--platform", "linux/amd64", "--wait", "--json")
    done = house.cli("images", "register", fixture[:3], "--from-archive", archive, *options)
    assert done.code == 0, done
    # The program in it ends as it is told.
    assert house.cli("run", fixture[:3], "--", "/bin/probe", "exit", "7").code == 7


@pytest.mark.produces(Reason.CONTENT_LOST)
def test_bytes_lost_on_the_node_start_nothing(house: Installation) -> None:
    """What the node kept of the image is damaged behind its back: the start notices."""
    assert house.register("lost", house.image("lost")).code == 0
    digest = house.ok("images", "inspect", "lost:1", "--json").data["release"]["variants"][0]["digest"]
    copy = house.home / "store" / "meta" / digest.replace(":", "/")
    copy.write_bytes(copy.read_bytes().replace(b"{", b"["))
    done = house.cli("run", "lost", "--wait", "0", "--json", "--", "cat", "/which")
    reasons.note(done.err)
    assert (done.code, done.out, done.refusal["code"]) == (125, "", "content_lost")
    again = house.cli("run", "lost", "--", "cat", "/which")
    assert (again.code, again.out) == (0, "lost\n"), "it is fetched again"
