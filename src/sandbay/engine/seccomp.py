"""From rules to a filter of system calls as the kernel takes it: classic BPF, assembled once and handed to many.

A call is found by halving: the numbers of an architecture fall into stretches that are answered alike, and each test
leaves half of them. Calls of an architecture that is not named kill, since nobody makes them by accident.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sandbay.engine.syscalls import NEWEST, numbers

EPERM, ENOSYS = 1, 38

_AUDIT: Mapping[str, int] = {"x86_64": 0xC000003E, "i386": 0x40000003, "aarch64": 0xC00000B7, "arm": 0x40000028}
"""How the kernel names an architecture to a filter."""

_KILL, _REFUSE, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_LOAD, _MASK, _RETURN, _SKIP = 0x20, 0x54, 0x06, 0x05
_IS, _AT_LEAST = 0x15, 0x35
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT, _ARGUMENT_BYTES = 0, 4, 16, 8
_FARTHEST = 255
"""Instructions that a test can jump over."""

Instruction = tuple[int, int, int, int]
"""Code, jump if so, jump if not, value."""
Code = tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class When:
    """One argument has `value` in those bits that `mask` has.

    Of its lower 32 bits, which is all that the kernel reads of an argument that is an int: a caller can set those above
    to anything.
    """

    argument: int
    mask: int
    value: int


@dataclass(frozen=True, slots=True)
class Rule:
    """Calls that are allowed, if there are conditions then under any of them, or refused with `error`."""

    names: tuple[str, ...]
    when: tuple[When, ...] = ()
    error: int = 0


def assemble(architectures: Sequence[str], rules: Sequence[Rule], *, unknown: int = EPERM) -> bytes:
    """The filter, an array of `struct sock_filter`.

    What no rule names is refused with EPERM, and with `unknown` what is newer than all calls that we know. A name
    belongs to one rule; calls that an architecture lacks are left out.

    Raises `ValueError` for an architecture whose numbers are not known.
    """
    code: Code = (_return(_KILL),)
    for architecture in reversed(architectures):
        decided = (_step(_LOAD, _NUMBER_AT), *_decide(_stretches(architecture, rules, unknown)))
        code = _test(_IS, _AUDIT[architecture], decided, code)
    code = (_step(_LOAD, _ARCHITECTURE_AT), *code)
    return b"".join(struct.pack("HBBI", *each) for each in code)


def _stretches(architecture: str, rules: Sequence[Rule], unknown: int) -> list[tuple[int, Code]]:
    """First number and answer of each stretch, from 0 up; the last has no end."""
    known = numbers(architecture)
    answers = {known[name]: _answer(rule) for rule in rules for name in rule.names if name in known}
    others = {number: _refuse(EPERM if number <= NEWEST else unknown) for number in (0, NEWEST + 1)}
    after = {number + 1: _refuse(EPERM if number < NEWEST else unknown) for number in answers}
    firsts = sorted((others | after | answers).items())
    return [firsts[0], *(it for before, it in pairwise(firsts) if it[1] != before[1])]


def _answer(rule: Rule) -> Code:
    if rule.error:
        return _refuse(rule.error)
    code = _refuse(EPERM) if rule.when else (_return(_ALLOW),)
    for when in reversed(rule.when):
        load = _step(_LOAD, _ARGUMENTS_AT + when.argument * _ARGUMENT_BYTES)
        code = (load, _step(_MASK, when.mask), *_test(_IS, when.value, (_return(_ALLOW),), code))
    return code


def _decide(stretches: Sequence[tuple[int, Code]]) -> Code:
    if len(stretches) == 1:
        return stretches[0][1]
    middle = len(stretches) // 2
    first, _ = stretches[middle]
    return _test(_AT_LEAST, first, _decide(stretches[middle:]), _decide(stretches[:middle]))


def _test(code: int, value: int, so: Code, other: Code) -> Code:
    """Both parts return, so nothing has to lead around the second one."""
    if len(other) <= _FARTHEST:
        return ((code, len(other), 0, value), *other, *so)
    return ((code, 0, 1, value), _step(_SKIP, len(other)), *other, *so)


def _refuse(error: int) -> Code:
    return (_return(_REFUSE | error),)


def _return(value: int) -> Instruction:
    return _step(_RETURN, value)


def _step(code: int, value: int) -> Instruction:
    return code, 0, 0, value
