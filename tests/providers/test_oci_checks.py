"""Contract checks in real sandboxes: tools that work, fail, hang, flood, lie, are missing, in images of all kinds."""

from collections.abc import Iterator

import pytest

from sandbay.adapters.clock.system import SystemClock
from sandbay.domain.contract import CheckLimits, CheckOrder, ContractReport
from sandbay.domain.ids import ReleaseId
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Variant
from sandbay.node.checks import check
from tests.providers.real_oci import Images, Installation
from tests.support.tar_entries import Entry, file, symlink, whiteout

pytestmark = pytest.mark.real
QUICK = CheckLimits(tool_seconds=3, seconds=60, output_bytes=4096)
TOOLS = {
    "works": "works --version",
    "errs": "errs",
    "absolute": "/opt/tool -V",
    "shell": "sh -c 'echo tool 1.2 | cat'",
    "quoted": "busybox echo 'v  7.1'",
    "fails": "sh -c 'echo 9.9; exit 3'",
    "dies": "sh -c 'echo 9.9; kill -9 $$'",
    "hangs": "sh -c 'echo 9.9; sleep 4441'",
    "hides": "sh -c 'echo 9.9; setsid sleep 4442 & sleep 4443'",
    "floods": "yes 9.9",
    "silent": "true",
    "speaks": "echo hello",
    "missing": "nothing --version",
    "unreachable": "/opt/none/tool",
    "locked": "/opt/locked",
    "escapes": "printf '\\033[2Jx 1.2\\n'",
}
SEEN = {
    "works": ("2.5.1", None),
    "errs": ("3.1", None),
    "absolute": ("4.0", None),
    "shell": ("1.2", None),
    "quoted": ("7.1", None),
    "fails": ("9.9", "failed"),
    "dies": ("9.9", "failed"),
    "hangs": ("9.9", "timed_out"),
    "hides": ("9.9", "timed_out"),
    "floods": ("9.9", "too_much_output"),
    "silent": (None, "no_version"),
    "speaks": (None, "no_version"),
    "missing": (None, "not_found"),
    "unreachable": (None, "not_found"),
    "locked": (None, "not_executable"),
    "escapes": ("1.2", None),
}


def script(name: str, text: str, mode: int = 0o755) -> Entry:
    return file(name, f"#!/bin/sh\n{text}\n", mode)


@pytest.fixture(scope="module")
def images(real_sandboxes: None, tmp_path_factory: pytest.TempPathFactory) -> Images:
    return Images(tmp_path_factory.mktemp("images"))


@pytest.fixture
def here(images: Images) -> Iterator[Installation]:
    installation = Installation(images)
    yield installation
    installation.end()


def seen(here: Installation, variant: Variant, tools: dict[str, str], limits: CheckLimits = QUICK) -> ContractReport:
    report = check(here.provider, CheckOrder(ReleaseId("rel_x"), 1, variant, tools), SystemClock(), limits)
    assert set(here.left()) <= {"folders"}, "a check leaves nothing behind"
    return report


def test_every_kind_of_tool_is_seen_for_what_it_is(here: Installation) -> None:
    variant = here.images.variant(
        "tools",
        [
            script("usr/bin/works", "echo works 2.5.1 $1"),
            script("usr/bin/errs", "echo errs 3.1 >&2"),
            script("opt/tool", "echo 4.0"),
            script("opt/locked", "echo 4.0", 0o600),
        ],
        User="agent",
        WorkingDir="/srv/deep",
        Env=["PATH=/usr/bin:/bin"],
    )
    report = seen(here, variant, TOOLS)
    told = {
        name: (it.version, None if it.violation is None else it.violation.value) for name, it in report.tools.items()
    }
    assert told == SEEN
    assert report.boots
    assert not report.kept
    assert (report.user, report.uid, report.gid, report.home) == ("agent", 1000, 1000, "/home/agent")
    assert (report.workdir, report.shell) == ("/srv/deep", True)
    assert {name: report.tools[name].path for name in ("works", "absolute", "missing", "locked", "shell")} == {
        "works": "/usr/bin/works",
        "absolute": "/opt/tool",
        "missing": None,
        "locked": None,
        "shell": "/bin/sh",
    }
    assert {name: report.tools[name].exit for name in ("works", "fails", "dies", "hangs", "floods")} == {
        "works": 0,
        "fails": 3,
        "dies": 137,
        "hangs": None,
        "floods": None,
    }
    assert report.tools["works"].printed == "works 2.5.1 --version"
    assert report.tools["escapes"].printed == "[2Jx 1.2"


def test_no_shell_is_needed_and_that_there_is_none_is_told(here: Installation) -> None:
    report = seen(
        here, here.images.variant("shellless", [whiteout("bin/sh")]), {"box": "busybox echo 1.35.0", "s": "sh -c x"}
    )
    assert (report.boots, report.shell) == (True, False)
    assert report.versions == {"box": "1.35.0"}
    assert report.violations == {"s": "not_found"}


def test_what_is_left_when_the_time_is_over_has_timed_out(here: Installation) -> None:
    tools = {"a": "sleep 4444", "b": "sleep 4445", "c": "echo 1.0"}
    report = seen(here, here.images.plain(), tools, CheckLimits(tool_seconds=2, seconds=3))
    assert report.violations == dict.fromkeys("abc", "timed_out")


@pytest.mark.parametrize(
    "config, reason",
    [({"User": "nobody-here"}, Reason.USER_NOT_FOUND), ({"WorkingDir": "/etc/passwd"}, Reason.INVALID_WORKDIR)],
)
def test_what_does_not_boot_as_its_config_says_is_a_fault_of_the_image(
    here: Installation, config: dict[str, str], reason: Reason
) -> None:
    variant = here.images.variant(f"odd-{reason.value}", [symlink("etc/odd", "passwd")], **config)
    report = seen(here, variant, {"box": "busybox echo 1.35.0"})
    assert not report.boots
    assert report.fault is not None
    assert (report.fault.reason, dict(report.tools), report.kept) == (reason, {}, False)


def test_a_tool_that_takes_the_sandbox_down_violates_only_the_contract(here: Installation) -> None:
    variant = here.images.variant("greedy", [script("bin/greedy", "x=x; while :; do x=$x$x; done")])
    report = seen(here, variant, {"greedy": "greedy", "box": "busybox echo 1.35.0"}, CheckLimits(tool_seconds=10))
    assert "greedy" in report.violations


def test_checks_of_one_image_take_turns_and_an_allocation_goes_on_beside_them(here: Installation) -> None:
    variant = here.images.plain()
    allocation = here.start(variant)
    for _ in range(2):
        order = CheckOrder(ReleaseId("rel_x"), 1, variant, {"box": "busybox echo 1.35.0"})
        assert check(here.provider, order, SystemClock()).kept
    assert here.run(allocation, "cat /etc/which").stdout == b"plain"
