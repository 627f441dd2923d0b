"""./dev fuzz: look for bytes that break a promise of the readers of strangers' data (tests/fuzz/targets.py).

What the search finds worth keeping stays in .cache/fuzz, and the next one goes on from there. An input that breaks
something is put beside it and shown; mend the reader and keep the input in tests/fuzz/crashes/TARGET.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.targets import TARGETS
from tools.machine import ROOT, say

_CACHE = ROOT / ".cache" / "fuzz"
_LONGEST = 1 << 15


def main(arguments: Sequence[str]) -> int:
    """Return 0 when nothing was found, 1 when something was."""
    parser = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__)
    parser.add_argument("target", nargs="*", help=f"one or more of {', '.join(TARGETS)}; all by default")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--corpus", type=Path, default=_CACHE, help="where inputs are kept (%(default)s)")
    options = parser.parse_args(arguments)
    if unknown := set(options.target) - set(TARGETS):
        parser.error(f"there is no target {', '.join(sorted(unknown))}")
    return max(_fuzz(name, options.seconds, options.corpus) for name in options.target or TARGETS)


def _fuzz(name: str, seconds: int, folder: Path) -> int:
    corpus, found = folder / name, folder / f"{name}-found"
    for place in (corpus, found):
        place.mkdir(parents=True, exist_ok=True)
    for seed, data in TARGETS[name].seeds().items():
        (corpus / f"seed-{seed}").write_bytes(data)
    options = [f"-max_total_time={seconds}", f"-max_len={_LONGEST}", f"-artifact_prefix={found}/"]
    command = [sys.executable, "-m", "tests.fuzz.run", name, str(corpus), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
    told = (done.stdout + done.stderr).splitlines()
    if done.returncode == 0:
        say(f"{name}: {next((line for line in reversed(told) if line.startswith('Done')), 'done')}")
        return 0
    say("\n".join(told[-40:]))
    say(f"{name}: something was found; the input is in {found}")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
