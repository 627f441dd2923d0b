r"""Tars entry by entry, honest or hostile.

    tar([folder("etc"), file("etc/x", b"1"), whiteout("etc/y"), file("../z", raw={"size": b"\377" * 12})])

Written here and not by tarfile, which refuses to write what we need to refuse to read.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

BLOCK = 512
END_OF_ARCHIVE = bytes(2 * BLOCK)

# Offset and length of each field of a ustar header.
_FIELDS = {
    "name": (0, 100),
    "mode": (100, 8),
    "uid": (108, 8),
    "gid": (116, 8),
    "size": (124, 12),
    "mtime": (136, 12),
    "chksum": (148, 8),
    "typeflag": (156, 1),
    "linkname": (157, 100),
    "magic": (257, 6),
    "version": (263, 2),
    "uname": (265, 32),
    "gname": (297, 32),
    "devmajor": (329, 8),
    "devminor": (337, 8),
    "prefix": (345, 155),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a tar, as it will stand there: names are not normalised.

    `pax` are further pax records; names, links and numbers that do not fit the header become records by
    themselves. `raw` replaces fields of the header byte for byte (keys as in ustar: name, mode, size, chksum,
    ...); the checksum is right unless it is one of them.
    """

    name: bytes
    kind: bytes = b"0"
    data: bytes = b""
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    mtime: int = 1686355200
    link: bytes = b""
    device: tuple[int, int] = (0, 0)
    xattrs: Mapping[str, bytes] = dataclasses.field(default_factory=dict)
    pax: Mapping[str, bytes] = dataclasses.field(default_factory=dict)
    raw: Mapping[str, bytes] = dataclasses.field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return the entry's blocks: pax header where one is needed, header, data, padding."""
        records = {**self._overflow(), **self.pax}
        records |= {f"SCHILY.xattr.{name}": value for name, value in self.xattrs.items()}
        before = b""
        if records:
            body = b"".join(pax_record(key.encode(), value) for key, value in records.items())
            before = Entry(b"./PaxHeaders/x", kind=b"x", data=body).to_bytes()
        return before + self._header() + self.data + bytes(-len(self.data) % BLOCK)

    def _overflow(self) -> dict[str, bytes]:
        """Return pax records for what the header has no room for."""
        texts = {"path": self.name, "linkpath": self.link}
        numbers = {"uid": (self.uid, 0o7777777), "gid": (self.gid, 0o7777777), "mtime": (self.mtime, 0o77777777777)}
        long = {key: text for key, text in texts.items() if len(text) > _FIELDS["name"][1]}
        large = {key: b"%d" % n for key, (n, most) in numbers.items() if not 0 <= n <= most}
        return long | large

    def _header(self) -> bytes:
        values = {
            "name": self.name[:100],
            "mode": b"%07o\0" % self.mode,
            "uid": b"%07o\0" % (self.uid if 0 <= self.uid <= 0o7777777 else 0),
            "gid": b"%07o\0" % (self.gid if 0 <= self.gid <= 0o7777777 else 0),
            "size": b"%011o\0" % len(self.data),
            "mtime": b"%011o\0" % (self.mtime if 0 <= self.mtime <= 0o77777777777 else 0),
            "chksum": b" " * 8,
            "typeflag": self.kind,
            "linkname": self.link[:100],
            "magic": b"ustar\0",
            "version": b"00",
            "devmajor": b"%07o\0" % self.device[0],
            "devminor": b"%07o\0" % self.device[1],
            **self.raw,
        }
        header = bytearray(BLOCK)
        for field, value in values.items():
            offset, length = _FIELDS[field]
            header[offset : offset + length] = value[:length].ljust(length, b"\0")
        if "chksum" not in self.raw:
            header[148:156] = b"%06o\0 " % sum(header)
        return bytes(header)


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def file(name: str | bytes, data: str | bytes = b"", mode: int = 0o644, **more: Any) -> Entry:
    """Return a regular file. `more` are fields of `Entry`, here and below."""
    return Entry(_bytes(name), data=_bytes(data), mode=mode, **more)


def folder(name: str | bytes, mode: int = 0o755, **more: Any) -> Entry:
    """Return a folder."""
    return Entry(_bytes(name).rstrip(b"/") + b"/", kind=b"5", mode=mode, **more)


def symlink(name: str | bytes, target: str | bytes, **more: Any) -> Entry:
    """Return a symbolic link."""
    return Entry(_bytes(name), kind=b"2", link=_bytes(target), mode=0o777, **more)


def hardlink(name: str | bytes, target: str | bytes, **more: Any) -> Entry:
    """Return a hard link to an entry named `target`."""
    return Entry(_bytes(name), kind=b"1", link=_bytes(target), **more)


def device(name: str | bytes, major: int, minor: int, kind: bytes = b"3", **more: Any) -> Entry:
    """Return a character (`3`) or block (`4`) device."""
    return Entry(_bytes(name), kind=kind, device=(major, minor), **more)


def fifo(name: str | bytes, **more: Any) -> Entry:
    """Return a named pipe."""
    return Entry(_bytes(name), kind=b"6", **more)


def whiteout(name: str | bytes) -> Entry:
    """Return what hides `name` of the layers below."""
    parent, slash, last = _bytes(name).rpartition(b"/")
    return Entry(parent + slash + b".wh." + last, mode=0)


def opaque(name: str | bytes) -> Entry:
    """Return what hides everything that the layers below have in folder `name`."""
    return Entry(_bytes(name).rstrip(b"/") + b"/.wh..wh..opq", mode=0)


def tar(entries: Sequence[Entry], end: bytes = END_OF_ARCHIVE) -> bytes:
    """Return the tar of some entries. `end` is what follows the last one: `b""` for an archive cut short."""
    return b"".join(entry.to_bytes() for entry in entries) + end


def pax_record(key: bytes, value: bytes) -> bytes:
    """Return one record of a pax header, for entries of kind `x` or `g` made by hand."""
    body = b" " + key + b"=" + value + b"\n"
    length = len(body)
    while len(b"%d" % length) + len(body) != length:
        length = len(b"%d" % length) + len(body)
    return b"%d" % length + body
