"""From a folder to a running sandbox with real buildah: through the command line, across kills, and leaving nothing."""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.installation import Done, Installation

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("buildah") is None, reason="buildah is not installed"),
    pytest.mark.skipif(os.geteuid() != 0, reason="building needs root"),
]


@pytest.fixture(scope="module")
def house() -> Iterator[Installation]:
    """An installation that may be killed, with a healthy image `plain`. Each test publishes under names of its own."""
    it = Installation()
    try:
        it.up()
        assert it.register("plain", it.image("plain")).code == 0
        yield it
    finally:
        it.close()


def folder(house: Installation, name: str, *lines: str, base: str = "image:plain", which: str | None = None) -> Path:
    """A folder with an image.toml, in place of an older one."""
    place = house.root / f"folder-{name}"
    place.mkdir(exist_ok=True)
    (place / "image.toml").write_text(f'name = "{name}"\nbase = "{base}"\n')
    (place / "Containerfile").write_text("\n".join(["ARG BASE", "FROM ${BASE}", *lines]) + "\n")
    (place / "which").write_text(f"{which or name}\n")
    return place


def publish(house: Installation, place: Path, *options: str) -> Done:
    return house.cli("images", "publish", str(place), "--wait", "--json", *options, timeout=300)


def published(house: Installation, place: Path, *options: str) -> str:
    done = publish(house, place, *options)
    assert done.code == 0, done
    release: str = done.data["release"]
    return release


def building(house: Installation, marker: str) -> bool:
    """Whether a step of a build runs that has this in its command line."""
    return subprocess.run(["pgrep", "-f", marker], capture_output=True, check=False).returncode == 0


def left(house: Installation) -> list[str]:
    """What builds left on the host."""
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f"{house.home}/builds" in line]
    return [*map(str, (house.home / "builds").iterdir()), *mounts]


def layers(house: Installation, reference: str) -> list[str]:
    name, number = reference.split(":")
    release = house.get(f"/core/v1/sandbox/images/{name}/releases/{number}")
    return [layer["digest"] for layer in release["variants"][0]["layers"]]


def test_folders_become_images_that_share_their_base(house: Installation) -> None:
    lines = ("COPY which /which", "RUN echo made >/made && ! test -e /etc/shadow && id -u >/user")
    names = ("web", "review")
    results: dict[str, str] = {}

    def one(name: str) -> None:
        results[name] = published(house, folder(house, name, *lines))

    threads = [threading.Thread(target=one, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {"web": "web:1", "review": "review:1"}
    below = layers(house, "plain:1")
    assert layers(house, "web:1")[: len(below)] == layers(house, "review:1")[: len(below)] == below
    for name in names:
        assert house.ok("run", name, "--", "cat", "/which", "/made", "/user").out == f"{name}\nmade\n0\n"
    # Of the host nothing went in: certificates, proxies and apt's settings were there for RUN alone.
    environment = house.ok("run", "web", "--", "env").out
    assert not any(word in environment for word in ("APT_CONFIG", "SSL_CERT_FILE", "proxy", "/mnt"))
    assert left(house) == []


def test_unchanged_is_answered_and_changed_is_built(house: Installation) -> None:
    place = folder(house, "often", "COPY which /which")
    assert published(house, place) == "often:1"
    plan = house.ok("images", "publish", str(place), "--dry-run", "--json").data
    assert (plan["action"], plan["release"]) == ("reuse", "often:1")
    again = publish(house, place)
    assert (again.data["release"], again.data["built"]) == ("often:1", False)
    folder(house, "often", "COPY which /which", which="changed")
    plan = house.ok("images", "publish", str(place), "--dry-run", "--json").data
    assert (plan["action"], plan["why"]) == ("build", "changed: files")
    assert published(house, place, "--promote", "stable") == "often:2"
    assert house.ok("run", "often", "--", "cat", "/which").out == "changed\n"
    assert house.ok("run", "often:1", "--", "cat", "/which").out == "often\n"


def test_a_plain_dockerfile(house: Installation) -> None:
    place = house.root / "plain-folder"
    place.mkdir()
    (place / "Dockerfile.dev").write_text(
        "FROM image:plain:1 AS low\nRUN echo low >/low\nFROM image:plain\nCOPY --from=low /low /low\n"
    )
    assert published(house, place, "--dockerfile", "Dockerfile.dev", "--name", "dev") == "dev:1"
    assert house.ok("run", "dev", "--", "cat", "/low", "/which").out == "low\nplain\n"


def test_a_step_that_fails_says_which_and_why(house: Installation) -> None:
    done = publish(house, folder(house, "failing", "RUN echo last words; exit 7"))
    assert (done.code, done.refusal["code"]) == (125, "build_failed")
    assert done.refusal["details"]["exit_code"] == 7
    assert "exit 7" in done.refusal["details"]["step"]
    assert "last words" in done.refusal["details"]["output"]
    assert house.cli("run", "failing", "--", "true").code == 125
    assert left(house) == []


def test_a_containerfile_reaches_its_context_and_nothing_else(house: Installation) -> None:
    secret = house.root / "secret"
    secret.write_text("secret\n")
    for line in ("COPY ../secret /x", f"COPY {secret} /x"):
        done = publish(house, folder(house, "closed", line))
        assert (done.code, done.refusal["code"]) == (125, "build_failed"), (line, done)
        assert str(house.home) not in done.err, "where the host keeps things is not the image's business"
    tries = (f"cat {secret}", f"cat /proc/1/root{secret}", f"chroot /proc/1/root cat {secret}", "mknod /d b 254 0")
    published(house, folder(house, "closed", f"RUN {' && '.join(f'! {it}' for it in tries)} && ! chroot / true"))
    place = folder(house, "closed", "COPY link /x")
    (place / "link").symlink_to(secret)
    assert publish(house, place).refusal["code"] == "unsafe_link"
    for line in ("FROM oci:/etc", f"FROM dir:{house.root}", "COPY --from=oci:base0 / /x", "RUN --mount=type=bind x"):
        (place / "link").unlink(missing_ok=True)
        (place / "Dockerfile").write_text(f"FROM image:plain\n{line}\nFROM image:plain\n")
        done = publish(house, place, "--dockerfile", "Dockerfile", "--name", "closed")
        assert done.refusal["code"] in ("invalid_reference", "invalid_body", "unauthorized_or_missing"), (line, done)


def test_cancelled_while_it_builds(house: Installation) -> None:
    place = folder(house, "cancelled", "RUN sleep 31415")
    begun = house.ok("images", "publish", str(place), "--json").data["id"]
    house.eventually(lambda: building(house, "sleep 31415"), within=120)
    house.ok("publishes", "cancel", begun)
    ended = house.cli("publishes", "log", begun, "--json", timeout=120)
    assert (ended.code, ended.refusal["code"]) == (125, "cancelled")
    assert not building(house, "sleep 31415")
    assert left(house) == []


@pytest.mark.slow
def test_kill_9_of_core_while_it_builds(house: Installation) -> None:
    flag = "27182"
    place = folder(house, "killed", f"RUN sleep {flag}", "COPY which /which")
    begun = house.ok("images", "publish", str(place), "--json").data["id"]
    house.eventually(lambda: building(house, f"sleep {flag}"), within=120)
    house.kill()
    house.eventually(lambda: not building(house, f"sleep {flag}"))
    house.up()
    house.eventually(lambda: building(house, f"sleep {flag}"), within=120)
    ids = [it["attempt"] for it in house.get("/core/v1/sandbox/publishes")["items"] if it["id"] == begun]
    assert ids == [2]
    house.ok("publishes", "cancel", begun)
    assert house.cli("publishes", "log", begun, "--json", timeout=120).refusal["code"] == "cancelled"
    assert left(house) == []
    assert published(house, folder(house, "killed", "COPY which /which")) == "killed:1"
