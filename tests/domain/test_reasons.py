"""Every reason is documented, and its code is its name."""

import pytest

from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.reasons import Actor, Group, Reason


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_is_told_about(reason: Reason) -> None:
    about = reason.about
    assert reason.value == reason.name.lower()
    assert isinstance(about.group, Group)
    assert isinstance(about.actor, Actor)
    assert about.meaning.endswith(".")
    assert len(about.meaning) > 15


def test_meanings_tell_reasons_apart() -> None:
    assert len({reason.about.meaning for reason in Reason}) == len(Reason)


def test_nobody_acts_only_where_waiting_helps() -> None:
    assert [r for r in Reason if r.about.actor is Actor.NOBODY and not r.about.retry] == []


@pytest.mark.parametrize("group", [Group.CONTENT, Group.CHOOSING, Group.REFERENCE, Group.REQUEST, Group.ACCESS])
def test_verdicts_on_bytes_and_requests_are_permanent(group: Group) -> None:
    passing = {Reason.CONTENT_LOST, Reason.RELEASE_PENDING, Reason.TOO_MANY_REQUESTS}
    assert {r for r in Reason if r.about.group is group and r.about.retry} <= passing


def test_an_error_carries_its_refusal_unchanged() -> None:
    refusal = Refusal(Reason.NO_SPACE, "the disk is full", "size", {"free": 0})
    error = RefusedError.of(refusal)
    assert error.refusal == refusal
    assert str(error) == "no_space: the disk is full"
