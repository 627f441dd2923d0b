"""`./dev bench [NAME …]`: measure, print, write."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext

from bench import report
from bench.figures import Figure, Target
from bench.host import UnmeasurableError, undisturbed
from bench.measures import b1, b2, b4, b5, b6, b7, b8, b9, b12, resolve
from tools.machine import ROOT, say

_RESULTS = ROOT / "bench" / "results"
_MEASURES: dict[str, Callable[..., Iterator[Figure]]] = {
    "B1": b1.measure,
    "B2": b2.measure,
    "B4": b4.measure,
    "B5": b5.measure,
    "B6": b6.measure,
    "B7": b7.measure,
    "B8": b8.measure,
    "B9": b9.measure,
    "B12": b12.measure,
    "RESOLVE": resolve.measure,
}


def main(arguments: Sequence[str]) -> int:
    """Measure what is named, or all."""
    options = _parser().parse_args(arguments)
    if options.list:
        for name, measure in _MEASURES.items():
            say(f"{name:<4}  {(sys.modules[measure.__module__].__doc__ or '').strip()}")
        return 0
    figures: list[Figure] = []
    with undisturbed() if options.undisturbed else nullcontext():
        for name in options.names or _MEASURES:
            say(f"measuring {name} …")
            figures.extend(_measured(name, options.rounds))
    say("")
    say(report.table(figures))
    say(f"\nwritten to {report.write(figures, _RESULTS).relative_to(ROOT)}")
    return 0


def _measured(name: str, rounds: int | None) -> list[Figure]:
    measure = _MEASURES[name]
    try:
        return list(measure() if rounds is None else measure(rounds))
    except UnmeasurableError as problem:
        nothing = Target(must=0, aim=0, unit="")
        return [Figure(name, "not measured on this machine", nothing, None, note=str(problem))]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./dev bench", description="Each figure against its baseline, in one run.")
    parser.add_argument("names", nargs="*", type=str.upper, choices=[*_MEASURES, []], metavar="NAME", help="only these")
    parser.add_argument("--rounds", type=int, help="rounds of each; else each figure's own number")
    first = "on a busy machine: let all that is measured go before everybody else"
    parser.add_argument("--undisturbed", action="store_true", help=first)
    parser.add_argument("--list", action="store_true", help="what there is")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
