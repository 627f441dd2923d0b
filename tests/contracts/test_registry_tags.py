"""The tags of a repository: all pages, wherever the registry says that they are, and nothing elsewhere."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.engine.registry.auth import Auth
from sandbay.engine.registry.client import RegistryClient
from sandbay.engine.registry.pace import Pace
from sandbay.engine.registry.tags import list_tags
from sandbay.engine.registry.trust import Trust
from tests.contracts import test_registry_source
from tests.contracts.image_source_suite import FIXTURES
from tests.contracts.test_registry_source import GOOD, Serve
from tests.support.faulty_registry import FaultyRegistry
from tests.support.oci_layout import Layout
from tests.support.real_registry import RealRegistry, needs_registry
from tests.support.tar_entries import file

blobs, serve = test_registry_source.blobs, test_registry_source.serve

MANY = [f"{major}.{minor}" for major in range(25) for minor in range(10)]


@contextlib.contextmanager
def asking(host: str, repository: str) -> Iterator[RegistryClient]:
    trust = Trust([host])
    with httpx.Client(trust_env=False) as http:
        yield RegistryClient(http, host, repository, Auth(host, repository, None, trust), trust, Pace())


def paths(registry: FaultyRegistry) -> list[str]:
    return [request["path"] for request in registry.asked("/tags/list")]


def test_every_page_is_asked_for_as_the_link_spells_it() -> None:
    with FaultyRegistry(FIXTURES, {"tags": MANY[:7]}) as registry, asking(registry.host, "fx") as client:
        assert list_tags(client) == MANY[:7]
        opaque = [f"/v2/fx/tags/list?next=%2F{at}%3D%3D" for at in (3, 6)]
        assert paths(registry) == ["/v2/fx/tags/list?n=1000", *opaque]


@needs_registry
def test_250_tags_of_a_real_registry_in_pages(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "layout")
    image = layout.image([[file("a", b"a")]])
    with RealRegistry(tmp_path / "registry") as real:
        real.push(layout.path, "fx", MANY[0])
        document = layout.blob_path(image.manifest_digest).read_bytes()
        for tag in MANY[1:]:
            real.tag("fx", tag, image.descriptor["mediaType"], document)
        with asking(real.host, "fx") as client:
            whole = list_tags(client)
            assert sorted(whole) == sorted(MANY)
            assert list_tags(client, page=100) == whole


@pytest.mark.parametrize(
    "link",
    [
        '<http://{storage}/v2/fx/tags/list?next=1>; rel="next"',
        '<https://{host}/v2/fx/tags/list?next=1>; rel="next"',
        '<file:///etc/passwd>; rel="next"',
        '<//user:secret@{host}/v2/fx/tags/list>; rel="next"',
        '<http://[>; rel="next"',
    ],
)
def test_a_link_that_leads_elsewhere_is_not_followed(link: str, serve: Serve) -> None:
    registry, puller = serve({"tags": MANY[:3]})
    registry.faults = {**registry.faults, "link": link.format(host=registry.host, storage=registry.storage)}
    with asking(registry.host, "fx") as client, pytest.raises(RefusedError) as caught:
        list_tags(client)
    assert caught.value.refusal.reason is Reason.REGISTRY_UNREACHABLE
    refusal = puller.refused(f"{registry.host}/{GOOD}:none")
    assert (refusal.reason, "tags" in refusal.details) == (Reason.MANIFEST_MISSING, False)
    assert all(not request["storage"] for request in registry.seen)


def test_a_link_that_leads_in_circles_ends() -> None:
    faults = {"tags": ["1", "2", "1"], "link": '</v2/fx/tags/list?n=1000>; rel="next"'}
    with FaultyRegistry(FIXTURES, faults) as registry, asking(registry.host, "fx") as client:
        assert list_tags(client) == ["1", "2"]
        assert len(paths(registry)) <= 25


@pytest.mark.parametrize("tags", [7, ["1", 7], ["1", "\0"], {"1": "2"}])
def test_what_is_no_list_of_tags(tags: Any, serve: Serve) -> None:
    registry, puller = serve({"tags": ()})
    registry.faults = {"tags": Sliceless(tags)}
    refusal = puller.refused(f"{registry.host}/{GOOD}:none")
    assert (refusal.reason, "tags" in refusal.details) == (Reason.MANIFEST_MISSING, False)


class Sliceless(list[Any]):
    """Every page of it is the same."""

    def __init__(self, page: Any) -> None:
        super().__init__()
        self._page = page

    def __getitem__(self, at: Any) -> Any:
        return self._page


def test_who_asks_for_a_tag_that_is_not_there_hears_which_are(serve: Serve) -> None:
    registry, puller = serve({"tags": ["latest", "1.24", "1.25", "nightly", "no tag", "\x1b[31m"]})
    refusal = puller.refused(f"{registry.host}/{GOOD}:1.26")
    assert refusal.reason is Reason.MANIFEST_MISSING
    assert (refusal.details["tag"], refusal.details["tags"]) == ("1.26", ["1.25", "1.24"])
    assert refusal.message.endswith("of its tags: 1.25, 1.24")
    other = puller.refused(f"{registry.host}/{GOOD}:zzz")
    assert other.details["tags"] == ["latest", "1.24", "1.25", "nightly"]


def test_nobody_is_asked_for_tags_where_a_digest_is_missing(serve: Serve) -> None:
    registry, puller = serve({"tags": MANY})
    assert "tags" not in puller.refused(f"{registry.host}/{GOOD}:1@sha256:{'0' * 64}").details
    registry.faults = {"missing-name": True, "tags": MANY}
    assert puller.refused(f"{registry.host}/{GOOD}:1").reason is Reason.REPOSITORY_MISSING
    assert paths(registry) == []
