"""From a real registry that wants a password to a running sandbox."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbay.domain.reasons import Reason
from tests.e2e.installation import Installation
from tests.support import reasons
from tests.support.real_registry import PASSWORD, USER, RealRegistry, needs_registry

pytestmark = [pytest.mark.real, needs_registry]


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[RealRegistry]:
    with RealRegistry(tmp_path / "registry", auth=True) as it:
        yield it


@pytest.fixture
def house(registry: RealRegistry) -> Iterator[Installation]:
    """Its own, since it has to know the registry from its start."""
    it = Installation()
    it.env["SANDBAY_PLAIN_REGISTRIES"] = f"reg.example, {registry.host}"
    try:
        it.up()
        yield it
    finally:
        it.close()


@pytest.mark.produces(Reason.UNAUTHORIZED_OR_MISSING)
def test_a_private_image_runs_once_the_installation_may_have_it(
    house: Installation, registry: RealRegistry, tmp_path: Path
) -> None:
    digest = registry.push(house.image("private"), "team/private", "1")
    where = ("images", "register", "private", "--from-registry", f"{registry.host}/team/private:1", "--wait", "--json")
    done = house.cli(*where)
    reasons.note(done.err)
    assert (done.code, done.refusal["code"]) == (125, "unauthorized_or_missing")

    auth = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    (tmp_path / "config.json").write_text(json.dumps({"auths": {registry.host: {"auth": auth}}}))
    login = ("registries", "login", registry.host, "--from-docker")
    assert house.cli(*login, env={"DOCKER_CONFIG": str(tmp_path)}).code == 0
    assert house.ok(*where).data["variants"][0]["digest"] == digest
    assert house.ok("run", "private", "--", "cat", "/which").out == "private\n"

    # What was registered is here: the registry may go.
    registry.__exit__(None, None, None)
    house.ok("images", "evict", "private")
    assert house.ok("run", "private", "--", "cat", "/which").out == "private\n"
    kept = [path for path in house.home.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()]
    assert kept == []
    assert (house.home / "secrets.key").stat().st_mode & 0o777 == 0o600
