"""Releases that are stated: by artifacts, by the flat form of a runtime, alone or beside bytes."""

import dataclasses
from collections.abc import Iterator
from typing import Any, cast

import pytest

from sandbay.domain.declaration import ArtifactRule, Declaration, Mode
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Known
from tests.api.served import IMAGES, SESSIONS, Json, Served, answered, refused
from tests.fakes.memory_provider import DECLARATION

REMOTE = dataclasses.replace(
    DECLARATION,
    kind="remote",
    mode=Mode.DIRECT,
    artifacts={"template": ArtifactRule("[a-z]+:[0-9]+", Known.STATED)},
    layer_formats=frozenset(),
    max_layers=0,
)
D = "sha256:" + "1" * 64
COMMIT = "c" * 40


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One whose only pool cannot run what the installed provider `remote` could, and a healthy default image."""
    it = Served(tmp_path_factory.mktemp("artifacts"))
    try:
        cast("dict[str, Declaration]", it.core.declarations)["remote"] = REMOTE
        it.image("plain")
        answered(it.admin.post(IMAGES, json={"name": "web"}), 201)
        yield it
    finally:
        it.close()


def register(house: Served, **body: Any) -> Any:
    return house.admin.post(f"{IMAGES}/web/releases", json=body)


def count(house: Served) -> int:
    return len(answered(house.admin.get(f"{IMAGES}/web/releases"))["items"])


def known(release: Json) -> dict[str, str]:
    return {name: artifact["known"] for name, artifact in release["variants"][0]["artifacts"].items()}


@pytest.mark.produces(Reason.IMAGE_UNSUPPORTED)
def test_a_release_without_bytes_waits_for_a_pool_that_can_run_it(house: Served) -> None:
    release = answered(register(house, artifacts={"template": "web:1"}), 201)
    variant = release["variants"][0]
    assert (variant["providers"], variant["digest"], variant["size"]) == (["remote"], None, 0)
    assert known(release) == {"template": "stated"}
    for reference in (f"web:{release['number']}", "web"):
        refused(
            house.project.post(SESSIONS, json={"runtime_image_id": reference}),
            400,
            "image_unsupported",
            "runtime_image_id",
        )
    assert house.release("web", release["number"])["state"] == "pending"
    again = answered(register(house, artifacts={"template": "web:1"}, providers=["remote"]))
    assert again["id"] == release["id"]
    assert answered(register(house, artifacts={"template": "web:2"}), 201)["number"] == release["number"] + 1


def test_stated_beside_bytes_is_compared_and_kept(house: Served) -> None:
    first = house.image("pair", "pair")["variants"][0]
    runtime = {
        "source_commit": COMMIT,
        "image_id": first["image_id"],
        "image_manifest_digest": first["digest"],
        "microsandbox_ref": f"web@{D}",
        "runtime_sha256": "2" * 64,
        "firmware_sha256": "3" * 64,
    }
    upload = {"upload": house.upload("pair")}
    body = {"source": upload, "runtime": runtime, "artifacts": {"template": "web:7"}}
    release = answered(house.admin.post(f"{IMAGES}/pair/releases", json=body), 201)
    assert release["source_commit"] == COMMIT
    assert release["variants"][0]["providers"] == ["memory", "remote"]
    assert known(release) == {
        "image_id": "computed",
        "image_manifest_digest": "computed",
        **dict.fromkeys(("microsandbox_ref", "runtime_sha256", "firmware_sha256", "template"), "stated"),
    }
    assert release["variants"][0]["digest"] == first["digest"]


@pytest.mark.produces(Reason.NOT_ONE_DISTRIBUTION)
@pytest.mark.parametrize(
    "body, param",
    [
        ({"runtime": {"image_id": D}}, "artifacts.image_id"),
        ({"artifacts": {"image_manifest_digest": D}}, "artifacts.image_manifest_digest"),
        ({"artifacts": {"template": "web:1"}, "runtime": {"image_id": D}}, "artifacts.image_id"),
        ({"source_commit": "a", "runtime": {"source_commit": "b"}}, "source_commit"),
    ],
)
def test_what_disagrees_is_not_one_distribution(house: Served, body: Json, param: str) -> None:
    before = count(house)
    refused(register(house, source={"upload": house.upload("web")}, **body), 400, "not_one_distribution", param)
    assert count(house) == before


@pytest.mark.produces(Reason.RELEASE_INCOMPLETE)
@pytest.mark.parametrize(
    "body, param",
    [
        ({"artifacts": {"image_id": D}}, "artifacts.image_manifest_digest"),
        ({"artifacts": {"image_id": D, "image_manifest_digest": D}}, "artifacts.image_manifest_digest"),
        ({"runtime": {"image_id": D, "image_manifest_digest": D}}, "artifacts.image_manifest_digest"),
        ({"artifacts": {"template": "web"}}, "artifacts.template"),
        ({"artifacts": {"templates": "web:1"}}, "artifacts.templates"),
        ({"artifacts": {"template": "web:1"}, "providers": ["memory"]}, "artifacts.image_manifest_digest"),
        ({"artifacts": {"template": "web:1"}, "providers": ["remote", "memory"]}, "artifacts.image_manifest_digest"),
        ({"runtime": {}}, "artifacts.image_manifest_digest"),
    ],
)
def test_what_is_complete_for_no_kind_is_refused(house: Served, body: Json, param: str) -> None:
    before = count(house)
    refused(register(house, **body), 400, "release_incomplete", param)
    assert count(house) == before


@pytest.mark.parametrize(
    "body, code, param",
    [
        ({}, "invalid_body", "body"),
        ({"artifacts": {}}, "invalid_body", "body"),
        ({"artifacts": {"template": 7}}, "invalid_body", "artifacts.template"),
        ({"artifacts": {"template": None}}, "invalid_body", "artifacts.template"),
        ({"runtime": {"template": "web:1"}}, "invalid_body", "runtime.template"),
        (
            {"artifacts": {"template": "web:1"}, "platforms": ["linux/amd64", "linux/arm64"]},
            "invalid_body",
            "platforms",
        ),
        ({"artifacts": {"template": "web:1"}, "providers": ["nobody"]}, "provider_unknown", "providers"),
    ],
)
def test_what_is_no_registration(house: Served, body: Json, code: str, param: str | None) -> None:
    refused(register(house, **body), 400, code, param)


def test_a_release_of_another_platform(house: Served) -> None:
    release = answered(register(house, artifacts={"template": "web:9"}, platforms=["linux/arm64"]), 201)
    assert release["variants"][0]["platform"] == "linux/arm64"
