"""Every awkward image through the product's own front: register, prepare, probe, run, beside a healthy default.

The table is `tests/fixtures/images`: a folder that is put there is a test, and what its `expected.json` says that
nobody compares is a failure. Whatever the verdict, the host's canary is as it was after each.
"""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sandbay.domain.reasons import Reason
from sandbay.sdk import AdminClient, Client, SandbayError, Sandbox
from sandbay.sdk.commands import Options
from sandbay.sdk.errors import of_reason
from tests.e2e.installation import Installation
from tests.support import reasons
from tests.support.canary import canary
from tests.support.oci_layout import HOST_PLATFORM
from tests.support.right_answer import FIXTURES, expected_of

AMD64 = "linux/amd64"
pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(HOST_PLATFORM != AMD64, reason=f"these images are of {AMD64}, this machine is {HOST_PLATFORM}"),
]

Json = Mapping[str, Any]
KNOWN = {
    "fixture": {"id", "title", "verdict", "reason", "rootfs", "run", "why", "form", "canary"}
    | {"select", "platforms", "no_xattr", "xattr", "layout_version"},
    "rootfs": {"path", "type", "content", "absent", "mode", "uid", "gid", "link", "size", "same_inode_as", "tail_hex"},
    "run": {"argv", "cmd", "entrypoint", "shell", "exit", "error", "stdout_has", "stdout_not", "groups_has"}
    | {"stdout_size", "stdout_tail", "repeat", "zombies_after", "stop", "within_s"},
}
PRODUCES = {
    "a01-dotdot": pytest.mark.produces(Reason.UNSAFE_LAYER_PATH),
    "a06-hardlink-dotdot": pytest.mark.produces(Reason.UNSAFE_LINK),
    "b06-whiteout-dotdot": pytest.mark.produces(Reason.UNSAFE_WHITEOUT),
    "b10-char-0-0": pytest.mark.produces(Reason.UNSAFE_DEVICE),
    "d08-diff-id-wrong": pytest.mark.produces(Reason.DIFF_ID_MISMATCH),
    "d11-tar-garbage-inside": pytest.mark.produces(Reason.MALFORMED_LAYER),
}
STARTS = {"user_not_found", "invalid_workdir"}
"""What keeps a Session of the image from starting at all; the start is refused with it."""
NAMES = sorted(path.name for path in FIXTURES.iterdir())


class Front:
    """The installation as an administrator and a project's key reach it."""

    def __init__(self, house: Installation) -> None:
        known = json.loads((house.home / "context.json").read_text())
        self.admin = AdminClient(known["url"], known["admin_key"])
        self.project = Client(known["url"], known["api_key"])

    def close(self) -> None:
        self.admin.close()
        self.project.close()

    def bring(self, fixture: str, name: str, tag: str | None = None) -> SandbayError | None:
        """Register, and wait until a node has proved it; the refusal if there is one."""
        images, folder = self.admin.images, FIXTURES / fixture
        register = images.register_layout if (folder / "layout").is_dir() else images.register_archive
        source = folder / ("layout" if (folder / "layout").is_dir() else "archive.tar")
        try:
            release = register(name, source, tag=tag, platforms=[AMD64])
            deadline = time.monotonic() + 60
            while release.state == "pending":
                assert time.monotonic() < deadline, self.admin.images.readiness(name)
                time.sleep(0.02)
                release = self.admin.images.release(f"{name}:{release.number}")
            if release.state == "rejected":
                raise of_reason(release.raw["fault"])
        except SandbayError as error:
            reasons.note(json.dumps(error.envelope()))
            return error
        return None

    @contextlib.contextmanager
    def sandbox(self, image: str) -> Iterator[Sandbox]:
        with Sandbox.create(image, wait=30, client=self.project) as sandbox:
            assert sandbox.image.name == image.partition(":")[0]
            yield sandbox

    def pid(self, sandbox: Sandbox) -> int:
        """The first process of a sandbox, as the host sees it."""
        pid = self.admin.session(sandbox.id).host_pid
        assert pid is not None
        return pid


@pytest.fixture(scope="module")
def front(house: Installation) -> Iterator[Front]:
    it = Front(house)
    yield it
    it.close()


@pytest.mark.parametrize("fixture", [pytest.param(name, marks=PRODUCES.get(name, ())) for name in NAMES])
def test_it_gets_its_right_answer(front: Front, fixture: str) -> None:
    expected = expected_of(FIXTURES / fixture)
    name = fixture.partition("-")[0]
    selectable: Mapping[str, str] = expected.get("select", {})
    with canary():
        error = front.bring(fixture, name, *_pinned(selectable))
        if error is not None:
            assert expected["verdict"] in {"reject", "either"}, error
            assert error.code == expected["reason"], error
            _plainly_told(error)
            _never_another_image(front, name)
            if selectable:
                assert sorted(error.details["choices"]) == sorted(selectable)
            if "platforms" in expected:
                assert error.details["offered"] == expected["platforms"]
        else:
            assert expected["verdict"] in {"accept", "either"}
            _compare(front, name, fixture, expected)
        for tag, said in selectable.items():
            if said.startswith("which="):
                assert front.bring(fixture, f"{name}-{said[6:]}", tag) is None
                with front.sandbox(f"{name}-{said[6:]}") as sandbox:
                    assert sandbox.commands.run(["/bin/probe", "cat", "/which"]).stdout == said[6:] + "\n"


def _pinned(selectable: Mapping[str, str]) -> list[str]:
    """The tag that an accepted image is meant by, where there are several."""
    return [tag for tag, said in selectable.items() if said == "pinned"]


def _plainly_told(error: SandbayError) -> None:
    told = json.dumps(error.envelope())
    assert "Traceback" not in told
    assert "/var/tmp" not in told
    assert error.message


def _never_another_image(front: Front, name: str) -> None:
    """What was refused cannot be chosen, and nobody gets the healthy default in its place."""
    with pytest.raises(SandbayError) as refused:
        front.project.sessions.request(name, wait=0).wait()
    assert refused.value.code in {"release_rejected", "channel_unknown", "release_unknown"}, refused.value
    assert [line for line in front.admin.images.readiness(name) if line.state == "ready"] == []


def _compare(front: Front, name: str, fixture: str, expected: Json) -> None:
    release = front.admin.images.release(f"{name}:1")
    assert [variant.platform for variant in release.variants] == expected.get("platforms", [AMD64])
    wrong_to_start = {run["error"] for run in expected["run"] if run.get("error") in STARTS}
    if wrong_to_start:
        with pytest.raises(SandbayError) as refused:
            Sandbox.create(name, wait=30, client=front.project)
        assert {refused.value.code} == wrong_to_start
        return
    with front.sandbox(name) as sandbox:
        # An image without the program does not get one of the host's.
        assert sandbox.commands.run(["/usr/bin/env"]).exit_code == 127
        command = [sys.executable, "-m", "tests.support.seen_inside", str(front.pid(sandbox)), fixture]
        seen = subprocess.run(command, capture_output=True, text=True, check=True, cwd=FIXTURES.parents[2])
        assert json.loads(seen.stdout) == []
        for run in expected["run"]:
            _run(front, sandbox, run)


def _run(front: Front, sandbox: Sandbox, run: Json) -> None:
    if run.get("stop"):
        ended = front.project.sessions.delete(sandbox.id, wait=30)
        assert ended.status == "ended"
        return
    command = run.get("shell") or run.get("cmd") or run.get("argv")
    image_command = "argv" not in run and "shell" not in run
    options = Options(entrypoint=run.get("entrypoint"), image_command=image_command, timeout=30)
    if "error" in run:
        with pytest.raises(SandbayError) as refused:
            sandbox.commands.collect(command, options)
        assert refused.value.code == run["error"]
        return
    results = [sandbox.commands.collect(command, options) for _ in range(run.get("repeat", 1))]
    assert [it for it in results if it.exit_code != run.get("exit", it.exit_code)] == []
    result = results[-1]
    lines = result.stdout.splitlines()
    assert [line for line in run.get("stdout_has", []) if line not in lines] == []
    assert run.get("stdout_not", "\0") not in result.stdout
    groups = next((line.split("=")[1].split() for line in lines if line.startswith("groups=")), [])
    assert {str(group) for group in run.get("groups_has", [])} <= set(groups), lines
    assert (result.truncated, result.stdout_total) == (False, run.get("stdout_size", result.stdout_total))
    assert result.stdout.endswith(run.get("stdout_tail", ""))
    if "zombies_after" in run:
        deadline = time.monotonic() + 10
        while (zombies := _zombies(front.pid(sandbox))) != run["zombies_after"]:
            assert time.monotonic() < deadline, f"{zombies} zombies stay"
            time.sleep(0.05)


def _zombies(init: int) -> int:
    """How many of a sandbox's processes have ended and were never waited for."""
    states = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            states.append(path.read_text().rpartition(")")[2].split()[:2])
    return states.count(["Z", str(init)])


def test_nothing_that_is_expected_goes_unread() -> None:
    unread = []
    for name in NAMES:
        expected = expected_of(FIXTURES / name)
        parts = {"fixture": [expected], "rootfs": expected["rootfs"], "run": expected["run"]}
        unread += [(name, kind, set(part) - KNOWN[kind]) for kind, all_ in parts.items() for part in all_]
    assert [each for each in unread if each[2]] == []
    assert len(NAMES) >= 86
