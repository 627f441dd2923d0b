"""./dev sdk: make the synchronous client from the asynchronous source; --check only compares."""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import unasync  # type: ignore[import-untyped]

from tools.machine import ROOT, VENV

_SDK = ROOT / "src" / "sandbay" / "sdk"
FOLDER = _SDK / "_sync"
_HEADER = "# Made by `./dev sdk` from _async/{name}, which is the one to edit.\n"
_DOCSTRING = '"""The synchronous client, made from `_async` by `./dev sdk`. Nothing here is edited by hand."""\n'
_NAMES = {
    "_async": "_sync",
    "aclose": "close",
    "aclosing": "closing",
    "aiter_bytes": "iter_bytes",
    "aiter_raw": "iter_raw",
    "aread": "read",
    "asyncio": "sync",  # of websockets; of the standard library only `sdk.twins` knows
}
# Every name of our own: AsyncClient is Client, async_work is work.
_MARKED = re.compile(r"\b(?:Async(?=[A-Z])|async_(?=[a-z]))(\w+)")
_RUFF = VENV / "bin" / "ruff"


def twins() -> Mapping[str, str]:
    """The synchronous modules by file name, as they have to be."""
    sources = sorted((_SDK / "_async").glob("*.py"))
    names = {found[0]: found[1] for source in sources for found in _MARKED.finditer(source.read_text())}
    with tempfile.TemporaryDirectory() as folder:
        rule = unasync.Rule("/_async/", "/_sync/", {**names, **_NAMES})
        for source in sources:
            copy = Path(folder, "_async", source.name)
            copy.parent.mkdir(exist_ok=True)
            copy.write_text(source.read_text())
        unasync.unasync_files([str(path) for path in Path(folder, "_async").iterdir()], [rule])
        made = {path.name: path.read_text() for path in sorted(Path(folder, "_sync").iterdir())}
    return {name: _finished(name, text) for name, text in made.items()}


def _finished(name: str, text: str) -> str:
    """The text in order, with the header."""
    text = _DOCSTRING if name == "__init__.py" else _HEADER.format(name=name) + text
    as_file = f"--stdin-filename={FOLDER / name}"
    for command in (["check", "--quiet", "--select=I,C4,UP028", "--fix", "--unsafe-fixes"], ["format", "--quiet"]):
        done = subprocess.run([_RUFF, *command, as_file, "-"], input=text, text=True, capture_output=True, check=True)
        text = done.stdout
    return text


def main(arguments: Sequence[str]) -> int:
    """Write or compare; 1 when a committed file is not what the source says."""
    parser = argparse.ArgumentParser(prog="./dev sdk", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    options = parser.parse_args(arguments)
    wanted = twins()
    found = {path.name: path.read_text() for path in FOLDER.glob("*.py")}
    differing = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    if options.check:
        for name in differing:
            print(f"src/sandbay/sdk/_sync/{name} is not what _async says: run ./dev sdk and commit it.")
        return 1 if differing else 0
    FOLDER.mkdir(exist_ok=True)
    for name in differing:
        if name in wanted:
            (FOLDER / name).write_text(wanted[name])
        else:
            (FOLDER / name).unlink()
    print(f"Wrote {len(differing)} of {len(wanted)} files in {FOLDER.relative_to(ROOT)}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
