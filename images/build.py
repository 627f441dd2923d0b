#!/usr/bin/env python3
"""Builds the example images: one OCI layout folder per image.

The layouts are what `sandbay images register NAME --from-layout DIR` takes.
"""

import argparse
import os
import pathlib
import signal
import sys

# Started by its path, as root, perhaps in a tree that belongs to somebody else.
sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
sys.dont_write_bytecode = True

from images.building.builder import Builder  # noqa: E402 - found through the line above
from images.building.host import BuildError  # noqa: E402

_EXITS = """\
exit codes: 0 built or unchanged, 1 the build failed, 2 wrong arguments, 130 and 143 interrupted

An image is built again when a file in its folder or its base changed. Newer packages in Debian's archive
do not count: ask for them with --force."""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="images/build.py",
        description=__doc__,
        epilog=_EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help="an image: a folder here with an image.toml")
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR", help="layouts go to DIR/NAME")
    parser.add_argument(
        "--revision",
        type=int,
        default=1,
        metavar="N",
        help="stamp images that have a Containerfile with N (default 1): a changed release without a build",
    )
    parser.add_argument("--force", action="store_true", help="build again, bases too, although nothing changed")
    arguments = parser.parse_args()
    if arguments.revision < 1:
        parser.error("--revision counts from 1")
    return arguments


def _stop(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def main() -> int:
    """Run the command line; return its exit code."""
    arguments = _arguments()
    os.umask(0o022)  # what the build makes is read by the users of tools and of the image
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    try:
        if os.geteuid() != 0:
            raise BuildError("building images needs root: run this with sudo")
        builder = Builder(arguments.out.resolve(), force=arguments.force)
        with builder.locked():
            for name in arguments.names:
                builder.publish(name, arguments.revision)
    except (BuildError, OSError) as error:
        sys.stderr.write(f"images/build.py: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
