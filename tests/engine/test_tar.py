"""The tar reader takes every spelling that real tools write, and never takes damage for the end."""

import contextlib
import io
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbay.engine.limits import Limits
from sandbay.engine.tar import Entry, Kind, TarError, TarLimitError, TarReader
from tests.support import tar_entries
from tests.support.tar_entries import BLOCK, device, file, folder, hardlink, pax_record, symlink, tar


def read(data: bytes, limits: Limits | None = None) -> list[tuple[Entry, bytes]]:
    return entries_of(TarReader(io.BytesIO(data).readinto, limits))


def entries_of(reader: TarReader) -> list[tuple[Entry, bytes]]:
    return [(entry, b"".join(map(bytes, reader.body()))) for entry in reader]


def test_every_kind_and_field() -> None:
    data = tar(
        [
            folder("d", mode=0o2750, uid=7, gid=8, mtime=9),
            file("d/f", "text", mode=0o4755, xattrs={"user.a": b"=\n\0"}),
            symlink("s", "d/f"),
            hardlink("h", "d/f"),
            device("c", 5, 1),
            device("b", 8, 0, kind=b"4"),
            tar_entries.Entry(b"p", kind=b"6"),
        ]
    )
    found = read(data)
    assert [(entry.name, entry.kind, entry.link) for entry, _ in found] == [
        (b"d/", Kind.FOLDER, b""),
        (b"d/f", Kind.FILE, b""),
        (b"s", Kind.SYMLINK, b"d/f"),
        (b"h", Kind.HARD_LINK, b"d/f"),
        (b"c", Kind.CHARACTER, b""),
        (b"b", Kind.BLOCK, b""),
        (b"p", Kind.FIFO, b""),
    ]
    top, (text, body) = found[0][0], found[1]
    assert (top.mode, top.uid, top.gid, top.mtime_ns) == (0o2750, 7, 8, 9_000_000_000)
    assert (text.mode, text.size, body, text.xattrs) == (0o4755, 4, b"text", {b"user.a": b"=\n\0"})
    assert data[text.data_at : text.data_at + text.stored] == b"text"
    assert [entry.device for entry, _ in found[4:6]] == [(5, 1), (8, 0)]


names = st.binary(min_size=1, max_size=300).filter(lambda name: b"\0" not in name and not name.endswith(b"/"))


@given(
    st.lists(
        st.builds(
            tar_entries.Entry,
            name=names,
            data=st.binary(max_size=1500),
            mode=st.integers(0, 0o7777),
            uid=st.integers(0, 2**40),
            gid=st.integers(0, 2**31),
            mtime=st.integers(-(2**33), 2**36),
            xattrs=st.dictionaries(st.sampled_from(["user.a", "security.capability"]), st.binary(max_size=64)),
        ),
        max_size=6,
    )
)
def test_what_was_written_is_read(written: list[tar_entries.Entry]) -> None:
    found = read(tar(written))
    assert [(e.name, body, e.mode, e.uid, e.gid, e.mtime_ns, dict(e.xattrs)) for e, body in found] == [
        (w.name, w.data, w.mode, w.uid, w.gid, w.mtime * 10**9, {k.encode(): v for k, v in w.xattrs.items()})
        for w in written
    ]


@given(st.integers(1, 40))
def test_a_slow_stream_reads_the_same(most: int) -> None:
    data = tar([file("a", b"x" * 700), file("n" * 200, b"y" * 513), folder("z")])
    source = io.BytesIO(data)

    def trickle(buffer: memoryview) -> int:
        return source.readinto(buffer[:most])

    assert entries_of(TarReader(trickle)) == read(data)


def test_data_that_nobody_reads_is_skipped() -> None:
    reader = TarReader(io.BytesIO(tar([file("a", b"x" * 3_000_000), file("b", b"y")])).readinto)
    assert [entry.name for entry in reader] == [b"a", b"b"]


def test_cut_anywhere_inside_an_entry_is_damage() -> None:
    entries = [file("first", b"1" * 600), file("n" * 150, b"2"), symlink("s", "t")]
    data = tar(entries, end=b"")
    whole = {0}
    for entry in entries:
        whole.add(max(whole) + len(entry.to_bytes()))
    for cut in range(0, len(data) + 1, 64):
        if cut in whole:
            read(data[:cut])
        else:
            with pytest.raises(TarError):
                read(data[:cut])


ONE = file("a", b"1").to_bytes()
ZEROS = bytes(BLOCK)


@pytest.mark.parametrize(
    "data",
    [b"", ONE, ONE + ZEROS, ONE + 2 * ZEROS, ONE + 20 * ZEROS, ONE + 2 * ZEROS + bytes(100), 2 * ZEROS],
    ids=["nothing", "no end blocks", "one end block", "two", "a whole record", "an odd tail of zeros", "empty tar"],
)
def test_ends_that_tools_write(data: bytes) -> None:
    assert len(read(data)) == data.count(b"ustar")


@pytest.mark.parametrize(
    "data",
    [
        ONE + ZEROS + ONE,
        ONE + 2 * ZEROS + ONE,
        ONE + 2 * ZEROS + bytes(700) + b"x",
        ONE + bytes(100),
        ONE[:-1],
        b"x" * BLOCK,
        ONE[:140] + b"\1" + ONE[141:],
        tar([file("a", raw={"chksum": b"0000000\0"})]),
        tar([file("a", raw={"size": b"\377" * 12})]),
        tar([file("a", raw={"size": b"0000000008\0"})]),
        tar([file("a", raw={"uid": b"-1"})]),
        tar([file("a", raw={"size": b"1_0"})]),
        tar([tar_entries.Entry(b"a", kind=b"M")]),
        tar([tar_entries.Entry(b"a", kind=b"Q")]),
        tar([tar_entries.Entry(b"x", kind=b"x", data=pax_record(b"path", b"y"))]),
        tar([tar_entries.Entry(b"x", kind=b"L", data=b"name\0")]),
        tar(
            [
                tar_entries.Entry(b"x", kind=b"L", data=b"n\0"),
                tar_entries.Entry(b"x", kind=b"L", data=b"m\0"),
                file("a"),
            ]
        ),
    ],
    ids=[
        "a lone zero block",
        "a second archive behind the end",
        "a byte behind the end",
        "half a block",
        "cut padding",
        "noise",
        "a changed header",
        "wrong checksum",
        "negative size",
        "no octal digit",
        "negative owner",
        "underscore in a number",
        "multi-volume",
        "unknown type",
        "pax header without entry",
        "long name without entry",
        "two long names",
    ],
)
def test_damage_is_never_the_end(data: bytes) -> None:
    with pytest.raises(TarError):
        read(data)


@pytest.mark.parametrize(
    "records",
    [
        b"5 a=b\n",
        b"99 a=b\n",
        b"6 a=b",
        b"6 ab\n\n",
        b"x a=b\n",
        b" a=b\n",
        b"0 a=b\n",
        b"6 a=b\n9x",
        b"5 =b\n",
        pax_record(b"size", b"-1"),
        pax_record(b"uid", b"1e3"),
        pax_record(b"uid", b"1" * 5000),
        pax_record(b"mtime", b"1.x"),
        pax_record(b"mtime", b"9" * 20),
        pax_record(b"GNU.sparse.map", b"0,1"),
        pax_record(b"GNU.sparse.map", b"0,2,1,1") + pax_record(b"GNU.sparse.size", b"9"),
        pax_record(b"GNU.sparse.map", b"0,9") + pax_record(b"GNU.sparse.size", b"3"),
        pax_record(b"GNU.sparse.major", b"1") + pax_record(b"GNU.sparse.realsize", b"3"),
    ],
)
def test_malformed_pax_records(records: bytes) -> None:
    with pytest.raises(TarError):
        read(tar([tar_entries.Entry(b"x", kind=b"x", data=records), file("a", b"123")]))


def test_a_global_header_is_no_entry_and_counts_for_all() -> None:
    header = tar_entries.Entry(b"g", kind=b"g", data=pax_record(b"comment", b"c") + pax_record(b"gid", b"77"))
    found = read(tar([header, file("a"), file("b", pax={"gid": b"5"})]))
    assert [(entry.name, entry.gid) for entry, _ in found] == [(b"a", 77), (b"b", 5)]


def test_an_empty_record_leaves_the_header() -> None:
    assert read(tar([file("a", pax={"path": b""})]))[0][0].name == b"a"


def test_times_are_exact() -> None:
    times = [b"1.5", b"-1.25", b"1700000000.123456789123", b"3"]
    found = read(tar([file(f"f{at}", pax={"mtime": time}) for at, time in enumerate(times)]))
    assert [entry.mtime_ns for entry, _ in found] == [
        1_500_000_000,
        -1_250_000_000,
        1_700_000_000_123_456_789,
        3_000_000_000,
    ]


def test_gnu_long_names_and_binary_numbers() -> None:
    raw = {"uid": b"\x80" + (3_000_000).to_bytes(7, "big"), "mtime": b"\xff" * 12}
    long = [
        tar_entries.Entry(b"././@LongLink", kind=b"L", data=b"n" * 300 + b"\0"),
        tar_entries.Entry(b"././@LongLink", kind=b"K", data=b"t" * 200 + b"\0"),
        symlink("cut", "cut", raw=raw),
    ]
    entry = read(tar(long))[0][0]
    assert (entry.name, entry.link, entry.uid, entry.mtime_ns) == (b"n" * 300, b"t" * 200, 3_000_000, -1_000_000_000)


def test_a_slash_at_the_end_was_once_the_type_of_folders() -> None:
    assert read(tar([tar_entries.Entry(b"old/", kind=b"\0")]))[0][0].kind is Kind.FOLDER


def test_sizes_of_links_and_folders_mean_nothing() -> None:
    data = tar([hardlink("h", "t", raw={"size": b"00000001000\0"}), file("next", b"n")])
    assert [entry.name for entry, _ in read(data)] == [b"h", b"next"]


def test_prefix_of_ustar_is_part_of_the_name() -> None:
    assert read(tar([file("name", raw={"prefix": b"some/folder"})]))[0][0].name == b"some/folder/name"


def test_checksums_of_signed_bytes_are_accepted() -> None:
    header = bytearray(file(b"\xff\xfe").to_bytes()[:BLOCK])
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(struct.unpack("512b", header))
    assert read(bytes(header))[0][0].name == b"\xff\xfe"


@pytest.mark.parametrize(
    "options",
    [
        ("--format=gnu",),
        ("--format=posix", "--sparse-version=0.0"),
        ("--format=posix", "--sparse-version=0.1"),
        ("--format=posix", "--sparse-version=1.0"),
    ],
)
@pytest.mark.parametrize("pieces", [1, 3, 60])
def test_sparse_files_as_gnu_tar_writes_them(tmp_path: Path, options: tuple[str, ...], pieces: int) -> None:
    size = 8 * 1024**2
    with (tmp_path / "sparse").open("wb") as out:
        out.truncate(size)
        for at in range(pieces):
            out.seek(at * 128 * 1024 + 4096)
            out.write(b"piece %d" % at)
    (tmp_path / "after").write_text("a")
    command = ["tar", "--sparse", *options, "-C", str(tmp_path), "-cf", "-", "sparse", "after"]
    data = subprocess.run(command, check=True, capture_output=True).stdout
    (sparse, stored), (after, body) = read(data)
    assert (sparse.name, sparse.size, after.name, body) == (b"sparse", size, b"after", b"a")
    assert sparse.segments is not None
    assert len(stored) == sparse.stored < size
    assert unfolded(sparse, stored) == (tmp_path / "sparse").read_bytes()


def unfolded(entry: Entry, stored: bytes) -> bytes:
    content = bytearray(entry.size)
    for offset, length in entry.segments or ():
        content[offset : offset + length], stored = stored[:length], stored[length:]
    return bytes(content)


def _sparse_map(count: int) -> bytes:
    numbers = b"".join(b"%d\n0\n" % at for at in range(count))
    body = b"%d\n" % count + numbers
    return body + bytes(-len(body) % BLOCK)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tar([tar_entries.Entry(b"x", kind=b"x", data=pax_record(b"comment", b"c" * 5000)), file("a")]),
        lambda: tar([tar_entries.Entry(b"g", kind=b"g", data=pax_record(b"k%d" % at, b"v" * 900)) for at in range(6)]),
        lambda: tar([tar_entries.Entry(b"x", kind=b"L", data=b"n" * 5000), file("a")]),
        lambda: tar(
            [
                file(
                    "s",
                    _sparse_map(50),
                    pax={"GNU.sparse.major": b"1", "GNU.sparse.minor": b"0", "GNU.sparse.realsize": b"100"},
                )
            ]
        ),
    ],
    ids=["one header", "global headers together", "long name", "sparse map"],
)
def test_headers_have_limits(make: Callable[[], bytes]) -> None:
    with pytest.raises(TarLimitError) as met:
        read(make(), Limits(header_bytes=4096, sparse_segments=40))
    assert met.value.value > met.value.bound
    read(make(), Limits(header_bytes=8192, sparse_segments=50))


@given(st.binary(max_size=2048))
def test_noise_is_refused_or_read_but_never_a_traceback(noise: bytes) -> None:
    with contextlib.suppress(TarError, TarLimitError):
        read(noise)


@given(st.integers(0, 2**16), st.integers(0, 255))
def test_one_changed_byte_is_noticed_or_only_changes_data(at: int, value: int) -> None:
    whole = tar([file("a", b"data"), folder("d"), file("n" * 120, b"more", xattrs={"user.x": b"1"})])
    changed = bytearray(whole)
    changed[at % len(whole)] = value
    try:
        found = read(bytes(changed))
    except (TarError, TarLimitError):
        return
    assert len(found) == 3, "an entry got lost without a word"
