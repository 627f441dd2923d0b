"""Small rules of the other nouns: moves of a Session, sizes, nodes and pools, artifacts, the catalog's view."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from sandbay.domain.catalog import CatalogView, Image, ImageEntry, ReleaseEntry
from sandbay.domain.declaration import ArtifactRule
from sandbay.domain.deployment import NOTHING_ASKED, Deployment, Pool, SandboxSize
from sandbay.domain.ids import ImageId, NodeId, ReleaseId
from sandbay.domain.node import ONLINE_FOR, Node
from sandbay.domain.platform import Platform
from sandbay.domain.release import Release, ReleaseStatus
from sandbay.domain.session import FINAL, SESSION_MOVES, SessionState

AMD, ARM = Platform.of("linux", "amd64"), Platform.of("linux", "arm64")
NOW = datetime(2026, 1, 1, tzinfo=UTC)

LEGAL = {
    *product(["waiting"], ["starting", "ending", "failed"]),
    *product(["starting"], ["running", "ending", "failed"]),
    *product(["running"], ["suspending", "ending", "failed"]),
    *product(["suspending"], ["suspended", "running", "ending", "failed"]),
    *product(["suspended"], ["resuming", "ending"]),
    *product(["resuming"], ["running", "suspended", "ending"]),
    ("ending", "ended"),
}


@pytest.mark.parametrize("here, there", list(product(SessionState, SessionState)))
def test_moves_of_a_session(here: SessionState, there: SessionState) -> None:
    assert (there in SESSION_MOVES[here]) is ((here.value, there.value) in LEGAL)


def test_a_session_always_has_a_way_to_its_end() -> None:
    for state in SessionState:
        reached = {state}
        while (more := reached.union(*(SESSION_MOVES[s] for s in reached))) != reached:
            reached = more
        assert reached & FINAL
        assert (reached == {state}) is (state in FINAL)


@pytest.mark.parametrize(
    "wanted, fits",
    [
        (NOTHING_ASKED, True),
        (SandboxSize(1.0, 100, 10), True),
        (SandboxSize(1.1, 100, 10), False),
        (SandboxSize(1.0, 101, 10), False),
        (SandboxSize(1.0, 100, 11), False),
    ],
)
def test_a_size_is_a_minimum_in_every_dimension(wanted: SandboxSize, *, fits: bool) -> None:
    assert SandboxSize(1.0, 100, 10).holds(wanted) is fits


POOL = Pool("main", "p", AMD, node_selector={"zone": "a"})
NODE = Node(NodeId("node_x"), "n", "p", "r", AMD, 8, {"zone": "a", "more": "b"})


@pytest.mark.parametrize(
    "node, pool, serves",
    [
        (NODE, POOL, True),
        (NODE, replace(POOL, node_selector={}), True),
        (replace(NODE, provider="q"), POOL, False),
        (replace(NODE, platform=ARM), POOL, False),
        (replace(NODE, labels={"zone": "b"}), POOL, False),
        (replace(NODE, labels={}), POOL, False),
    ],
)
def test_which_nodes_a_pool_has(node: Node, pool: Pool, *, serves: bool) -> None:
    assert node.serves(pool) is serves


@pytest.mark.parametrize(
    "ago, online", [(timedelta(0), True), (ONLINE_FOR, True), (ONLINE_FOR + timedelta(microseconds=1), False)]
)
def test_a_node_is_online_while_heard_from(ago: timedelta, *, online: bool) -> None:
    assert replace(NODE, last_seen=NOW - ago).online(NOW) is online
    assert not NODE.online(NOW)


def test_an_artifact_fits_as_a_whole() -> None:
    rule = ArtifactRule("sha256:[0-9a-f]{4}")
    assert rule.fits("sha256:00ff")
    for bad in ("sha256:00ff\n", "xsha256:00ff", "sha256:00ffa", ""):
        assert not rule.fits(bad)


def test_pools_are_found_by_name_in_their_order() -> None:
    deployment = Deployment(1, AMD, (POOL, replace(POOL, name="other")))
    assert deployment.pool("main") == POOL
    assert deployment.pool("none") is None


def test_the_view_finds_images_by_name_or_id_and_releases_by_id() -> None:
    def entry(name: str) -> ImageEntry:
        image = Image(ImageId(f"img_{name}"), name, NOW)
        release = Release(ReleaseId(f"rel_{name}"), image.id, 3, ())
        return ImageEntry(image, {3: ReleaseEntry(release, ReleaseStatus())})

    view = CatalogView((entry("a"), entry("b")))
    assert view.image("b") == view.image("img_b") == entry("b")
    assert view.image("c") is None
    assert view.image("rel_b") is None
    assert view.owner_of(ReleaseId("rel_b")) == (entry("b"), 3)
    assert view.owner_of(ReleaseId("rel_c")) is None
