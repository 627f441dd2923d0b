"""An export of the audit tells what was done to it: every line altered, taken out, put in, moved or cut off."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbay.domain.chain import chained
from sandbay.sdk.chain import verify_audit
from sandbay.sdk.errors import ContentError

ENTRIES = [{"id": f"aud_{n}", "principal": "änn", "details": {"n": n, "text": 'a\n"b'}} for n in range(5)]
LINES = list(chained(ENTRIES))
FIRST, LAST = 1, len(LINES)


def fault(lines: list[bytes]) -> tuple[int, str]:
    """Where it is told to be broken, and how."""
    with pytest.raises(ContentError) as caught:
        verify_audit(lines)
    assert caught.value.code == "digest_mismatch"
    return caught.value.details["line"], caught.value.details["fault"]


def test_what_was_written_is_whole() -> None:
    whole = verify_audit(LINES)
    assert whole.entries == len(ENTRIES)
    assert verify_audit(b"".join(LINES).splitlines()).head == whole.head
    assert verify_audit(chained([])).entries == 0
    assert [json.loads(line)["entry"] for line in LINES[1:-1]] == ENTRIES


def test_a_later_export_begins_as_the_earlier_one() -> None:
    assert list(chained([*ENTRIES, {"id": "aud_9"}]))[: len(LINES) - 1] == LINES[:-1]


def test_the_head_tells_two_histories_apart() -> None:
    other = [*ENTRIES[:2], {**ENTRIES[2], "principal": "bob"}, *ENTRIES[3:]]
    assert verify_audit(chained(other)).head != verify_audit(LINES).head


@pytest.mark.parametrize("number", range(2, LAST))
def test_an_altered_line_is_told_at_the_next(number: int) -> None:
    altered = [*LINES]
    altered[number - 1] = altered[number - 1].replace(b"aud_", b"aud-")
    assert altered != LINES
    assert fault(altered) == (number + 1, "altered")


@pytest.mark.parametrize("number", range(FIRST, LAST + 1))
def test_a_line_that_was_taken_out_is_missed(number: int) -> None:
    without = LINES[: number - 1] + LINES[number:]
    what = {FIRST: (1, "foreign"), LAST: (LAST - 1, "cut_off")}.get(number, (number, "out_of_order"))
    assert fault(without) == what


@pytest.mark.parametrize("number", range(FIRST, LAST))
def test_two_lines_that_changed_places_are_told(number: int) -> None:
    moved = [*LINES]
    moved[number - 1], moved[number] = moved[number], moved[number - 1]
    what = {FIRST: "foreign"}.get(number, "out_of_order")
    assert fault(moved) == (number, what)


@pytest.mark.parametrize("number", range(2, LAST + 1))
def test_a_line_that_was_put_in_is_told(number: int) -> None:
    """A copy of the one before it, and one that claims the place of the next."""
    assert fault([*LINES[: number - 1], LINES[number - 2], *LINES[number - 1 :]])[0] == number
    forged = json.dumps({"n": number - 1, "previous": "sha256:" + "0" * 64, "entry": ENTRIES[0]}).encode()
    assert fault([*LINES[: number - 1], forged, *LINES[number - 1 :]]) == (number, "altered")


@pytest.mark.parametrize("kept", range(LAST))
def test_what_was_cut_off_is_told(kept: int) -> None:
    assert fault(LINES[:kept]) == (kept, "cut_off")
    if kept > 1:
        assert fault([*LINES[: kept - 1], LINES[kept - 1][:-9]])[1] == "foreign"


def test_what_follows_the_end_is_told() -> None:
    assert fault([*LINES, LINES[-1]]) == (LAST + 1, "added")
    assert fault([*LINES, b"\n"]) == (LAST + 1, "added")


@pytest.mark.parametrize(
    "line", [b"", b"[]", b"1", b"{", b"\xff", b'{"n":1}', b'{"end":0,"previous":"x","more":1}', b"[" * 100_000]
)
def test_what_is_no_line_of_an_audit_is_told(line: bytes) -> None:
    assert fault([LINES[0], line, *LINES[1:]]) == (2, "foreign")
    assert fault([line]) == (1, "foreign")


@given(st.data())
def test_no_byte_changes_unseen(data: st.DataObject) -> None:
    whole = b"".join(LINES)
    at = data.draw(st.integers(0, len(whole) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda it: it != whole[at]))
    changed: Any = whole[:at] + bytes([other]) + whole[at + 1 :]
    assert fault(changed.splitlines(keepends=True))
