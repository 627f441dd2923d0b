"""Initialisation through Core and node: once, in order, told as it goes, and started over when it was cut short."""

import threading
from pathlib import Path
from typing import Any

from sandbay.app.access import find_project
from sandbay.app.admit_session import Asked, admit_session
from sandbay.app.core import Settings
from sandbay.app.sessions import end_session, find_session, progress_of
from sandbay.app.templates import change_template, create_template, drop_template
from sandbay.domain.allocation import AllocationState
from sandbay.domain.declaration import Network
from sandbay.domain.ids import ProjectId
from sandbay.domain.inline import InlineFile
from sandbay.domain.reasons import Reason
from sandbay.domain.session import FINAL, SessionState
from sandbay.domain.setup import OUTPUT_BYTES, SetupProgress
from sandbay.domain.skill import Plugin, Skill
from sandbay.domain.template import SetupCommand
from sandbay.ports.records import SessionRecord
from tests.app.test_crash_anywhere import _active
from tests.app.world import Life, Running, World, eventually
from tests.fakes.memory_provider import NETWORKED, Sandbox


def project(running: Running) -> ProjectId:
    return find_project(running.core, "default").id


def sh(*lines: str) -> tuple[SetupCommand, ...]:
    return tuple(SetupCommand(None, line) for line in lines)


def begun(running: Running, **said: Any) -> SessionRecord:
    """A Session of a Template that says this."""
    running.register("web", "web")
    eventually(lambda: _active(running))
    create_template(running.core, running.actor, project(running), "work", said)
    return admit_session(running.core, running.actor, Asked(template="work", wait_seconds=60)).record


def now(running: Running, record: SessionRecord) -> SessionRecord:
    return find_session(running.core, record.session.id, None)


def settled(running: Running, record: SessionRecord) -> SessionRecord:
    """When it runs or has failed."""
    eventually(lambda: now(running, record).session.state not in (SessionState.WAITING, SessionState.STARTING))
    return now(running, record)


def connected(sandbox: Sandbox) -> bool:
    return b"eth0" in sandbox.files.read("/proc/net/dev").read()


def text(running: Running, path: str) -> str:
    (sandbox,) = running.world.node.sandboxes.values()
    return sandbox.files.read(path).read().decode()


FILES = (InlineFile("a/b.txt", "one", 3), InlineFile("run", "#!", 2, executable=True))
SKILL = Skill("cook", "Cooks.", (), (InlineFile("SKILL.md", "stir", 4), InlineFile("bin/x", "x", 1)))
PLUGIN = Plugin("plug", (InlineFile("plugin.json", "{}", 2),))


def test_what_is_laid_out_lies_there_when_it_runs(running: Running) -> None:
    record = begun(running, files=FILES, skills=(SKILL,), plugins=(PLUGIN,), setup_commands=sh("cat a/b.txt"))
    assert settled(running, record).session.state is SessionState.RUNNING
    laid = {"a/b.txt": "one", ".sandbay/skills/cook/SKILL.md": "stir", ".sandbay/skills/cook/bin/x": "x"}
    for path, data in {**laid, ".sandbay/plugins/plug/plugin.json": "{}"}.items():
        assert text(running, f"/workspace/{path}") == data
    (sandbox,) = running.world.node.sandboxes.values()
    assert [sandbox.files.stat(f"/workspace/{p}").mode & 0o777 for p in ("a/b.txt", "run")] == [0o644, 0o755]
    assert sandbox.order.template_digest == record.session.template_digest


def test_a_session_is_told_how_far_its_setup_is(running: Running) -> None:
    record = begun(running, files=FILES, setup_commands=sh("echo hello; sleep 60"))
    eventually(
        lambda: isinstance(told := progress_of(running.core, now(running, record)), SetupProgress) and told.output
    )
    seen = now(running, record)
    assert progress_of(running.core, seen) == SetupProgress(2, 2, "echo hello; sleep 60", "hello\n")
    assert seen.session.state is SessionState.STARTING
    assert seen.allocation is not None
    assert seen.allocation.state is AllocationState.STARTING
    end_session(running.core, running.actor, record.session.id)
    eventually(lambda: now(running, record).session.state is SessionState.ENDED)
    assert not running.world.node.sandboxes
    assert not running.core.setups


def test_the_first_step_that_fails_fails_the_session_with_its_output(running: Running) -> None:
    record = begun(running, setup_commands=sh("true", "echo one; echo two >&2; exit 7", "touch never"))
    fault = settled(running, record).session.fault
    assert fault is not None
    assert fault.reason is Reason.SETUP_FAILED
    expected = {"exit_code": 7, "step": 2, "steps": 3, "output": "one\ntwo\n"}
    assert expected.items() <= fault.details.items()
    eventually(lambda: not running.world.node.sandboxes)


def test_of_much_output_the_end_is_kept_and_it_is_text(running: Running) -> None:
    record = begun(running, setup_commands=(SetupCommand(None, "head -c 100000 /dev/zero; echo end; exit 1"),))
    fault = settled(running, record).session.fault
    assert fault is not None
    output = fault.details["output"]
    assert isinstance(output, str)
    assert output.endswith("\ufffdend\n")
    assert len(output) == OUTPUT_BYTES


def test_a_tool_that_the_image_lacks_is_named(running: Running) -> None:
    record = begun(running, packages={"npm": ("left",)}, setup_network=Network.DISABLED)
    fault = settled(running, record).session.fault
    assert fault is not None
    assert (fault.reason, fault.details["missing"]) == (Reason.SETUP_FAILED, "npm")


def test_a_setup_has_a_limit(tmp_path: Path) -> None:
    world = World(tmp_path / "w", Settings(setup_seconds=0.3))
    try:
        running = world.born().start()
        fault = settled(running, begun(running, setup_commands=sh("echo on; sleep 60"))).session.fault
        assert fault is not None
        assert (fault.reason, fault.details["seconds"], fault.details["step"]) == (Reason.SETUP_FAILED, 0.3, 1)
    finally:
        world.close()


def test_the_networks_of_a_session(tmp_path: Path) -> None:
    world = World(tmp_path / "w", declaration=NETWORKED)
    try:
        running = world.born().start()
        record = begun(running, setup_network=Network.ENABLED, setup_commands=sh("sleep 60"))
        eventually(lambda: running.core.setups)
        (sandbox,) = world.node.sandboxes.values()
        assert sandbox.order.networks == (Network.ENABLED, Network.DISABLED)
        assert connected(sandbox)
        end_session(running.core, running.actor, record.session.id)
        change_template(
            running.core, running.actor, project(running), "work", {"setup_commands": sh("cat /proc/net/dev")}
        )
        other = admit_session(running.core, running.actor, Asked(template="work", wait_seconds=60)).record
        assert settled(running, other).session.state is SessionState.RUNNING
        eventually(lambda: len(world.node.sandboxes) == 1)
        assert not connected(*world.node.sandboxes.values())
    finally:
        world.close()


def test_editing_and_deleting_the_template_alter_no_setup(running: Running) -> None:
    """Nothing runs yet when the Template goes: what is laid out is what was admitted."""
    running.register("web", "web")
    eventually(lambda: _active(running))
    own = project(running)
    create_template(running.core, running.actor, own, "work", {"files": FILES})
    full = [admit_session(running.core, running.actor, Asked("web")).record for _ in range(2)]
    record = admit_session(running.core, running.actor, Asked(template="work", wait_seconds=60)).record
    assert record.session.state is SessionState.WAITING
    change_template(running.core, running.actor, own, "work", {"files": (InlineFile("a/b.txt", "two", 3),)})
    drop_template(running.core, running.actor, own, "work", None)
    for other in full:
        end_session(running.core, running.actor, other.session.id)
    assert settled(running, record).session.state is SessionState.RUNNING
    eventually(lambda: len(running.world.node.sandboxes) == 1)
    assert text(running, "/workspace/a/b.txt") == "one"


def test_a_setup_that_was_cut_short_starts_over_in_a_fresh_sandbox(world: World) -> None:
    """Killed in its middle: what the first try left is gone, and every step has run once in the sandbox that stays."""
    life = Life()
    dying = world.born(life).start()
    record = begun(dying, setup_commands=sh("touch first; sleep 60"))
    eventually(lambda: dying.core.setups)
    (first,) = world.node.sandboxes.values()
    life.dead.set()
    first.gone.set()  # what runs in a sandbox of this fake dies with its node
    dying.close()
    first.gone = threading.Event()
    running = world.born().start()
    eventually(lambda: running.core.setups and list(world.node.sandboxes.values()) != [first])
    assert now(running, record).session.state is SessionState.STARTING
    end_session(running.core, running.actor, record.session.id)
    eventually(lambda: now(running, record).session.state in FINAL)
    assert not world.node.sandboxes


def test_a_setup_that_is_done_is_never_repeated(world: World) -> None:
    running = world.born().start()
    record = settled(running, begun(running, files=FILES))
    (sandbox,) = world.node.sandboxes.values()
    sandbox.files.write("/workspace/a/b.txt", [b"mine"])
    running.life.dead.set()
    running.close()
    again = world.born().start()
    eventually(lambda: again.core.link.reach(record.allocation.node) is not None if record.allocation else False)
    admit_session(again.core, again.actor, Asked("web", wait_seconds=60))
    eventually(lambda: len(world.node.sandboxes) == 2)
    assert sandbox in world.node.sandboxes.values()
    assert sandbox.files.read("/workspace/a/b.txt").read() == b"mine"
    assert now(again, record).session.state is SessionState.RUNNING
