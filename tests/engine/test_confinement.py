"""What the process that unpacks can do once it is confined, tried from inside: its own tree, and nothing else."""

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from sandbay.domain.errors import Refusal
from sandbay.engine import unpack_calls
from sandbay.engine.limits import Limits
from sandbay.engine.syscalls import numbers
from sandbay.engine.unpack import Unpacker
from sandbay.engine.unpack_child import Order
from tests.support.bpf import ALLOW, KILL, judge
from tests.support.confined import CONTROL, TRIES
from tests.support.tar_entries import file
from tests.support.unpacking import needs_unpacking

pytestmark = needs_unpacking

HOW_IT_ENDS = {
    "write its own tree": "done",
    "read the host's files": "ENOENT",
    "climb to the host": "ENOENT",
    "look at processes": "ENOENT",
    "follow a link": "ELOOP",
    "open a device": "EACCES",
    "take much memory": "MemoryError",
    "open many files": "EMFILE",
    "write a large file": "EFBIG",
    "start a thread": "RuntimeError",
}
"""All else is EPERM: the kernel is not even asked."""


def child_of(unpacker: Unpacker) -> "subprocess.Popen[bytes]":
    assert unpacker._process is not None
    return unpacker._process


def tried(into: Path, mode: str) -> dict[str, str]:
    into.mkdir()
    order = Order(str(into), Limits(unpacked_bytes=1 << 20), None)
    command = [sys.executable, "-m", "tests.support.confined", order.to_json(), mode]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_each_denial_from_inside(tmp_path: Path) -> None:
    found = tried(tmp_path / "t", "ALL")
    assert found == {name: HOW_IT_ENDS.get(name, "EPERM") for name in TRIES}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t"]


def test_the_list_of_calls_is_what_denies_it(tmp_path: Path) -> None:
    """The same tries without it: capabilities alone leave them to root."""
    assert tried(tmp_path / "t", "UNFILTERED") == dict.fromkeys(CONTROL, "done")


def test_processor_time_is_limited(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    with Unpacker(tmp_path / "t", Limits(cpu_seconds=0)) as unpacker:
        for at in range(1_000_000):
            unpacker.feed(file(f"{at}").to_bytes())
            if child_of(unpacker).poll() is not None:
                break
        outcome = unpacker.finish()
    assert isinstance(outcome, Refusal)
    assert (outcome.reason, outcome.details["limit"]) == ("limit_exceeded", "cpu_seconds")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_allows_the_list_of_its_own_architecture_and_no_more(machine: str) -> None:
    program = unpack_calls.program_for(machine)
    assert program is not None
    audit = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
    listed = {numbers(machine)[name] for name in unpack_calls._ALLOWED.split()}
    for number in {*range(1024), *range(0x40000000, 0x40000400), 0xFFFFFFFF}:
        assert judge(program, audit[machine], number) == (ALLOW if number in listed else errno.EPERM)
    other = {judge(program, 0x40000003, number) for number in range(1024)}
    assert other == {KILL}


def test_an_unknown_machine_is_unfit_and_no_image_is_judged(tmp_path: Path) -> None:
    assert unpack_calls.program_for("pdp11") is None
    wrong = "sandbay.engine.unpack_child.program_for = lambda machine: None"
    command = [
        sys.executable,
        "-c",
        f"import sandbay.engine.unpack_child, sys; {wrong}; sandbay.engine.unpack_child.main()",
    ]
    (tmp_path / "t").mkdir()
    order = Order(str(tmp_path / "t"), Limits(), None).to_json()
    done = subprocess.run([*command, order], input=b"", capture_output=True, check=True)
    assert json.loads(done.stdout)["refusal"]["reason"] == "host_unfit"
