"""Channels over time: what is read of their history."""

from sandbay.domain.catalog import ChannelMove
from sandbay.ports.changes import AddImage
from sandbay.ports.channels import ChannelMoves, PreviousRelease
from sandbay.ports.store import Store
from tests.contracts.store_base import StoreContract
from tests.contracts.store_catalog_suite import moved
from tests.contracts.store_things import NOW, WEB, image, published, release

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
