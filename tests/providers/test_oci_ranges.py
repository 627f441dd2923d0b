"""Id ranges: never two owners, never somebody else's."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sandbay.adapters.providers.oci.ranges import RANGE, Block, foreign_ranges, free_base

SMALL = Block(base=10 * RANGE, count=5)


def test_all_ranges_are_handed_out_once_and_then_none() -> None:
    taken: set[int] = set()
    for _ in range(SMALL.count):
        base = free_base(SMALL, "here", taken)
        assert base is not None
        assert base not in taken
        taken.add(base)
    assert taken == {SMALL.base + n * RANGE for n in range(SMALL.count)}
    assert free_base(SMALL, "here", taken) is None


@settings(deadline=None)
@given(st.text(max_size=8), st.sets(st.integers(0, 4)), st.integers(0, 20 * RANGE), st.integers(0, 3 * RANGE))
def test_a_free_range_meets_nothing_that_is_in_use(owner: str, used: set[int], first: int, count: int) -> None:
    taken = {SMALL.base + n * RANGE for n in used}
    foreign = range(first, first + count)
    base = free_base(SMALL, owner, taken, [foreign])
    free = [
        candidate
        for n in range(SMALL.count)
        if (candidate := SMALL.base + n * RANGE) not in taken
        and not (count and first in range(candidate, candidate + RANGE))
        and candidate not in foreign
    ]
    assert (base in free) if free else base is None


def test_the_default_block_lies_outside_what_distributions_hand_out() -> None:
    block = Block()
    assert block.base >= 0x70000000
    assert block.base + block.count * RANGE <= 0x7FFE0000 + RANGE * 2
    usual = foreign_ranges("root:100000:65536\nagent:165536:65536\n")
    assert not any(r.start < block.base + block.count * RANGE and block.base < r.stop for r in usual)


def test_lines_that_are_no_ranges_are_skipped() -> None:
    assert foreign_ranges("# no\nroot:100:5\nx:y:z\n:1\n") == [range(100, 105)]
