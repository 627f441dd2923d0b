"""How long a Session may live."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbay.domain.life import NO_LIMIT, Life

BOUND = st.none() | st.integers(10, 10_000)
LIFE = st.builds(Life, BOUND, BOUND)


@pytest.mark.parametrize(
    "mine, other, over, within",
    [
        (None, None, None, None),
        (None, 20, 20, 20),
        (20, None, 20, 20),
        (20, 30, 20, 20),
        (30, 20, 30, 20),
    ],
)
def test_each_member_by_itself(mine: int | None, other: int | None, over: int | None, within: int | None) -> None:
    assert Life(mine, 5).over(Life(other, 7)) == Life(over, 5)
    assert Life(5, mine).over(Life(7, other)) == Life(5, over)
    assert Life(mine, 5).within(Life(other, 7)) == Life(within, 5)
    assert Life(5, mine).within(Life(7, other)) == Life(5, within)


@given(LIFE, LIFE)
def test_a_ceiling_is_never_passed(asked: Life, ceiling: Life) -> None:
    held = asked.within(ceiling)
    assert held.within(ceiling) == held
    assert held.within(asked) == held
    assert asked.within(NO_LIMIT) == asked
