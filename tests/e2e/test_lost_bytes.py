"""Bytes that go bad on a node. Images that are bad from the start: `test_awkward_images.py`."""

import pytest

from sandbay.domain.reasons import Reason
from tests.e2e.installation import Installation
from tests.support import reasons

pytestmark = pytest.mark.real


@pytest.mark.produces(Reason.CONTENT_LOST)
def test_bytes_lost_on_the_node_start_nothing(house: Installation) -> None:
    """What the node kept of the image is damaged behind its back: the start notices."""
    assert house.register("lost", house.image("lost")).code == 0
    digest = house.ok("images", "inspect", "lost:1", "--json").data["release"]["variants"][0]["digest"]
    copy = house.node_home / "store" / "meta" / digest.replace(":", "/")
    copy.write_bytes(copy.read_bytes().replace(b"{", b"["))
    done = house.cli("run", "lost", "--wait", "0", "--json", "--", "cat", "/which")
    reasons.note(done.err)
    assert (done.code, done.out, done.refusal["code"]) == (125, "", "content_lost")
    again = house.cli("run", "lost", "--", "cat", "/which")
    assert (again.code, again.out) == (0, "lost\n"), "it is fetched again"
