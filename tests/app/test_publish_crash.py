"""Kill -9 before and after every durable step of a publish, and each such step failing once."""

from pathlib import Path

import pytest

from sandbay.app.core import SYSTEM
from sandbay.app.images import find_image
from sandbay.app.publish import find, list_publishes, start
from sandbay.app.uploads import receive
from sandbay.domain.errors import RefusedError
from sandbay.domain.publish import FINISHED, PublishOrder, PublishPhase
from sandbay.ports.records import Page
from tests.app.world import KilledError, Life, Running, Stumble, StumbleError, World, eventually
from tests.support.contexts import recipe

KEY = "the-only-publish"
CONTEXT = recipe("web", "bootstrap:debian:12", ["COPY which /which"], which="web")


def story(running: Running) -> None:
    """What a client does who repeats each call until it is answered."""
    running.start()
    work(running)


def work(running: Running) -> None:
    core = running.core
    upload = running.world.root / "upload"
    if not upload.exists():
        upload.write_text(receive(core, SYSTEM, [CONTEXT]).id)
    order = PublishOrder(upload.read_text(), promote="canary")  # type: ignore[arg-type]
    publish = start(core, SYSTEM, order, KEY).publish
    eventually(lambda: _alive(running) and find(core, publish.id).phase in FINISHED)


def _alive(running: Running) -> bool:
    if running.life.dead.is_set():
        raise KilledError
    return True


def steps(root: Path) -> range:
    """Which durable steps of an undisturbed story are a publish's; those of the start are tested elsewhere."""
    world, life = World(root), Life()
    running = world.born(life).start()
    begun = life.steps
    work(running)
    judge(running)
    world.close()
    assert life.steps - begun > 8, "the story no longer reaches what it is about"
    return range(begun + 1, life.steps + 1)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("after", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["before", "after"])
def test_a_kill_at_any_step_is_made_good(tmp_path: Path, *, after: bool) -> None:
    for step in steps(tmp_path / "undisturbed"):
        life = Life(step, after=after)
        world = World(tmp_path / str(step))
        try:
            dying = world.born(life)
            try:
                story(dying)
            except KilledError:
                pass
            except (RefusedError, LookupError):
                assert life.dead.is_set(), "refused, although nobody died"
            life.dead.set()
            dying.close()
            running = world.born()
            story(running)
            judge(running)
        finally:
            world.close()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_step_that_fails_once_is_made_good_or_fails_cleanly(tmp_path: Path) -> None:
    """A publish may end by a fault of ours; it is never stuck, and the next one is whole."""
    for step in steps(tmp_path / "undisturbed"):
        world = World(tmp_path / str(step))
        try:
            running = world.born(Stumble(step))
            try:
                running.start()
            except StumbleError:
                running = world.born().start()
            for _ in range(2):
                try:
                    work(running)
                    break
                except StumbleError:
                    continue
            ended = list_publishes(running.core, None, Page())[0]
            assert ended.phase in FINISHED
            if ended.phase is PublishPhase.DONE:
                judge(running)
            else:
                entries = [find_image(running.core, "web")] if ended.release else []
                assert all("canary" not in entry.channels for entry in entries)
        finally:
            world.close()


def judge(running: Running) -> None:
    """One publish that is done, one image, one release, one pointer where it was asked for; nothing half made."""
    (publish,) = list_publishes(running.core, None, Page())
    assert publish.phase is PublishPhase.DONE, publish.fault
    entry = find_image(running.core, "web")
    assert sorted(entry.releases) == [1]
    assert {name: it.number for name, it in entry.channels.items()} == {"stable": 1, "canary": 1}
    eventually(lambda: not list((running.world.root / "builds").iterdir()))
