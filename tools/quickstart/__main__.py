"""./dev quickstart: four images at work in one installation, with everything that makes Sandbay what it is.

The first run builds the images, about four minutes on two cores; later ones take seconds. It needs Debian's packages
and the npm registry, nothing else.
"""

import argparse
import hashlib
import os
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from sandbay.sdk import SandbayError
from tools.quickstart.guide import SANDBAY, Guide, TourError
from tools.quickstart.steps import STEPS, Step, leave_nothing, stay

HOME = Path("/var/lib/sandbay-quickstart")


def main(arguments: Sequence[str] | None = None) -> int:
    """The whole tour; 0 when every step did what it shows."""
    options = _options(arguments)
    begun = time.monotonic()
    turn = take_turn(options.home)
    if turn is None:
        print(
            f"quickstart: another tour goes through {options.home}; wait for its end, or name another --home",
            file=sys.stderr,
        )
        return 1
    with turn:
        return _tour(options, begun)


def take_turn(home: Path) -> socket.socket | None:
    """Held by one tour of an installation at a time; the kernel lets go of it with the process, and no file is left."""
    turn = socket.socket(socket.AF_UNIX)
    try:
        turn.bind(b"\0sandbay-quickstart " + hashlib.sha256(os.fsencode(home.absolute())).digest())
    except OSError:
        turn.close()
        return None
    return turn


def _tour(options: argparse.Namespace, begun: float) -> int:
    guide = Guide(options.home)
    code = _walk(guide, STEPS)
    if options.exit:
        code = max(code, _walk(guide, [leave_nothing]))
    elif code == 0:
        stay(guide)
    print(f"\n{'Failed' if code else 'Done'} after {time.monotonic() - begun:.0f} s.")
    return code


def _walk(guide: Guide, steps: Sequence[Step]) -> int:
    """The exit code: 0, 1 when a step did not do what it shows, 130 when the reader has interrupted it."""
    try:
        for step in steps:
            step(guide)
    except (TourError, SandbayError) as error:
        print(f"\nquickstart: {error}", file=sys.stderr)
        print(f"  What the installation says: {guide.home}/log/sandbay.log", file=sys.stderr)
        print("  Begin again, with what has been built: ./dev quickstart", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nquickstart: interrupted. Go on: ./dev quickstart", file=sys.stderr)
        print(f"  Stop it: SANDBAY_HOME={guide.home} {SANDBAY} down", file=sys.stderr)
        return 130
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev quickstart", description=__doc__)
    parser.add_argument("--exit", action="store_true", help="stop and remove everything at the end")
    parser.add_argument("--home", type=Path, default=HOME, metavar="DIR", help="where it lives (%(default)s)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
