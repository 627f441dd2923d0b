"""An installation whose image bytes lie in a registry: the node has them from there, and from nowhere else."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbay.domain.reasons import Reason
from tests.e2e.installation import Installation
from tests.support import reasons
from tests.support.real_registry import PASSWORD, USER, RealRegistry, needs_registry

pytestmark = [pytest.mark.real, pytest.mark.slow, needs_registry]


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[RealRegistry]:
    with RealRegistry(tmp_path / "registry", auth=True) as it:
        yield it


@pytest.fixture
def house(registry: RealRegistry) -> Iterator[Installation]:
    it = Installation()
    it.env["SANDBAY_PLAIN_REGISTRIES"] = registry.host
    try:
        it.up("--blobs", f"oci://{registry.host}/house")
        yield it
    finally:
        it.close()


@pytest.mark.produces(Reason.UNAUTHORIZED_OR_MISSING, Reason.REGISTRY_UNREACHABLE)
def test_images_are_kept_fetched_and_run_from_a_registry(house: Installation, registry: RealRegistry) -> None:
    layout = house.image("web")
    refused = house.register("web", layout)
    reasons.note(refused.err)
    assert (refused.code, refused.refusal["code"]) == (125, "unauthorized_or_missing")

    house.ok("registries", "login", registry.host, "-u", USER, "--password-stdin", stdin=PASSWORD.encode())
    release = house.register("web", layout).data
    digests = [layer["digest"] for layer in release["variants"][0]["layers"]]
    label = house.label
    for digest in (*digests, release["variants"][0]["digest"]):
        keeper = registry.get(f"house/blobs/manifests/{label}.{digest[7:]}").raise_for_status().json()
        assert keeper["annotations"] == {"io.sandbay.installation": label}
    assert not (house.home / "blobs").exists()
    assert list((house.home / "pushing").iterdir()) == []

    # What the node lost it has from there again, after a crash too; here the environment says where and who.
    house.ok("images", "evict", "web")
    house.kill()
    house.env |= {"SANDBAY_BLOBS": f"oci://{registry.host}/house"}
    house.env |= {"SANDBAY_BLOBS_USERNAME": USER, "SANDBAY_BLOBS_PASSWORD": PASSWORD}
    house.ok("up", "--port", str(house.port), "--detach")
    house.ok("registries", "logout", registry.host)
    assert house.ok("run", "web", "--", "cat", "/which").out == "web\n"

    # Away: nothing half-done stands in the catalog, and what is on the node runs on.
    registry.__exit__(None, None, None)
    refused = house.register("late", house.image("late"))
    reasons.note(refused.err)
    assert (refused.code, refused.refusal["code"]) == (125, "registry_unreachable")
    assert house.get("/core/v1/sandbox/images/late/releases")["items"] == []
    assert house.ok("run", "web", "--", "cat", "/which").out == "web\n"
    said = b"".join(
        path.read_bytes() for path in house.home.rglob("*") if path.is_file() and path.name != "secrets.key"
    )
    assert PASSWORD.encode() not in said
