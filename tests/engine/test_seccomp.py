"""Filters of system calls: numbers are the kernel's, and an assembled filter answers as its rules say."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbay.engine.seccomp import ENOSYS, EPERM, Rule, When, assemble
from sandbay.engine.syscalls import NEWEST, numbers
from tests.support.bpf import ALLOW, KILL, judge

AUDIT = {"x86_64": 0xC000003E, "i386": 0x40000003, "aarch64": 0xC00000B7, "arm": 0x40000028}
ARCHITECTURES = sorted(AUDIT)
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "i386": Path("/usr/include/x86_64-linux-gnu/asm/unistd_32.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


@pytest.mark.parametrize("architecture", sorted(HEADERS))
def test_numbers_are_those_of_the_kernels_headers(architecture: str) -> None:
    header = HEADERS[architecture]
    if not header.exists():
        pytest.skip(f"this machine lacks {header}")
    lines = re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)$", header.read_text(), re.MULTILINE)
    theirs = {name: int(number) for name, number in lines}
    ours = numbers(architecture)
    shared = {name for name in ours if name in theirs}
    assert len(shared) > 240
    assert {name: ours[name] for name in shared} == {name: theirs[name] for name in shared}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_no_number_is_two_calls(architecture: str) -> None:
    named: dict[int, set[str]] = {}
    for name, number in numbers(architecture).items():
        named.setdefault(number, set()).add(name)
    assert [names for names in named.values() if len(names) > 1] == []
    assert max(number for number in named if number < 0x1000) == NEWEST


NAMES = sorted(numbers("x86_64"))
CONDITIONS = st.builds(When, st.integers(0, 5), st.integers(0, 2**32 - 1), st.just(0)) | st.builds(
    lambda argument, mask, bits: When(argument, mask, mask & bits),
    st.integers(0, 5),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
)
ANSWERS = st.tuples(st.lists(CONDITIONS, max_size=4).map(tuple), st.integers(0, 200))


@given(
    st.dictionaries(st.sampled_from(NAMES), ANSWERS, max_size=40),
    st.lists(st.integers(0, 2**64 - 1), min_size=6, max_size=6),
)
def test_a_filter_answers_as_its_rules_say(
    answers: Mapping[str, tuple[tuple[When, ...], int]], held: list[int]
) -> None:
    rules = [Rule((name,), *answer) for name, answer in answers.items()]
    program = assemble(["x86_64", "i386"], rules, unknown=ENOSYS)
    for architecture in ("x86_64", "i386"):
        for name, number in numbers(architecture).items():
            assert judge(program, AUDIT[architecture], number, held) == _expected(answers.get(name), held)


def _expected(answer: tuple[tuple[When, ...], int] | None, held: list[int]) -> int | str:
    if answer is None:
        return EPERM
    conditions, error = answer
    if error:
        return error
    holds = any(held[when.argument] & when.mask == when.value for when in conditions)
    return ALLOW if holds or not conditions else EPERM


def test_jumps_reach_over_any_distance() -> None:
    """Much longer than what one test can jump over, on both sides."""
    conditions = tuple(When(0, 0xFFFFFFFF, value) for value in range(1, 6))
    rules = [Rule((name,), conditions) for name in NAMES[::6]]
    program = assemble(["x86_64", "aarch64"], rules)
    assert len(program) // 8 > 2000
    ruled = {name for rule in rules for name in rule.names}
    for architecture in ("x86_64", "aarch64"):
        for name, number in numbers(architecture).items():
            for value in (0, 1, 5, 6):
                right = ALLOW if name in ruled and 1 <= value <= 5 else EPERM
                assert judge(program, AUDIT[architecture], number, [value]) == right


@pytest.mark.parametrize("unknown", [EPERM, ENOSYS])
def test_calls_that_no_rule_names(unknown: int) -> None:
    program = assemble(["x86_64", "arm"], [Rule(("read",)), Rule(("cacheflush",))], unknown=unknown)
    for number in range(NEWEST + 1):
        assert judge(program, AUDIT["x86_64"], number) == (ALLOW if number == 0 else EPERM)
    x32 = range(0x40000000, 0x40000400)
    for number in (NEWEST + 1, 1000, *x32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
        assert judge(program, AUDIT["x86_64"], number) == unknown
    flush = numbers("arm")["cacheflush"]
    assert [judge(program, AUDIT["arm"], flush + step) for step in (-1, 0, 1)] == [unknown, ALLOW, unknown]


@pytest.mark.parametrize("architecture", [*(AUDIT[name] for name in ("i386", "aarch64", "arm")), 0, 0xFFFFFFFF])
def test_calls_of_another_architecture_kill(architecture: int) -> None:
    program = assemble(["x86_64"], [Rule(("read",))])
    assert {judge(program, architecture, number) for number in (0, 3, 63, NEWEST + 1)} == {KILL}


def test_an_architecture_without_numbers_is_none() -> None:
    with pytest.raises(ValueError, match="not in"):
        assemble(["pdp11"], [])
