"""The readers of strangers' bytes: no input breaks a promise. The long search is `./dev fuzz`."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]
needs_atheris = pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None, reason="atheris is built for x86_64 and CPython up to 3.14"
)
SEEDS = {name: list(target.seeds().values()) for name, target in TARGETS.items()}
EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), st.binary(max_size=12)), max_size=4)


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_what_was_found_once(name: str) -> None:
    once = sorted((Path(__file__).parent / "crashes" / name).glob("*"))
    assert len(SEEDS[name]) > 3
    for data in (*SEEDS[name], *(path.read_bytes() for path in once)):
        TARGETS[name].run(data)


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=60, deadline=None)
@given(at=st.integers(0, 10_000), edits=EDITS)
def test_changed_seeds(name: str, at: int, edits: list[tuple[float, int, bytes]]) -> None:
    data = SEEDS[name][at % len(SEEDS[name])]
    for where, cut, put in edits:
        start = int(where * len(data))
        data = data[:start] + put + data[start + cut :]
    TARGETS[name].run(data)


@pytest.mark.slow
@needs_atheris
def test_a_short_search_finds_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.fuzz", "--seconds", "2", "--corpus", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == list(TARGETS)
    assert list(tmp_path.glob("*-found/*")) == []


@needs_atheris
def test_a_broken_promise_is_found_and_kept(tmp_path: Path) -> None:
    """Planted: a reader that cannot bear one byte."""
    plant = (
        "from tests.fuzz import run; t = run.TARGETS; t['tar'] = type(t['tar'])(lambda d: 1 // (d[:1] != b'!'), dict)"
    )
    options = ["-max_total_time=30", f"-artifact_prefix={tmp_path}/"]
    command = [sys.executable, "-c", f"{plant}; run.main()", "tar", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "ZeroDivisionError" in done.stdout + done.stderr
    assert [path.read_bytes()[:1] for path in tmp_path.glob("crash-*")] == [b"!"]
