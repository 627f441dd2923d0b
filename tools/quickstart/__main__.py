"""./dev quickstart: four images at work in one installation, with everything that makes Sandbay what it is.

The first run builds the images, about four minutes on two cores; later ones take seconds. It needs Debian's packages
and the npm registry, nothing else.
"""

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from sandbay.sdk import SandbayError
from tools.quickstart.guide import Guide, TourError
from tools.quickstart.steps import STEPS, stay

HOME = Path("/var/lib/sandbay-quickstart")


def main(arguments: Sequence[str] | None = None) -> int:
    """The whole tour; 0 when every step did what it shows."""
    options = _options(arguments)
    begun = time.monotonic()
    guide = Guide(options.home)
    ended = False
    try:
        for step in STEPS:
            step(guide)
        ended = True
    except (TourError, SandbayError) as error:
        print(f"\nquickstart: {error}", file=sys.stderr)
        print(f"  The installation's log: {guide.home}/log/sandbay.log", file=sys.stderr)
        print("  Begin again, with what has been built: ./dev quickstart", file=sys.stderr)
    finally:
        if options.exit:
            _leave_nothing(guide)
    if ended and not options.exit:
        stay(guide)
    print(f"\n{'Done' if ended else 'Failed'} after {time.monotonic() - begun:.0f} s.")
    return 0 if ended else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev quickstart", description=__doc__)
    parser.add_argument("--exit", action="store_true", help="stop and remove everything at the end")
    parser.add_argument("--home", type=Path, default=HOME, metavar="DIR", help="where it lives (%(default)s)")
    return parser.parse_args(arguments)


def _leave_nothing(guide: Guide) -> None:
    guide.step("Stop", "Sessions, sandboxes, mounts, process and files of the tour go. What was built is kept.")
    guide.run("down")
    shutil.rmtree(guide.home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
