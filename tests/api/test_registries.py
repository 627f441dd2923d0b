"""Registering from registries through the interface, and the secrets that go in and never come out."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbay.domain.reasons import Reason
from tests.api.served import CORE, IMAGES, Served, answered, refused
from tests.support.faulty_registry import PASSWORD, USER, Faults, FaultyRegistry
from tests.support.oci_layout import HOST_PLATFORM, Layout
from tests.support.tar_entries import file

SECRETS = f"{CORE}/sandbox/registry-secrets"
LOGIN = {"username": USER, "password": PASSWORD}


class World:
    """A registry with one repository `fx`, and an installation that may speak to it in the clear."""

    def __init__(self, root: Path) -> None:
        self.layout = Layout(root / "layouts" / "fx")
        self.image = self.layout.image([[file("which", b"fx")]], platform=HOST_PLATFORM, ref="1")
        self.registry = FaultyRegistry(root / "layouts").__enter__()
        plain = [self.registry.host, self.registry.storage]
        self.served = Served(root / "served", plain_registries=plain)
        answered(self.served.admin.post(IMAGES, json={"name": "web"}), 201)

    def register(self, reference: str = "fx:1", **source: Any) -> Any:
        body = {"source": {"registry": f"{self.registry.host}/{reference}", **source}}
        return self.served.admin.post(f"{IMAGES}/web/releases", json=body)

    def put(self, registry: str | None = None, body: Any = None) -> Any:
        return self.served.admin.put(f"{SECRETS}/{registry or self.registry.host}", json=body or LOGIN)

    def faulty(self, faults: Faults) -> None:
        self.registry.faults = dict(faults)
        self.registry.seen.clear()
        self.registry.times.clear()

    def close(self) -> None:
        self.served.close()
        self.registry.__exit__(None, None, None)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    it = World(tmp_path_factory.mktemp("registries"))
    try:
        yield it
    finally:
        it.close()


@pytest.fixture(autouse=True)
def _well_behaved(world: World) -> None:
    world.faulty({})
    for item in answered(world.served.admin.get(SECRETS))["items"]:
        world.served.admin.delete(f"{SECRETS}/{item['registry']}")


def test_a_tag_is_registered_as_the_digest_that_it_means_now(world: World) -> None:
    release = answered(world.register(), 201)
    assert release["variants"][0]["digest"] == world.image.manifest_digest
    assert release["variants"][0]["source"] == f"{world.registry.host}/fx@{world.image.manifest_digest}"
    entries = answered(world.served.admin.get(f"{CORE}/audit", params={"subject": release["id"]}))["items"]
    facts = next(entry["details"] for entry in entries if entry["action"] == "release.register")
    assert facts["source"] == f"{world.registry.host}/fx@{world.image.manifest_digest}"
    assert facts["tag"] == "1"
    again = answered(world.register(f"fx@{world.image.manifest_digest}"))
    assert again["id"] == release["id"]


@pytest.mark.parametrize(
    "faults, status, code",
    [
        pytest.param(
            {"busy": 99}, 502, "registry_unreachable", marks=pytest.mark.produces(Reason.REGISTRY_UNREACHABLE)
        ),
        pytest.param(
            {"deny": True}, 502, "unauthorized_or_missing", marks=pytest.mark.produces(Reason.UNAUTHORIZED_OR_MISSING)
        ),
        pytest.param({"forbid": True}, 502, "source_forbidden", marks=pytest.mark.produces(Reason.SOURCE_FORBIDDEN)),
        pytest.param(
            {"missing-name": True}, 502, "repository_missing", marks=pytest.mark.produces(Reason.REPOSITORY_MISSING)
        ),
        pytest.param(
            {"missing-manifest": True}, 502, "manifest_missing", marks=pytest.mark.produces(Reason.MANIFEST_MISSING)
        ),
        pytest.param({"silent": True}, 502, "stalled", marks=pytest.mark.produces(Reason.STALLED)),
    ],
)
def test_what_a_registry_can_come_to(world: World, faults: Faults, status: int, code: str) -> None:
    extra = file("extra", code)
    world.layout.image([[extra]], platform=HOST_PLATFORM, ref=code.replace("_", "-"))
    world.put()
    world.faulty(faults)
    answer = world.register(f"fx:{code.replace('_', '-')}")
    refused(answer, status, code)
    assert PASSWORD not in answer.text
    assert "words of the registry" not in answer.text


@pytest.mark.produces(Reason.RATE_LIMITED)
def test_a_limit_is_passed_on_with_its_time(world: World) -> None:
    world.faulty({"limit": 3600})
    answer = world.register()
    assert refused(answer, 502, "rate_limited")["details"]["retry_after"] == 3601
    assert answer.headers["retry-after"] == "3601"


@pytest.mark.parametrize("reference", ["FX:1", "fx:", "fx@sha256:1", "fx@sha512:" + "0" * 128, "", "fx fx", "../fx"])
def test_what_is_no_reference(world: World, reference: str) -> None:
    refused(world.register(reference), 400, "invalid_reference", "source.registry")
    assert world.registry.seen == []


@pytest.mark.parametrize("source", [{}, {"upload": "upl_1", "registry": "x/y"}, {"registry": "x/y", "tag": "1"}])
def test_one_source_and_no_more(world: World, source: dict[str, str]) -> None:
    answer = world.served.admin.post(f"{IMAGES}/web/releases", json={"source": source})
    refused(answer, 400, "invalid_body", "source")


def test_a_secret_is_used_and_never_told(world: World) -> None:
    world.faulty({"basic": True})
    refused(world.register(), 502, "unauthorized_or_missing")
    answers = [world.put(), world.served.admin.get(SECRETS), world.register()]
    assert set(answered(answers[0])) == {"registry", "updated_at"}
    assert [item["registry"] for item in answered(answers[1])["items"]] == [world.registry.host]
    assert answers[2].status_code in (200, 201)
    answers.append(world.served.admin.get(f"{CORE}/audit"))
    assert {"registry_secret.put"} <= {entry["action"] for entry in answers[-1].json()["items"]}
    username, password = LOGIN.values()
    for answer in answers:
        assert username not in answer.text
        assert password not in answer.text
    for path in world.served.world.root.glob("db*"):
        assert username.encode() not in path.read_bytes()
        assert password.encode() not in path.read_bytes()
    assert world.served.admin.delete(f"{SECRETS}/{world.registry.host}").status_code == 204
    refused(world.register(), 502, "unauthorized_or_missing")


def test_another_registrys_secret_is_not_used(world: World) -> None:
    world.faulty({"basic": True})
    world.put(world.registry.storage)
    refused(world.register(), 502, "unauthorized_or_missing")
    assert {request["authorization"] for request in world.registry.seen} == {None}


@pytest.mark.produces(Reason.HOST_UNFIT)
def test_a_secret_that_was_sealed_with_another_key_is_named(world: World) -> None:
    world.put()
    database = sqlite3.connect(world.served.world.root / "db")
    with database:
        database.execute("UPDATE registry_secrets SET sealed = '1.' || substr(sealed, 8)")
    database.close()
    refused(world.register(), 503, "host_unfit")
    assert world.registry.seen == []


def test_secrets_by_name(world: World) -> None:
    for name in ("B.example", "index.docker.io", "a.example:5000"):
        answered(world.put(name))
    listed = answered(world.served.admin.get(SECRETS))["items"]
    assert [item["registry"] for item in listed] == ["a.example:5000", "b.example", "docker.io"]
    first = answered(world.served.admin.get(SECRETS, params={"limit": 1}))
    assert (len(first["items"]), first["next"]) == (1, "a.example:5000")
    for item in listed:
        assert world.served.admin.delete(f"{SECRETS}/{item['registry']}").status_code == 204
        refused(world.served.admin.delete(f"{SECRETS}/{item['registry']}"), 404, "not_found")
    for name in ("a b", "a..b", "-", "a:b", "x" * 300):
        refused(world.put(name), 400, "invalid_reference", "registry")
    for body in ({"username": "a:b", "password": "x"}, {"username": "a", "password": ""}, {"username": "a"}):
        error = refused(world.put(body=body), 400, "invalid_body", next(iter({"username", "password"} - _fine(body))))
        assert "a:b" not in str(error)
    refused(world.served.project.get(SECRETS), 403, "forbidden")
    refused(world.served.nobody.get(SECRETS), 401, "invalid_api_key")


def _fine(body: dict[str, str]) -> set[str]:
    return {name for name, value in body.items() if value and ":" not in value}
