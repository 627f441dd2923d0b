"""Publishes: one of an image under way at a time, legal moves only, and a key is used once."""

from dataclasses import replace
from typing import Any

import pytest

from sandbay.domain.ids import PublishId, UploadId
from sandbay.domain.publish import (
    PUBLISH_MOVES,
    UNDER_WAY,
    Base,
    Inputs,
    Publish,
    PublishOrder,
    PublishPhase,
)
from sandbay.ports.changes import AddPublish, ChangePublish, Conflict, ConflictKind
from sandbay.ports.records import Page, Started
from sandbay.ports.store import Publishes, PublishOf, StartedWith, Store
from tests.contracts.store_base import StoreContract
from tests.contracts.store_races_suite import race
from tests.contracts.store_things import FAULT, NOW, later, refuses, release

P = PublishPhase
MISSING, STALE, TAKEN = ConflictKind.MISSING, ConflictKind.STALE, ConflictKind.TAKEN
INPUTS = Inputs("sha256:f", "Containerfile", (Base("image:base", "sha256:b", "base:1", 2),), "linux/amd64", "v1")
ORDER = PublishOrder(UploadId("upl_u"), "web", "Dockerfile", "canary", "a" * 40, rebuild=True)


def publish(name: str = "one", image: str = "web", **changes: Any) -> Publish:
    return replace(Publish(PublishId(f"pub_{name}"), image, ORDER, "ann", NOW), **changes)


def moved(it: Publish, phase: PublishPhase, **changes: Any) -> Publish:
    return replace(it, phase=phase, revision=it.revision + 1, **changes)


class PublishesSuite(StoreContract):
    def test_a_publish_is_found_by_id_image_and_phase(self, store: Store) -> None:
        one, two, other = publish("one"), publish("two"), publish("three", "review")
        for it in (one, two, other):
            store.apply(AddPublish(it))
        assert store.read(PublishOf(one.id)) == one
        assert store.read(PublishOf(PublishId("pub_none"))) is None
        assert store.read(Publishes()) == (other, two, one)
        assert store.read(Publishes("web")) == (two, one)
        assert store.read(Publishes(page=Page(other.id, 1))) == (two,)
        began = moved(two, P.BUILDING)
        store.apply(ChangePublish(began))
        assert store.read(Publishes(phases=frozenset({P.BUILDING, P.DONE}))) == (began,)

    def test_all_that_moves_is_kept(self, store: Store) -> None:
        one = publish()
        store.apply(AddPublish(one))
        began = moved(one, P.BUILDING, attempt=1, inputs=INPUTS, moved_at=later(1))
        found = moved(began, P.CHECKING, release=release().id, built=False, cancelled_by="bob")
        over = moved(found, P.FAILED, fault=FAULT, ended_at=later(2))
        for it in (began, found, over):
            store.apply(ChangePublish(it))
            assert store.read(PublishOf(one.id)) == it

    def test_only_legal_moves(self, store: Store) -> None:
        for before in PublishPhase:
            for after in PublishPhase:
                one = publish(f"{before}_{after}", f"{before}-{after}", phase=before)
                store.apply(AddPublish(one))
                change = ChangePublish(moved(one, after))
                if after is before or after in PUBLISH_MOVES[before]:
                    store.apply(change)
                    continue
                with pytest.raises(Conflict) as caught:
                    store.apply(change)
                assert (caught.value.kind, caught.value.current) == (STALE, before)

    def test_a_publish_moves_by_the_next_revision_only(self, store: Store) -> None:
        one = publish()
        store.apply(AddPublish(one))
        store.apply(ChangePublish(moved(one, P.BUILDING)))
        refused = ChangePublish(moved(one, P.BUILDING))
        with pytest.raises(Conflict) as caught:
            store.apply(refused)
        assert (caught.value.kind, caught.value.current) == (STALE, 2)
        refuses(store, ChangePublish(moved(publish("none"), P.FAILED)), MISSING)

    def test_one_of_an_image_is_under_way(self, store: Store) -> None:
        one, two, other = publish("one"), publish("two"), publish("three", "review")
        store.apply(AddPublish(one), AddPublish(two), AddPublish(other))
        store.apply(ChangePublish(moved(one, P.BUILDING)), ChangePublish(moved(other, P.BUILDING)))
        for phase in sorted(UNDER_WAY):
            refuses(store, ChangePublish(moved(two, phase)), TAKEN, one.id)
        store.apply(ChangePublish(replace(moved(one, P.FAILED), revision=3)))
        store.apply(ChangePublish(moved(two, P.BUILDING)))

    def test_of_many_at_once_one_gets_under_way(self, store: Store) -> None:
        rows = [publish(f"n{number}") for number in range(6)]
        store.apply(*(AddPublish(it) for it in rows))
        outcome = race(store, [(ChangePublish(moved(it, P.BUILDING)),) for it in rows])
        assert sorted(map(str, outcome)) == ["None", *["taken"] * 5]

    def test_a_key_is_used_once(self, store: Store) -> None:
        store.apply(AddPublish(publish("one"), "key", "sha256:body"))
        assert store.read(StartedWith("key")) == Started("sha256:body", publish("one").id)
        assert store.read(StartedWith("other")) is None
        refuses(store, AddPublish(publish("two"), "key", "sha256:body"), TAKEN, publish("one").id)
        store.apply(AddPublish(publish("two")), AddPublish(publish("three")))
        refuses(store, AddPublish(publish("two")), TAKEN)
