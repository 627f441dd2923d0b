"""What a measurement comes to: medians, ratios and verdicts. Pure arithmetic, with tests of its own."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What became of a target."""

    AIM = "aim"
    MUST = "must"
    MISSED = "MISSED"
    UNMEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure has to reach. `unit` is what its value counts; `at_least` says that more is better."""

    must: float
    aim: float
    unit: str = "×"
    at_least: bool = False

    def reached(self, value: float, bound: float) -> bool:
        """Whether a value is on the right side of a bound; the bound itself is."""
        return value >= bound if self.at_least else value <= bound

    def judge(self, value: float | None) -> Verdict:
        """The verdict on a value, or on none."""
        if value is None:
            return Verdict.UNMEASURED
        if self.reached(value, self.aim):
            return Verdict.AIM
        return Verdict.MUST if self.reached(value, self.must) else Verdict.MISSED


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the table.

    `ours` and `theirs` are medians with their unit, for people; `command` is what the baseline ran. A `value` of
    None was not measured, and `note` says why not.
    """

    bench: str
    what: str
    target: Target
    value: float | None
    ours: str = ""
    theirs: str = ""
    command: str = ""
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        """Whether it reached its target."""
        return self.target.judge(self.value)


def ratio(over: Sequence[float], under: Sequence[float]) -> float:
    """The median of the rounds' own ratios: both sides of each were taken moments apart, on the same busy machine.

    Raises `ValueError` when the two were not measured in the same rounds.
    """
    return statistics.median(a / b for a, b in zip(over, under, strict=True))


def milliseconds(seconds: Sequence[float]) -> str:
    """Their median, for people."""
    return f"{statistics.median(seconds) * 1000:.1f} ms"


def in_seconds(seconds: Sequence[float]) -> str:
    """Their median, for people."""
    return f"{statistics.median(seconds):.2f} s"


def per_second(rates: Sequence[float]) -> str:
    """Their median, for people."""
    return f"{statistics.median(rates):.1f}/s"


def megabytes(sizes: Sequence[float]) -> str:
    """Their median, for people."""
    return f"{statistics.median(sizes) / 1e6:.1f} MB"


def kilobytes(sizes: Sequence[float]) -> str:
    """Their median, for people."""
    return f"{statistics.median(sizes) / 1e3:.0f} kB"
