"""Channels over time: what is read of their history, and promotions, one of a channel at a time."""

from dataclasses import replace

from sandbay.domain.catalog import ChannelMove
from sandbay.domain.ids import PromotionId
from sandbay.domain.promotion import PromotionOutcome
from sandbay.domain.want import Need, Why
from sandbay.ports.changes import AddImage, ConflictKind
from sandbay.ports.channels import (
    AddPromotion,
    ChannelMoves,
    EndPromotion,
    PreviousRelease,
    PromotionOf,
    Promotions,
    WaitingPromotions,
)
from sandbay.ports.records import Page
from sandbay.ports.store import Needs, Store
from tests.contracts.store_base import StoreContract
from tests.contracts.store_catalog_suite import moved
from tests.contracts.store_races_suite import race
from tests.contracts.store_things import (
    FAULT,
    NOW,
    WEB,
    content,
    image,
    later,
    promotion,
    published,
    refuses,
    release,
)

STALE, TAKEN, MISSING = ConflictKind.STALE, ConflictKind.TAKEN, ConflictKind.MISSING
ABORTED = PromotionOutcome.ABORTED

FIRST = ChannelMove(1, None, 1, NOW, "admin", "published")


def line(revision: int, before: int | None, number: int) -> ChannelMove:
    return ChannelMove(revision, before, number, NOW, "admin", "because")


class ChannelsSuite(StoreContract):
    def test_every_move_is_told_newest_first(self, store: Store) -> None:
        assert store.read(ChannelMoves(WEB, "stable")) == (FIRST,)
        store.apply(*published(release(2), "canary"), moved(2, 1), moved(1, 2))
        moves = store.read(ChannelMoves(WEB, "stable"))
        assert moves == (line(3, 2, 1), line(2, 1, 2), FIRST)
        assert store.read(ChannelMoves(WEB, "stable", limit=2)) == moves[:2]
        assert store.read(ChannelMoves(WEB, "stable", before=2)) == moves[2:]
        assert store.read(ChannelMoves(WEB, "none")) == ()

    def test_histories_are_each_channels_own(self, store: Store) -> None:
        store.apply(AddImage(image("cad"), 10), *published(release(of="cad")), *published(release(2), "canary"))
        assert [it.number for it in store.read(ChannelMoves(WEB, "canary"))] == [2]
        assert [it.number for it in store.read(ChannelMoves(WEB, "stable"))] == [1]

    def test_what_was_before_is_what_it_pointed_at_last(self, store: Store) -> None:
        def previous() -> int | None:
            return store.read(PreviousRelease(WEB, "stable"))

        assert previous() is None
        store.apply(*published(release(2), "canary"), *published(release(3), "canary"))
        assert previous() is None, "another channel's"
        store.apply(moved(2, 1))
        assert previous() == 1
        store.apply(moved(2, 2))
        assert previous() == 1, "it has moved nowhere"
        store.apply(moved(3, 3))
        assert previous() == 2
        store.apply(moved(2, 4))
        assert previous() == 3

    def test_a_promotion_waits_until_it_has_an_outcome(self, store: Store) -> None:
        store.apply(*published(release(2), "canary"))
        one, other = promotion(number=2), promotion("two", 2, channel="canary", before=2, nodes=None, force=True)
        store.apply(AddPromotion(one), AddPromotion(other))
        assert store.read(PromotionOf(one.id)) == one
        assert store.read(PromotionOf(PromotionId("prm_none"))) is None
        assert store.read(WaitingPromotions()) == (one, other)
        assert store.read(Promotions(WEB)) == (other, one)
        assert store.read(Promotions(WEB, Page(other.id, 1))) == (one,)
        store.apply(EndPromotion(one.id, PromotionOutcome.FAILED, later(1), "system", FAULT))
        ended = replace(one, outcome=PromotionOutcome.FAILED, fault=FAULT, ended_at=later(1), ended_by="system")
        assert store.read(PromotionOf(one.id)) == ended
        assert store.read(WaitingPromotions()) == (other,)
        refuses(store, EndPromotion(one.id, ABORTED, NOW, "ann"), STALE, PromotionOutcome.FAILED)
        refuses(store, EndPromotion(PromotionId("prm_none"), ABORTED, NOW, "ann"), MISSING)

    def test_a_channel_has_one_that_waits(self, store: Store) -> None:
        store.apply(*published(release(2), "canary"), AddPromotion(promotion(number=2)))
        refuses(store, AddPromotion(promotion("two", 2)), TAKEN, "prm_one")
        store.apply(AddPromotion(promotion("new", 2, channel="new", before=None, expected=0)))
        store.apply(EndPromotion(promotion().id, ABORTED, NOW, "ann"), AddPromotion(promotion("two", 2)))

    def test_it_relies_on_the_channel_and_the_release_that_were_seen(self, store: Store) -> None:
        refuses(store, AddPromotion(promotion(expected=0)), STALE, 1)
        refuses(store, AddPromotion(promotion(expected=2)), STALE, 1)
        refuses(store, AddPromotion(promotion(channel="new", expected=1)), STALE, 0)
        refuses(store, AddPromotion(promotion(number=9)), MISSING)

    def test_two_at_once_are_one(self, store: Store) -> None:
        tries = [(AddPromotion(promotion(name)),) for name in ("one", "two", "three")]
        assert sorted(map(str, race(store, tries))) == ["None", "taken", "taken"]
        assert len(store.read(WaitingPromotions())) == 1

    def test_what_waits_to_be_promoted_is_required(self, store: Store) -> None:
        store.apply(*published(release(2), "canary"))
        needs = [Need(content("web1"), Why.REQUIRED)]
        assert list(store.read(Needs())) == needs
        store.apply(AddPromotion(promotion(number=2)))
        assert list(store.read(Needs())) == [*needs, Need(content("web2"), Why.REQUIRED)]
        store.apply(EndPromotion(promotion().id, ABORTED, NOW, "ann"))
        assert list(store.read(Needs())) == needs
