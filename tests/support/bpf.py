"""What the kernel does with a filter of system calls: classic BPF over `struct seccomp_data`, step by step."""

import struct
from collections.abc import Sequence

ALLOW, KILL = "allow", "kill"
_MASK = 0xFFFFFFFF


def judge(program: bytes, architecture: int, number: int, arguments: Sequence[int] = ()) -> int | str:
    """What a call comes to: an errno, `ALLOW` or `KILL`. Raises for whatever the kernel would not accept."""
    instructions = list(struct.iter_unpack("HBBI", program))
    assert 0 < len(instructions) <= 4096
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("=IIQ6Q", number, architecture, 0, *padded)
    at = accumulator = 0
    while True:
        code, so, other, value = instructions[at]
        at += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, value)
            case 0x54:
                accumulator &= value
            case 0x05:
                at += value
            case 0x15:
                at += so if accumulator == value else other
            case 0x35:
                at += so if accumulator >= value else other
            case 0x06:
                return _means(value)
            case _:
                raise AssertionError(f"no instruction: {code:#x}")


def _means(action: int) -> int | str:
    if action >> 16 == 0x5:
        return action & 0xFFFF
    return {0x7FFF0000: ALLOW, 0x80000000: KILL}[action]
