"""What measurements come to: the arithmetic of the bench, without measuring anything."""

import pytest

from bench.figures import Figure, Target, Verdict, kilobytes, megabytes, milliseconds, per_second, ratio
from bench.report import table
from bench.rounds import interleaved

FASTER = Target(must=5, aim=10, at_least=True)
CHEAPER = Target(must=2, aim=1.3)


@pytest.mark.parametrize(
    "target, value, verdict",
    [
        (CHEAPER, 1.0, Verdict.AIM),
        (CHEAPER, 1.3, Verdict.AIM),
        (CHEAPER, 1.31, Verdict.MUST),
        (CHEAPER, 2.0, Verdict.MUST),
        (CHEAPER, 2.01, Verdict.MISSED),
        (CHEAPER, None, Verdict.UNMEASURED),
        (FASTER, 12.0, Verdict.AIM),
        (FASTER, 10.0, Verdict.AIM),
        (FASTER, 9.99, Verdict.MUST),
        (FASTER, 5.0, Verdict.MUST),
        (FASTER, 4.99, Verdict.MISSED),
        (FASTER, None, Verdict.UNMEASURED),
        (Target(must=0, aim=0), 0, Verdict.AIM),
        (Target(must=0, aim=0), 1, Verdict.MISSED),
    ],
)
def test_a_bound_belongs_to_the_good_side(target: Target, value: float | None, verdict: Verdict) -> None:
    assert Figure("B0", "something", target, value).verdict is verdict


def test_a_ratio_is_of_rounds_and_not_of_medians() -> None:
    # The machine is four times slower in the second round, for both alike.
    assert ratio([2, 8, 2], [1, 4, 1]) == 2
    # Medians would say 1 here; two of three rounds say otherwise.
    assert ratio([1, 2, 9], [2, 1, 3]) == 2


def test_what_was_not_measured_together_has_no_ratio() -> None:
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        ratio([1, 2], [1])


def test_for_people_it_is_the_median_with_its_unit() -> None:
    assert milliseconds([0.001, 0.5, 0.0021]) == "2.1 ms"
    assert per_second([100, 7.25, 3]) == "7.2/s"
    assert megabytes([133_000_000]) == "133.0 MB"
    assert kilobytes([56_400]) == "56 kB"


def test_every_round_has_each_once_and_begins_with_another() -> None:
    asked: list[str] = []

    def contestant(name: str) -> int:
        asked.append(name)
        return len(asked)

    taken = interleaved(3, {name: lambda name=name: contestant(name) for name in "abc"}, warm_up=False)  # type: ignore[misc]
    assert "".join(asked) == "abcbcacab"
    assert taken == {"a": [1, 6, 8], "b": [2, 4, 9], "c": [3, 5, 7]}


def test_a_round_to_warm_up_does_not_count() -> None:
    values = iter(range(10))
    assert interleaved(2, {"a": lambda: next(values)}) == {"a": [1, 2]}


def test_the_table_says_what_was_missed_and_what_was_not_measured() -> None:
    missed = Figure("B1", "start", CHEAPER, 3.456, "34 ms", "10 ms", command="runc run")
    unmeasured = Figure("B2", "podman", FASTER, None, note="there is no podman")
    said = table([missed, unmeasured]).splitlines()
    assert said[1].split("  ")[0] == "B1"
    assert "3.46×" in said[1]
    assert "MISSED" in said[1]
    assert "not measured" in said[2]
    assert "  B1  runc run" in said
    assert "  B2  there is no podman" in said
