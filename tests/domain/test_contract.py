"""What a tool's output means, and what a report says of an image."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbay.domain.canonical import plain, rebuild
from sandbay.domain.contract import (
    ContractReport,
    Heard,
    ToolReport,
    Violation,
    argv_of_tool,
    judge_tool,
)
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Fault

PRINTED = {
    "v22.3.0": "22.3.0",
    "git version 2.39.5": "2.39.5",
    "Version: ImageMagick 6.9.11-60 Q16 x86_64 2021-01-25": "6.9.11",
    "jq-1.6": "1.6",
    "curl 7.88.1 (x86_64-pc-linux-gnu) libcurl/7.88.1 OpenSSL/3.0.15": "7.88.1",
    "gcc (Debian 12.2.0-14) 12.2.0": "12.2.0",
    "dot - graphviz version 2.43.0 (0)": "2.43.0",
    'openjdk version "17.0.13" 2024-10-15': "17.0.13",
    "w3m version w3m/0.5.3+git20230121": "0.5.3",
    "go version go1.22.1 linux/amd64": "1.22.1",
    "OpenSSL 1.1.1w  11 Sep 2023": "1.1.1",
    "tmux 3.3a": "3.3",
    "OpenSSH_9.2p1 Debian-2+deb12u3": "9.2",
    "3.40.1 2022-12-28 14:03:47 abcdef": "3.40.1",
    "BusyBox v1.35.0 (Debian 1:1.35.0-4+b3) multi-call binary": "1.35.0",
    "Python 3.13.0rc1": "3.13.0rc1",
    "v20.0.0-rc.1": "20.0.0rc1",
    "1.0.0-beta": "1.0.0b0",
    "2.4.dev3": "2.4.dev3",
    "v23.0.0-nightly20240801": "23.0.0",
    "less 590 (GNU regular expressions)": "590",
    "tool v7": "7",
    "a tool\nof 2024\n\ttool 1.2.3\n": "1.2.3",
    "hello": None,
    "x86_64 amd64": None,
    "1" * 40: None,
    "1." * 40: None,
    "": None,
}


@pytest.mark.parametrize("text", PRINTED)
def test_the_version_in_what_a_tool_printed(text: str) -> None:
    report = judge_tool("x --version", "/bin/x", Heard(0, text.encode()))
    assert report.version == PRINTED[text]
    assert report.violation is (None if PRINTED[text] else Violation.NO_VERSION)
    if PRINTED[text]:
        assert report.printed in text.replace("\t", "").split("\n")


def test_standard_error_speaks_where_standard_output_is_silent() -> None:
    assert judge_tool("x", None, Heard(0, b" \n", b"dot 2.43.0")).version == "2.43.0"
    assert judge_tool("x", None, Heard(0, b"x 1.0", b"warning 9.9")).version == "1.0"


ENDS = [
    (Heard(0, b"1.2"), None, 0),
    (Heard(1, b"1.2"), Violation.FAILED, 1),
    (Heard(137, b"1.2"), Violation.FAILED, 137),
    (Heard(127), Violation.NOT_FOUND, 127),
    (Heard(126), Violation.NOT_EXECUTABLE, 126),
    (Heard(137, b"1.2", timed_out=True), Violation.TIMED_OUT, None),
    (Heard(137, b"1.2", cut=True), Violation.TOO_MUCH_OUTPUT, None),
    (Heard(137, b"1.2", timed_out=True, cut=True), Violation.TOO_MUCH_OUTPUT, None),
    (Heard(0, b"hello"), Violation.NO_VERSION, 0),
    (Heard(0), Violation.NO_VERSION, 0),
]


@pytest.mark.parametrize("heard, violation, code", ENDS, ids=str)
def test_how_a_command_ended(heard: Heard, violation: Violation | None, code: int | None) -> None:
    report = judge_tool("x --version", "/bin/x", heard)
    assert (report.command, report.path, report.violation, report.exit) == ("x --version", "/bin/x", violation, code)
    contract = ContractReport(boots=True, tools={"x": report, "git": ToolReport("git", version="2")})
    assert contract.kept is (violation is None)
    assert contract.violations == ({"x": violation} if violation else {})
    assert contract.versions == {"git": "2"} | ({} if violation else {"x": "1.2"})


@given(st.binary(max_size=300), st.integers(0, 3))
def test_whatever_is_printed_the_report_is_small_and_can_be_shown(data: bytes, repeat: int) -> None:
    report = judge_tool("x", None, Heard(0, data * 10**repeat))
    assert len(report.printed) <= 200
    assert report.printed.isprintable()
    assert rebuild(ToolReport, plain(report)) == report


def test_an_escape_sequence_is_not_kept() -> None:
    assert judge_tool("x", None, Heard(0, b"\x1b[31mx\x07 1.2\r\n")).printed == "[31mx 1.2"


def test_what_does_not_boot_keeps_no_contract() -> None:
    report = ContractReport(boots=False, fault=Fault(Reason.USER_NOT_FOUND, "no such user"))
    assert not report.kept
    assert report.versions == {}
    assert rebuild(ContractReport, plain(report)) == report


def test_a_command_is_split_as_a_shell_would_and_read_by_none() -> None:
    assert argv_of_tool("node --version") == ("node", "--version")
    assert argv_of_tool("sh -c 'dot -V 2>&1; echo $HOME'") == ("sh", "-c", "dot -V 2>&1; echo $HOME")
    assert argv_of_tool("x | y") == ("x", "|", "y")
    for bad in ("", "  ", "''", "x 'y"):
        with pytest.raises(ValueError, match=r"."):
            argv_of_tool(bad)
