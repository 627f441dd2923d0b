"""A registration that is followed: how far it is, what becomes of it, and that nobody has to listen."""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sandbay.engine.registry.pace import Patience
from tests.api.served import IMAGES, Json, answered, refused
from tests.api.test_events import Stream
from tests.api.test_registries import World
from tests.app.world import eventually
from tests.support.oci_layout import HOST_PLATFORM
from tests.support.tar_entries import file

RELEASES = f"{IMAGES}/web/releases"
EVENTS = {"Accept": "text/event-stream"}


class Followed(Stream):
    """A registration's events."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(response)
        self.request_id = response.headers["x-request-id"]

    def over(self) -> bool:
        """Whether nothing follows."""
        try:
            self.next()
        except StopIteration:
            return True
        return False


class Slow(World):
    """Its registry stops halfway through the one layer of fx:big until it may `go`."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        content = file("big", os.urandom(512 * 1024))
        self.big = self.layout.image([[content]], platform=HOST_PLATFORM, ref="big")
        self.go = threading.Event()
        self.faulty({"hold": self.go})

    def asking(self, reference: str = "fx:big") -> Json:
        return {"source": {"registry": f"{self.registry.host}/{reference}"}}

    @contextlib.contextmanager
    def following(self) -> Iterator[Followed]:
        with self.served.admin.stream("POST", RELEASES, headers=EVENTS, json=self.asking()) as response:
            yield Followed(response)

    def releases(self) -> list[Json]:
        items: list[Json] = answered(self.served.admin.get(RELEASES))["items"]
        return items


def halfway(stream: Stream) -> Json:
    """The first event that tells of some bytes, which are never all."""
    while True:
        seen = stream.until("progress")
        assert seen["bytes_done"] < seen["bytes_total"]
        if seen["bytes_done"] > 0:
            return seen


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    it = Slow(tmp_path)
    monkeypatch.setattr(it.served.world.pace, "patience", Patience(connect=60, read=60))
    try:
        yield it
    finally:
        it.go.set()
        it.close()


def test_how_far_it_is_is_told_while_it_is_fetched(slow: Slow) -> None:
    with slow.following() as stream:
        seen = halfway(stream)
        assert seen["layers"] == 1
        assert slow.releases() == []
        slow.go.set()
        told = [seen]
        while (event := stream.next())[0] == "progress":
            told.append(event[1])
        name, release = event
        assert stream.over()
    done = [it["bytes_done"] for it in told]
    assert done == sorted(set(done))
    assert told[-1] == {"bytes_done": seen["bytes_total"], "bytes_total": seen["bytes_total"], "layers": 1}
    assert (name, release["number"]) == ("release", 1)
    assert release["variants"][0]["digest"] == slow.big.manifest_digest
    again = answered(slow.served.admin.post(RELEASES, json=slow.asking()))
    assert again["id"] == release["id"]


def test_a_refusal_on_the_way_is_the_last_event(slow: Slow) -> None:
    layer = slow.layout.blob_path(slow.big.layers[0].digest)
    layer.write_bytes(layer.read_bytes()[:-1] + b"?")
    with slow.following() as stream:
        halfway(stream)
        slow.go.set()
        error = stream.until("refused")["error"]
        assert (error["code"], error["request_id"]) == ("digest_mismatch", stream.request_id)
        assert stream.over()
    assert slow.releases() == []


def test_what_is_refused_at_once_is_answered_as_ever(slow: Slow) -> None:
    answer = slow.served.admin.post(RELEASES, headers=EVENTS, json=slow.asking("fx:none"))
    refused(answer, 502, "manifest_missing")
    unknown = slow.served.admin.post(f"{IMAGES}/none/releases", headers=EVENTS, json=slow.asking())
    refused(unknown, 404, "image_unknown")


def test_an_upload_is_followed_too(slow: Slow) -> None:
    body = {"source": {"upload": slow.served.upload("mine")}}
    with slow.served.admin.stream("POST", RELEASES, headers=EVENTS, json=body) as response:
        stream = Followed(response)
        assert stream.until("progress")["bytes_total"] > 0
        assert stream.until("release")["number"] == 1
    assert slow.registry.seen == []


def test_it_goes_on_when_nobody_listens_any_more(slow: Slow) -> None:
    with slow.following() as stream:
        halfway(stream)
    assert slow.releases() == []
    slow.go.set()
    eventually(lambda: [it["number"] for it in slow.releases()] == [1], within=60)
