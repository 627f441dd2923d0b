"""Every cell of the table of moves, and where following it leads."""

from itertools import product

import pytest

from sandbay.domain.allocation import AllocationState, Presence
from sandbay.flow.run import Move, run

# What Core says (rows, `nothing`: it knows no such allocation) × what the provider sees.
COLUMNS = ["absent", "running", "exited", "unknown"]
TABLE = {
    "reserved": "create adopt create look_again",
    "starting": "create adopt create look_again",
    "running": "report_lost adopt report_lost look_again",
    "suspending": "suspend suspend suspend look_again",
    "stopping": "report_closed destroy destroy look_again",
    "closed": "nothing destroy destroy look_again",
    "nothing": "nothing destroy destroy look_again",
}
SAID = [*AllocationState, None]
CELLS = list(product(SAID, Presence))


UNPREPARED = {**TABLE, **dict.fromkeys(("reserved", "starting"), "create start_over start_over look_again")}
"""The same while it is not known that the initialisation is done: what Core has running was done."""


def test_the_table_has_every_cell() -> None:
    assert set(COLUMNS) == set(Presence)
    assert set(TABLE) == set(UNPREPARED) == {*AllocationState, "nothing"}
    assert set(" ".join([*TABLE.values(), *UNPREPARED.values()]).split()) == set(Move)


@pytest.mark.parametrize("said, seen", CELLS)
def test_every_cell(said: AllocationState | None, seen: Presence) -> None:
    assert run(said, seen) == TABLE[said or "nothing"].split()[COLUMNS.index(seen)]


@pytest.mark.parametrize("said, seen", CELLS)
def test_every_cell_while_the_setup_may_be_half_done(said: AllocationState | None, seen: Presence) -> None:
    assert run(said, seen, prepared=False) == UNPREPARED[said or "nothing"].split()[COLUMNS.index(seen)]


@pytest.mark.parametrize("said", SAID)
def test_unknown_is_never_taken_for_no(said: AllocationState | None) -> None:
    assert run(said, Presence.UNKNOWN) is Move.LOOK_AGAIN


@pytest.mark.parametrize("said, seen", CELLS)
def test_only_what_core_wants_to_run_is_ever_brought_up(said: AllocationState | None, seen: Presence) -> None:
    brought_up = run(said, seen) in (Move.CREATE, Move.ADOPT)
    if brought_up:
        assert said in (AllocationState.RESERVED, AllocationState.STARTING, AllocationState.RUNNING)
    if said is AllocationState.RUNNING and seen is not Presence.RUNNING:
        assert not brought_up, "a workspace that is gone is told, not replaced by an empty one"
    if seen is Presence.RUNNING and not brought_up:
        assert run(said, seen) is (Move.SUSPEND if said is AllocationState.SUSPENDING else Move.DESTROY)


# What a move leads to when it works: what Core says then, and what is there then.
EFFECTS: dict[Move, tuple[str, Presence]] = {
    Move.CREATE: ("running", Presence.RUNNING),
    Move.ADOPT: ("running", Presence.RUNNING),
    Move.SUSPEND: ("closed", Presence.ABSENT),
    Move.DESTROY: ("closed", Presence.ABSENT),
    Move.REPORT_LOST: ("closed", Presence.ABSENT),
    Move.REPORT_CLOSED: ("closed", Presence.ABSENT),
}


@pytest.mark.parametrize("said, seen", [cell for cell in CELLS if cell[1] is not Presence.UNKNOWN])
def test_each_start_settles_after_one_move_and_stays(said: AllocationState | None, seen: Presence) -> None:
    move = run(said, seen)
    if move is Move.NOTHING:
        assert said in (AllocationState.CLOSED, None)
        assert seen is Presence.ABSENT
        return
    state, presence = EFFECTS[move]
    after = AllocationState(state) if said is not None else None
    again = run(after, presence)
    assert again is (Move.ADOPT if presence is Presence.RUNNING else Move.NOTHING)
    assert EFFECTS.get(again, (state, presence)) == (state, presence)


@pytest.mark.parametrize("said", [s for s in AllocationState if s is not AllocationState.CLOSED])
def test_every_open_allocation_has_a_way_on_whatever_is_seen(said: AllocationState) -> None:
    assert Move.NOTHING not in {run(said, seen) for seen in Presence}


def test_what_is_closed_or_unknown_to_core_only_ever_goes_away() -> None:
    for said in (AllocationState.CLOSED, None):
        assert {run(said, seen) for seen in Presence} == {Move.NOTHING, Move.DESTROY, Move.LOOK_AGAIN}
