"""When a node tries again by itself, and when only somebody else can help."""

from datetime import timedelta

import pytest

from sandbay.domain.readiness import retry_after
from sandbay.domain.reasons import Group, Reason

MINUTES = {-1: 1, 0: 1, 1: 1, 2: 2, 3: 5, 4: 10, 5: 30, 6: 30, 99: 30}
VERDICTS = [r for r in Reason if r.about.group is Group.CONTENT and r is not Reason.CONTENT_LOST]


@pytest.mark.parametrize("reason", VERDICTS)
def test_a_verdict_on_bytes_is_never_tried_again(reason: Reason) -> None:
    assert {retry_after(reason, attempt) for attempt in MINUTES} == {None}


@pytest.mark.parametrize("reason", [r for r in Reason if r not in VERDICTS])
def test_everything_else_is_tried_again_ever_more_slowly(reason: Reason) -> None:
    assert {attempt: retry_after(reason, attempt) for attempt in MINUTES} == {
        attempt: timedelta(minutes=minutes) for attempt, minutes in MINUTES.items()
    }


def test_there_are_both_kinds() -> None:
    assert {Reason.DIGEST_MISMATCH, Reason.MALFORMED_LAYER, Reason.LIMIT_EXCEEDED} <= {*VERDICTS}
    assert not {Reason.CONTENT_LOST, Reason.NO_SPACE, Reason.INTERNAL} & {*VERDICTS}
