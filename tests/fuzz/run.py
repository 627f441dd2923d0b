"""One target under libFuzzer: `python -m tests.fuzz.run TARGET CORPUS [libFuzzer's options]`; see `./dev fuzz`."""

import sys

import atheris

with atheris.instrument_imports(include=["sandbay"]):
    from tests.fuzz.targets import TARGETS


def main() -> None:
    """Search until an option says when to stop, or a promise is broken."""
    target = TARGETS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target.run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
