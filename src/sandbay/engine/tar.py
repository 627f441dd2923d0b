"""A strict, streaming reader of tar: ustar, pax, GNU long names, sparse files in all four spellings.

    reader = TarReader(stream.readinto)
    for entry in reader:
        for piece in reader.body(): ...

It judges form only: what a name may be is for whoever uses it. A damaged header is never taken for the end;
an archive may end without its two zero blocks, but only between entries, and only zeros may follow them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from sandbay.engine.limits import Limits
from sandbay.engine.tar_fields import (
    BLOCK,
    Segments,
    TarError,
    TarLimitError,
    decimal,
    gnu_sparse_map,
    nanoseconds,
    number,
    pax_records,
    pax_sparse_map,
    text,
)

__all__ = ["Entry", "Kind", "TarError", "TarLimitError", "TarReader"]

_BUFFER = 1 << 20
_ZEROS = bytes(BLOCK)
_USTAR, _STAR = b"ustar\0", b"tar\0"
_XATTR = b"SCHILY.xattr."


class Kind(Enum):
    """What an entry is."""

    FILE = "file"
    HARD_LINK = "hard link"
    SYMLINK = "symlink"
    CHARACTER = "character device"
    BLOCK = "block device"
    FOLDER = "folder"
    FIFO = "fifo"


_KINDS = {
    b"0": Kind.FILE,
    b"\0": Kind.FILE,
    b"7": Kind.FILE,
    b"S": Kind.FILE,
    b"1": Kind.HARD_LINK,
    b"2": Kind.SYMLINK,
    b"3": Kind.CHARACTER,
    b"4": Kind.BLOCK,
    b"5": Kind.FOLDER,
    b"6": Kind.FIFO,
}


@dataclass(slots=True)
class Entry:
    """One entry. Names are bytes as they stand there; `size` is the file's size, `stored` that of its data here."""

    name: bytes
    kind: Kind
    mode: int
    uid: int
    gid: int
    mtime_ns: int
    size: int
    stored: int
    data_at: int
    """Offset of the data from the start of the archive, in bytes."""
    link: bytes = b""
    device: tuple[int, int] = (0, 0)
    segments: Segments | None = None
    """Of a sparse file: (offset, length) of each piece of the data, ascending. All between is a hole."""
    xattrs: Mapping[bytes, bytes] = field(default_factory=dict)


@dataclass(slots=True)
class _Ahead:
    """What the header blocks before an entry say about it."""

    records: list[tuple[bytes, bytes]] | None = None
    name: bytes | None = None
    link: bytes | None = None

    @property
    def empty(self) -> bool:
        return self.records is None and self.name is None and self.link is None


class _Input:
    """A stream with as much read ahead as one buffer holds."""

    def __init__(self, readinto: Callable[[memoryview], int], size: int) -> None:
        self._readinto = readinto
        self._view = memoryview(bytearray(size))
        self._start = self._end = 0
        self.position = 0

    def ended(self) -> bool:
        """Whether not a single byte is left."""
        return self._start == self._end and not self._fill()

    def _fill(self) -> int:
        if self._start == self._end:
            self._start = self._end = 0
        elif self._end == len(self._view):
            rest = bytes(self._view[self._start : self._end])
            self._view[: len(rest)] = rest
            self._start, self._end = 0, len(rest)
        count = self._readinto(self._view[self._end :])
        self._end += count
        return count

    def take(self, count: int) -> memoryview:
        """Exactly so many bytes in one piece, valid until the next call."""
        while self._end - self._start < count:
            if not self._fill():
                raise TarError("the archive ends inside an entry")
        return self._step(count)

    def some(self, most: int) -> memoryview:
        """At least one byte, at most so many, valid until the next call."""
        if self.ended():
            raise TarError("the archive ends inside an entry")
        return self._step(min(most, self._end - self._start))

    def _step(self, count: int) -> memoryview:
        piece = self._view[self._start : self._start + count]
        self._start += count
        self.position += count
        return piece

    def skip(self, count: int) -> None:
        while count:
            count -= len(self.some(count))


class TarReader:
    """Iterates over the entries of one archive.

    `readinto` fills a buffer and returns how many bytes it got, 0 at the end. Raises `TarError` for what is no
    well-formed tar and `TarLimitError` for header records that are too large.
    """

    def __init__(self, readinto: Callable[[memoryview], int], limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._input = _Input(readinto, max(_BUFFER, self._limits.header_bytes + BLOCK))
        self._global: dict[bytes, bytes] = {}
        self._left = 0
        self._padding = 0

    def __iter__(self) -> Iterator[Entry]:
        return self

    def __next__(self) -> Entry:
        """The next entry; data of the last one that was not read is skipped."""
        self._input.skip(self._left + self._padding)
        self._left = self._padding = 0
        ahead = _Ahead()
        while (header := self._header()) is not None:
            if not self._extension(header, ahead):
                return self._entry(header, ahead)
        if not ahead.empty:
            raise TarError("the archive ends between an entry's headers")
        raise StopIteration

    def body(self) -> Iterator[memoryview]:
        """The data of the entry, as stored. Each piece is valid until the next is asked for."""
        while self._left:
            piece = self._input.some(self._left)
            self._left -= len(piece)
            yield piece

    def _header(self) -> bytes | None:
        if self._input.ended():
            return None
        header = bytes(self._input.take(BLOCK))
        if header == _ZEROS:
            self._end()
            return None
        # The checksum counts its own eight bytes as spaces; some old writers summed signed bytes.
        said, unsigned = number(header[148:156]), sum(header) - sum(header[148:156]) + 8 * 32
        if said != unsigned and said != unsigned - 256 * sum(b >> 7 for b in header[:148] + header[156:]):
            raise TarError("a header's checksum is wrong")
        return header

    def _end(self) -> None:
        if not self._input.ended() and bytes(self._input.take(BLOCK)) != _ZEROS:
            raise TarError("a single zero block stands between entries")
        while not self._input.ended():
            if any(bytes(self._input.some(_BUFFER)).strip(b"\0")):
                raise TarError("there is data after the end")

    def _extension(self, header: bytes, ahead: _Ahead) -> bool:
        """Read a header that only tells about the next one, if this is such."""
        flag = header[156:157]
        if flag not in b"xgLK":
            return False
        size = number(header[124:136])
        if size > self._limits.header_bytes:
            raise TarLimitError("header_bytes", size, self._limits.header_bytes)
        data = bytes(self._input.take(size + -size % BLOCK)[:size])
        if flag == b"g":
            self._add_global(data)
        elif flag == b"x" and ahead.records is None:
            ahead.records = pax_records(data)
        elif flag == b"L" and ahead.name is None:
            ahead.name = text(data)
        elif flag == b"K" and ahead.link is None:
            ahead.link = text(data)
        else:
            raise TarError("an entry has two headers of one kind")
        return True

    def _add_global(self, data: bytes) -> None:
        self._global.update(pax_records(data))
        size = sum(len(key) + len(value) for key, value in self._global.items())
        if size > self._limits.header_bytes:
            raise TarLimitError("header_bytes", size, self._limits.header_bytes)

    def _entry(self, header: bytes, ahead: _Ahead) -> Entry:
        flag = header[156:157]
        kind = _KINDS.get(flag)
        if kind is None:
            raise TarError(f"entries of type {flag!r} are not supported")
        size = number(header[124:136]) if kind is Kind.FILE else 0
        entry = Entry(
            name=_name(header) if ahead.name is None else ahead.name,
            kind=kind,
            mode=number(header[100:108]) & 0o7777,
            uid=number(header[108:116]),
            gid=number(header[116:124]),
            mtime_ns=number(header[136:148], signed=True) * 1_000_000_000,
            size=size,
            stored=size,
            data_at=0,
            link=text(header[157:257]) if ahead.link is None else ahead.link,
        )
        if kind in (Kind.CHARACTER, Kind.BLOCK):
            entry.device = (number(header[329:337]), number(header[337:345]))
        if ahead.records or self._global:
            self._apply(entry, ahead.records or [])
        if kind is Kind.FILE:
            self._place(entry, header, ahead.records or [])
        return entry

    def _apply(self, entry: Entry, own: list[tuple[bytes, bytes]]) -> None:
        """Let pax records overrule the header; an empty value leaves the header's."""
        records = {**self._global, **dict(own)}
        entry.name = records.get(b"path") or entry.name
        entry.link = records.get(b"linkpath") or entry.link
        if (uid := records.get(b"uid")) is not None:
            entry.uid = decimal(uid)
        if (gid := records.get(b"gid")) is not None:
            entry.gid = decimal(gid)
        if (mtime := records.get(b"mtime")) is not None:
            entry.mtime_ns = nanoseconds(mtime)
        if (size := records.get(b"size")) is not None and entry.kind is Kind.FILE:
            entry.size = entry.stored = decimal(size)
        entry.xattrs = {key[len(_XATTR) :]: value for key, value in records.items() if key.startswith(_XATTR)}

    def _place(self, entry: Entry, header: bytes, records: list[tuple[bytes, bytes]]) -> None:
        """Find where a file's data is, and where it belongs if the file is sparse."""
        self._padding = -entry.stored % BLOCK
        stored = entry.stored
        most = self._limits.sparse_segments
        if header[156:157] == b"S":
            entry.size, entry.segments = gnu_sparse_map(header, lambda: bytes(self._input.take(BLOCK)), most)
        elif any(key.startswith(b"GNU.sparse.") for key, _ in records):
            before = self._input.position
            sparse = pax_sparse_map(records, lambda: bytes(self._input.take(BLOCK)), most)
            entry.size, entry.segments = sparse.size, sparse.segments
            entry.name = sparse.name or entry.name
            stored -= self._input.position - before
        entry.stored = self._left = stored
        entry.data_at = self._input.position
        if stored < 0 or (entry.segments is not None and not _fits(entry.segments, stored, entry.size)):
            raise TarError("a sparse file's map does not fit its data")
        if entry.segments is None and entry.name.endswith(b"/"):
            # Before there was a type for folders, a slash at the end said it.
            entry.kind, entry.size = Kind.FOLDER, 0


def _name(header: bytes) -> bytes:
    name = text(header[:100])
    if header[257:263] != _USTAR or not header[345]:
        return name
    end = 476 if header[508:512] == _STAR else 500
    return text(header[345:end]) + b"/" + name


def _fits(segments: Segments, stored: int, size: int) -> bool:
    """Whether the pieces ascend, end within the file, and are as long together as the stored data."""
    at = 0
    for offset, length in segments:
        if offset < at:
            return False
        at = offset + length
    return at <= size and sum(length for _, length in segments) == stored
