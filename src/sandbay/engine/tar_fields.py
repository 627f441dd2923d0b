"""The spellings inside a tar: numbers, texts, pax records and the maps of sparse files. Pure parsing."""

from collections.abc import Callable
from dataclasses import dataclass

BLOCK = 512
Segments = tuple[tuple[int, int], ...]
"""(offset, length) of each piece of a sparse file."""
NextBlock = Callable[[], bytes]

_NANO = 1_000_000_000
# Beyond every file system, and far within what the kernel's calls take.
_MOST_SECONDS = 1 << 40
_MOST_DIGITS = 30
_SPARSE = b"GNU.sparse."


class TarError(ValueError):
    """It is no well-formed tar; says why."""


class TarLimitError(ValueError):
    """The archive's own headers are larger than a limit allows."""

    def __init__(self, limit: str, value: int, bound: int) -> None:
        """Take the limit's name, what was met, and what would have passed."""
        super().__init__(f"{limit} is {value}, more than {bound}")
        self.limit, self.value, self.bound = limit, value, bound


def number(spelled: bytes, *, signed: bool = False) -> int:
    """Read a header's number: octal text, or binary with the top bit set."""
    if spelled[0] & 0x80:
        value = int.from_bytes(spelled, "big") & ((1 << (8 * len(spelled) - 1)) - 1)
        if not spelled[0] & 0x40:
            return value
        if not signed:
            raise TarError("a number is negative")
        return _in_time(value - (1 << (8 * len(spelled) - 1)))
    digits = spelled.strip(b" \0")
    if not digits:
        return 0
    if not digits.isdigit():
        raise TarError(f"{digits!r} is no octal number")
    try:
        return int(digits, 8)
    except ValueError:
        raise TarError(f"{digits!r} is no octal number") from None


def _in_time(seconds: int) -> int:
    if abs(seconds) > _MOST_SECONDS:
        raise TarError("a time is out of range")
    return seconds


def decimal(spelled: bytes) -> int:
    """Read a pax record's number: digits only, and not so many that reading them costs anything."""
    if not spelled.isdigit() or len(spelled) > _MOST_DIGITS:
        raise TarError(f"{spelled[:40]!r} is no number")
    return int(spelled)


def nanoseconds(spelled: bytes) -> int:
    """Read a pax record's time: seconds, perhaps negative, with a decimal fraction that may be long."""
    whole, _, fraction = spelled.removeprefix(b"-").partition(b".")
    if fraction and not fraction.isdigit():
        raise TarError(f"{spelled[:40]!r} is no time")
    value = _in_time(decimal(whole)) * _NANO + int(fraction[:9].ljust(9, b"0") or 0)
    return -value if spelled.startswith(b"-") else value


def text(spelled: bytes) -> bytes:
    """What stands before the first NUL."""
    return spelled.partition(b"\0")[0]


def pax_records(data: bytes) -> list[tuple[bytes, bytes]]:
    """Read `length key=value` records, in order, since those of sparse maps repeat."""
    records = []
    at = 0
    while at < len(data):
        space = data.find(b" ", at, at + _MOST_DIGITS)
        if space <= at:
            raise TarError("a pax record is malformed")
        end = at + decimal(data[at:space])
        key, equals, value = data[space + 1 : end - 1].partition(b"=")
        if end > len(data) or end <= space + 1 or data[end - 1 : end] != b"\n" or not equals or not key:
            raise TarError("a pax record is malformed")
        records.append((key, value))
        at = end
    return records


def gnu_sparse_map(header: bytes, following: NextBlock, most: int) -> tuple[int, Segments]:
    """Read the map of an old GNU sparse entry, which may go on in `following` blocks; size and segments."""
    segments: list[tuple[int, int]] = []
    table, more = header[386:482], header[482]
    while True:
        pairs = [table[at : at + 24] for at in range(0, len(table) - 23, 24)]
        segments.extend((number(pair[:12]), number(pair[12:])) for pair in pairs if pair.strip(b"\0"))
        _bounded(len(segments), most)
        if not more:
            return number(header[483:495]), tuple(segments)
        block = following()
        table, more = block[:504], block[504]


def _bounded(count: int, most: int) -> None:
    if count > most:
        raise TarLimitError("sparse_segments", count, most)


@dataclass(frozen=True, slots=True)
class PaxSparse:
    """What pax records say of a sparse file."""

    name: bytes
    size: int
    segments: Segments


def pax_sparse_map(records: list[tuple[bytes, bytes]], following: NextBlock, most: int) -> PaxSparse:
    """Read the map of a sparse entry in pax format 0.0 and 0.1 from its records, in 1.0 from its first blocks."""
    said = dict(records)
    version = said.get(_SPARSE + b"major", b"0"), said.get(_SPARSE + b"minor", b"0")
    if version == (b"1", b"0"):
        numbers = _map_in_data(following, most)
    elif (listed := said.get(_SPARSE + b"map")) is not None:
        numbers = [decimal(part) for part in listed.split(b",")] if listed else []
    else:
        pieces = (_SPARSE + b"offset", _SPARSE + b"numbytes")
        told = [(key, value) for key, value in records if key in pieces]
        if any(key != pieces[at % 2] for at, (key, _) in enumerate(told)):
            raise TarError("a sparse map's records are out of order")
        numbers = [decimal(value) for _, value in told]
    size = said.get(_SPARSE + b"realsize", said.get(_SPARSE + b"size"))
    if size is None or len(numbers) % 2:
        raise TarError("a sparse file's records are incomplete")
    _bounded(len(numbers) // 2, most)
    segments = tuple(zip(numbers[::2], numbers[1::2], strict=True))
    return PaxSparse(said.get(_SPARSE + b"name", b""), decimal(size), segments)


def _map_in_data(following: NextBlock, most: int) -> list[int]:
    """Read a count and then as many pairs, each number a line, in whole blocks."""
    numbers: list[int] = []
    rest = b""
    while not numbers or len(numbers) < 1 + 2 * numbers[0]:
        if len(rest) > _MOST_DIGITS:
            raise TarError("a sparse map is malformed")
        *lines, rest = (rest + following()).split(b"\n")
        for line in lines:
            if numbers and len(numbers) == 1 + 2 * numbers[0]:
                break
            numbers.append(decimal(line))
        _bounded(numbers[0] if numbers else 0, most)
    return numbers[1:]
