"""Publishing, from the order to the release: what is built, what is not, in which order, and how it ends."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbay.app.core import SYSTEM, Settings
from sandbay.app.images import find_image
from sandbay.app.publish import Plan, cancel, find, plan, read_log, start
from sandbay.app.uploads import receive
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import UploadId
from sandbay.domain.publish import FINISHED, Publish, PublishOrder, PublishPhase
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ReleaseState
from tests.app.world import Running, World, eventually
from tests.support.contexts import packed, plain, recipe

P = PublishPhase


def upload(running: Running, context: bytes) -> UploadId:
    return receive(running.core, SYSTEM, [context]).id


def begin(running: Running, context: bytes, key: str | None = None, **asked: Any) -> Publish:
    order = PublishOrder(upload(running, context), **asked)
    return start(running.core, SYSTEM, order, key).publish


def end(running: Running, publish: Publish) -> Publish:
    eventually(lambda: find(running.core, publish.id).phase in FINISHED)
    return find(running.core, publish.id)


def published(running: Running, context: bytes, **asked: Any) -> Publish:
    ended = end(running, begin(running, context, **asked))
    assert ended.phase is P.DONE, ended.fault
    return ended


def refused(running: Running, context: bytes, **asked: Any) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        begin(running, context, **asked)
    return caught.value


@pytest.fixture
def base(running: Running) -> Running:
    """An installation with an image `base`, which is a healthy default beside whatever a test does."""
    published(running, recipe("base", "bootstrap:debian:12"))
    return running


def layers(running: Running, name: str, number: int = 1) -> tuple[str, ...]:
    (variant,) = find_image(running.core, name).releases[number].release.variants
    return tuple(layer.digest for layer in variant.layers)


def phase(running: Running, publish: Publish) -> PublishPhase:
    return find(running.core, publish.id).phase


def test_a_folder_becomes_an_active_release_on_its_base(base: Running) -> None:
    ended = published(base, recipe("web", "image:base", ["COPY which /which"], which="web"), source_commit="a" * 40)
    entry = find_image(base.core, "web")
    held = entry.releases[1]
    assert (ended.release, ended.built, held.status.state) == (held.release.id, True, ReleaseState.ACTIVE)
    assert held.release.source_commit == "a" * 40
    assert entry.channels["stable"].number == 1
    assert layers(base, "web")[:-1] == layers(base, "base")
    assert ended.inputs is not None
    assert [(it.text, it.release) for it in ended.inputs.bases] == [("image:base", "base:1")]


def test_images_on_one_base_share_its_layers(base: Running) -> None:
    names = ("review", "web", "design", "commercial")
    for name in names:
        published(base, recipe(name, "image:base", ["COPY which /which"], which=name))
    tops = {layers(base, name)[len(layers(base, "base")) :] for name in names}
    assert {layers(base, name)[: len(layers(base, "base"))] for name in names} == {layers(base, "base")}
    assert len(tops) == len(names)


def test_unchanged_inputs_are_answered_not_built(base: Running) -> None:
    context = recipe("web", "image:base", ["COPY which /which"], which="web")
    first = published(base, context)
    built = base.world.builder.built
    again = published(base, context)
    assert (again.release, again.built, base.world.builder.built) == (first.release, False, built)
    assert sorted(find_image(base.core, "web").releases) == [1]


def test_a_changed_file_is_another_release(base: Running) -> None:
    published(base, recipe("web", "image:base", ["COPY which /which"], which="one"))
    published(base, recipe("web", "image:base", ["COPY which /which"], which="two"))
    entry = find_image(base.core, "web")
    assert (sorted(entry.releases), entry.channels["stable"].number) == ([1, 2], 1)


def test_a_new_release_of_the_base_makes_the_same_folder_another_image(base: Running) -> None:
    context = recipe("web", "image:base", ["COPY which /which"], which="web")
    published(base, context)
    published(base, recipe("base", "bootstrap:debian:12", ["COPY more /more"], more="x"), promote="stable")
    assert published(base, context).built
    assert layers(base, "web", 2)[:-1] == layers(base, "base", 2)


def test_promotion_waits_for_the_proof_and_moves_what_was_asked(base: Running) -> None:
    published(base, recipe("web", "image:base", ["COPY which /which"], which="one"))
    published(base, recipe("web", "image:base", ["COPY which /which"], which="two"), promote="canary")
    channels = {name: it.number for name, it in find_image(base.core, "web").channels.items()}
    assert channels == {"stable": 1, "canary": 2}
    published(base, recipe("web", "image:base", ["COPY which /which"], which="one"), promote="canary")
    assert find_image(base.core, "web").channels["canary"].number == 1


def test_description_and_labels_follow_the_recipe(base: Running) -> None:
    def context(said: str) -> bytes:
        toml = f'name = "web"\nbase = "image:base"\ndescription = "{said}"\nlabels = {{ for = "{said}" }}\n'
        return packed({"image.toml": toml, "Containerfile": "ARG BASE\nFROM ${BASE}\nCOPY image.toml /x\n"})

    for said in ("one", "two"):
        published(base, context(said))
        image = find_image(base.core, "web").image
        assert (image.description, dict(image.labels)) == (said, {"for": said})


def test_a_plain_dockerfile_is_published_under_a_name(base: Running) -> None:
    context = plain(["FROM image:base:1 AS low", "FROM scratch", "COPY which /which"], which="x")
    published(base, context, dockerfile="Dockerfile", name="plain")
    assert len(layers(base, "plain")) == 1


def test_a_failed_step_is_the_end_and_leaves_no_release(base: Running) -> None:
    ended = end(base, begin(base, recipe("web", "image:base", ["RUN exit 3"])))
    assert ended.phase is P.FAILED
    assert ended.fault is not None
    assert (ended.fault.reason, ended.fault.details["exit_code"]) == (Reason.BUILD_FAILED, 3)
    assert b"this is what the step said" in read_log(base.core, ended.id, 0, 1000)
    with pytest.raises(RefusedError):
        find_image(base.core, "web")
    published(base, recipe("web", "image:base", ["COPY which /which"], which="x"))


@pytest.mark.parametrize(
    "context, asked, reason, param",
    [
        (recipe("web", "image:none"), {}, Reason.IMAGE_UNKNOWN, "base"),
        (recipe("web", "image:base:9"), {}, Reason.RELEASE_UNKNOWN, "base"),
        (recipe("web", "image:base:canary"), {}, Reason.CHANNEL_UNKNOWN, "base"),
        (recipe("web", "dir:/etc"), {}, Reason.INVALID_BODY, "image.toml.base"),
        (plain(["FROM dir:/etc"]), {"dockerfile": "Dockerfile", "name": "web"}, Reason.INVALID_REFERENCE, "base"),
        (plain(["FROM image:none"]), {"dockerfile": "Dockerfile", "name": "web"}, Reason.IMAGE_UNKNOWN, "base"),
        (plain(["FROM scratch"]), {"dockerfile": "../Dockerfile", "name": "web"}, Reason.INVALID_BODY, "dockerfile"),
        (plain(["FROM scratch"]), {"dockerfile": "Dockerfile"}, Reason.INVALID_BODY, "name"),
        (plain(["FROM scratch"]), {"name": "web"}, Reason.INVALID_BODY, "name"),
        (plain(["FROM scratch"]), {"dockerfile": "Dockerfile", "name": "W"}, Reason.INVALID_BODY, "name"),
        (plain(["FROM scratch"]), {}, Reason.INVALID_BODY, "image.toml"),
        (recipe("web", "image:base"), {"promote": "7"}, Reason.INVALID_BODY, "promote"),
        (recipe("web", "image:base", ["FROM scratch"]), {}, Reason.INVALID_BODY, "containerfile"),
    ],
)
def test_what_cannot_be_published_is_refused_at_once(
    base: Running, context: bytes, asked: dict[str, Any], reason: Reason, param: str
) -> None:
    refusal = refused(base, context, **asked).refusal
    assert (refusal.reason, refusal.param) == (reason, param)


def test_an_upload_that_is_not_there(base: Running) -> None:
    with pytest.raises(RefusedError) as caught:
        start(base.core, SYSTEM, PublishOrder(UploadId("upl_00000000000000000000")), None)
    assert (caught.value.refusal.reason, caught.value.refusal.param) == (Reason.NOT_FOUND, "upload")


def test_one_key_is_one_publish(base: Running) -> None:
    order = PublishOrder(upload(base, recipe("web", "image:base")))
    first, again = (start(base.core, SYSTEM, order, "key") for _ in range(2))
    assert (first.created, again.created, first.publish.id) == (True, False, again.publish.id)
    with pytest.raises(RefusedError) as caught:
        start(base.core, SYSTEM, PublishOrder(order.upload, promote="canary"), "key")
    assert caught.value.refusal.reason is Reason.IDEMPOTENCY_CONFLICT


def planned(running: Running, context: bytes, **asked: Any) -> Plan:
    return plan(running.core, PublishOrder(upload(running, context), **asked))


def test_a_plan_says_what_would_happen_and_writes_nothing(base: Running) -> None:
    context = recipe("web", "image:base", ["COPY which /which"], which="web")
    before = planned(base, context)
    assert before.rebuild is not None
    assert (before.rebuild.release, before.release) == (None, None)
    assert [it.release for it in before.bases] == ["base:1"]
    assert tuple(layer.digest for layer in before.shared) == layers(base, "base")
    with pytest.raises(RefusedError):
        find_image(base.core, "web")
    published(base, context)
    after = planned(base, context)
    assert after.rebuild is not None
    assert (after.release, after.rebuild.why.split(":")[0]) == ("web:1", "unchanged")


@pytest.fixture
def held(base: Running) -> Iterator[Running]:
    """Builds begin and do not end before the gate is opened."""
    base.world.builder.gate.clear()
    yield base
    base.world.builder.gate.set()


def test_two_of_one_image_queue(held: Running) -> None:
    first = begin(held, recipe("web", "image:base", ["COPY which /which"], which="1"))
    eventually(lambda: phase(held, first) is P.BUILDING)
    second = begin(held, recipe("web", "image:base", ["COPY which /which"], which="2"))
    other = begin(held, recipe("review", "image:base", ["COPY which /which"], which="3"))
    eventually(lambda: phase(held, other) is P.BUILDING)
    assert phase(held, second) is P.QUEUED
    held.world.builder.gate.set()
    assert [end(held, it).phase for it in (first, second, other)] == [P.DONE] * 3
    assert layers(held, "web", 1) != layers(held, "web", 2)
    assert find(held.core, second.id).release == find_image(held.core, "web").releases[2].release.id


def test_only_so_many_images_are_built_at_once(held: Running) -> None:
    names = ("one", "two", "three", "four")
    begun = [begin(held, recipe(name, "image:base", ["COPY which /which"], which=name)) for name in names]
    eventually(lambda: held.world.builder.at_once == 2)
    held.world.builder.gate.set()
    assert [end(held, it).phase for it in begun] == [P.DONE] * 4
    assert held.world.builder.most_at_once == Settings().builds == 2


def test_cancelled_in_the_queue_and_while_building(held: Running) -> None:
    first = begin(held, recipe("web", "image:base", ["COPY which /which"], which="1"))
    eventually(lambda: phase(held, first) is P.BUILDING)
    second = begin(held, recipe("web", "image:base", ["COPY which /which"], which="2"))
    assert cancel(held.core, SYSTEM, second.id).phase is P.CANCELLED
    cancel(held.core, SYSTEM, first.id)
    ended = end(held, first)
    assert ended.phase is P.CANCELLED
    assert ended.fault is not None
    assert ended.fault.reason is Reason.CANCELLED
    assert cancel(held.core, SYSTEM, first.id).phase is P.CANCELLED
    eventually(lambda: held.world.builder.at_once == 0)


def test_what_is_done_is_not_cancelled(base: Running) -> None:
    done = published(base, recipe("web", "image:base"))
    with pytest.raises(RefusedError) as caught:
        cancel(base.core, SYSTEM, done.id)
    assert caught.value.refusal.reason is Reason.ALREADY_ENDED


def test_a_core_that_stops_leaves_its_builds_to_the_next(held: Running) -> None:
    publish = begin(held, recipe("web", "image:base", ["COPY which /which"], which="x"))
    eventually(lambda: phase(held, publish) is P.BUILDING)
    held.close()
    assert phase(held, publish) is P.BUILDING
    held.world.builder.gate.set()
    after = held.world.born().start()
    ended = end(after, publish)
    assert (ended.phase, ended.attempt) == (P.DONE, 2)


def test_a_publish_that_ends_core_again_and_again_fails(held: Running) -> None:
    publish = begin(held, recipe("web", "image:base", ["COPY which /which"], which="x"))
    lives = [held]
    for attempt in (1, 2, 3):
        eventually(lambda n=attempt: find(held.core, publish.id).attempt == n)  # type: ignore[misc]
        lives[-1].close()
        lives.append(held.world.born().start())
    ended = end(lives[-1], publish)
    assert ended.fault is not None
    assert (ended.phase, ended.fault.reason) == (P.FAILED, Reason.BUILD_FAILED)


def test_without_a_pool_that_could_prove_it(tmp_path: Path) -> None:
    world = World(tmp_path / "alone")
    try:
        running = world.born().start(node=False)
        ended = end(running, begin(running, recipe("base", "bootstrap:debian:12")))
        assert ended.fault is not None
        assert (ended.phase, ended.fault.reason) == (P.FAILED, Reason.IMAGE_UNSUPPORTED)
        assert ended.fault.details["release"] == "base:1"
    finally:
        world.close()


def test_what_another_core_received_is_left_to_it(base: Running) -> None:
    order = PublishOrder(upload(base, recipe("web", "image:base")))
    base.world.builder.gate.clear()
    blocked = begin(base, recipe("one", "image:base")), begin(base, recipe("two", "image:base"))
    eventually(lambda: base.world.builder.at_once == 2)
    theirs = start(base.core, SYSTEM, order, None).publish
    base.core.uploads.remove(order.upload)
    base.world.builder.gate.set()
    for it in blocked:
        end(base, it)
    assert phase(base, theirs) is P.QUEUED
