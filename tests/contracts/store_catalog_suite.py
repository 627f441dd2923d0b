"""Images, releases, channels: what is read, and what each write relies on."""

from dataclasses import replace

import pytest

from sandbay.domain.catalog import Channel, ImageEntry, ImageState, ReleaseEntry
from sandbay.domain.ids import ImageId, ReleaseId
from sandbay.domain.release import ReleaseState, ReleaseStatus
from sandbay.ports.changes import AddImage, AddRelease, ChangeImage, ConflictKind, MoveChannel, MoveRelease
from sandbay.ports.records import KnownVariant
from sandbay.ports.store import CatalogOf, Images, Store, VariantsOf
from tests.contracts.store_base import StoreContract
from tests.contracts.store_things import (
    ACTIVE,
    AMD,
    ARM,
    FAULT,
    NOW,
    PENDING,
    WEB,
    content,
    image,
    published,
    refuses,
    release,
    variant,
)

STALE, TAKEN, LIMIT, MISSING = ConflictKind.STALE, ConflictKind.TAKEN, ConflictKind.LIMIT, ConflictKind.MISSING
STATUS = ReleaseStatus(ReleaseState.ACTIVE, None, None, 2)


def moved(number: int, expected: int | None, channel: str = "stable") -> MoveChannel:
    return MoveChannel(WEB, channel, number, expected, NOW, "admin", "because")


class CatalogSuite(StoreContract):
    def test_an_image_is_read_back_whole(self, store: Store) -> None:
        two = release(2, variant("x", AMD), variant("y", ARM))
        store.apply(AddRelease(two, NOW, 50, promote="canary"))
        expected = ImageEntry(
            image(),
            {
                1: ReleaseEntry(release(), STATUS),
                2: ReleaseEntry(two, ReleaseStatus(ReleaseState.PENDING, None, "canary", 1)),
            },
            {"stable": Channel(WEB, "stable", 1, 1)},
        )
        assert store.read(Images()) == (expected,)
        assert store.read(CatalogOf(frozenset({"web"}))).entries == (expected,)

    @pytest.mark.parametrize(
        "names,releases,found",
        [
            (set(), set(), []),
            ({"web"}, set(), ["web"]),
            ({"img_web"}, set(), ["web"]),
            ({"img_web", "web"}, {"rel_web1"}, ["web"]),
            (set(), {"rel_cad1"}, ["cad"]),
            ({"empty"}, {"rel_web1"}, ["empty", "web"]),
            ({"unknown", "stable", ""}, {"rel_none"}, []),
        ],
    )
    def test_the_catalog_holds_what_names_and_ids_can_mean(
        self, store: Store, names: set[str], releases: set[ReleaseId], found: list[str]
    ) -> None:
        store.apply(AddImage(image("cad"), 10), *published(release(of="cad")), AddImage(image("empty"), 10))
        view = store.read(CatalogOf(frozenset(names), frozenset(releases)))
        assert [entry.image.name for entry in view.entries] == found
        assert all(entry == next(e for e in store.read(Images()) if e.image == entry.image) for entry in view.entries)

    def test_variants_by_content_and_all_that_are_not_rejected(self, store: Store) -> None:
        store.apply(
            AddImage(image("cad"), 10),
            AddRelease(release(1, variant("web1"), variant("b", ARM), of="cad"), NOW, 50),
            AddRelease(release(2, variant("bad")), NOW, 50),
            MoveRelease(ReleaseId("rel_web2"), PENDING, ReleaseState.REJECTED, FAULT),
        )
        cad, web = ImageId("img_cad"), WEB
        pending, active, rejected = ReleaseState.PENDING, ReleaseState.ACTIVE, ReleaseState.REJECTED
        rows = [
            KnownVariant(cad, "cad", ReleaseId("rel_cad1"), 1, pending, variant("web1")),
            KnownVariant(cad, "cad", ReleaseId("rel_cad1"), 1, pending, variant("b", ARM)),
            KnownVariant(web, "web", ReleaseId("rel_web1"), 1, active, variant("web1")),
            KnownVariant(web, "web", ReleaseId("rel_web2"), 2, rejected, variant("bad")),
        ]
        assert list(store.read(VariantsOf())) == rows[:3]
        assert list(store.read(VariantsOf(frozenset({content("web1")})))) == [rows[0], rows[2]]
        assert list(store.read(VariantsOf(frozenset({content("bad"), content("none")})))) == rows[3:]
        assert list(store.read(VariantsOf(frozenset()))) == []

    def test_a_name_is_used_once(self, store: Store) -> None:
        refuses(store, AddImage(image(), 10), TAKEN, "img_web")
        refuses(store, AddImage(replace(image(), id=ImageId("img_other")), 10), TAKEN, "img_web")
        refuses(store, AddImage(replace(image(), name="other"), 10), TAKEN)

    def test_images_are_limited(self, store: Store) -> None:
        refuses(store, AddImage(image("cad"), 1), LIMIT, 1)
        store.apply(AddImage(image("cad"), 2))

    def test_an_image_changes_by_the_next_revision_only(self, store: Store) -> None:
        changed = replace(image(), description="", labels={}, state=ImageState.RETIRED, revision=2)
        store.apply(ChangeImage(changed))
        assert store.read(Images())[0].image == changed
        for stale in (1, 2, 4):
            refuses(store, ChangeImage(replace(changed, revision=stale)), STALE, 2)
        refuses(store, ChangeImage(replace(image("none"), revision=2)), MISSING)

    def test_name_and_birth_of_an_image_stay(self, store: Store) -> None:
        store.apply(ChangeImage(replace(image(), name="renamed", created_at=NOW.replace(year=1999), revision=2)))
        assert store.read(Images())[0].image == replace(image(), revision=2)

    def test_a_release_has_the_next_number(self, store: Store) -> None:
        for number in (0, 1, 3):
            refuses(store, AddRelease(release(number, variant("new")), NOW, 50), STALE, 1)
        refuses(store, AddRelease(release(of="none"), NOW, 50), MISSING)
        store.apply(AddImage(image("cad"), 10))
        refuses(store, AddRelease(release(2, of="cad"), NOW, 50), STALE, 0)

    def test_identical_content_is_the_release_that_is_there(self, store: Store) -> None:
        both = (variant("x", AMD), variant("y", ARM))
        store.apply(AddRelease(release(2, *both), NOW, 50))
        again = replace(release(3, *reversed(both)), source_commit=None)
        refuses(store, AddRelease(again, NOW, 50), TAKEN, "rel_web2")
        refuses(store, AddRelease(release(1), NOW, 50), TAKEN, "rel_web1")
        store.apply(AddRelease(release(3, both[0]), NOW, 50), AddImage(image("cad"), 10))
        store.apply(AddRelease(release(1, *both, of="cad"), NOW, 50))

    def test_rejected_content_is_not_taken_again(self, store: Store) -> None:
        store.apply(
            AddRelease(release(2, variant("bad")), NOW, 50),
            MoveRelease(ReleaseId("rel_web2"), PENDING, ReleaseState.REJECTED, FAULT),
        )
        refuses(store, AddRelease(release(3, variant("bad")), NOW, 50), TAKEN, "rel_web2")

    def test_releases_are_limited(self, store: Store) -> None:
        refuses(store, AddRelease(release(2), NOW, 1), LIMIT, 1)

    def test_a_release_moves_from_where_it_was_seen(self, store: Store) -> None:
        store.apply(AddRelease(release(2), NOW, 50, promote="canary"))
        two = ReleaseId("rel_web2")
        refuses(store, MoveRelease(two, ACTIVE, ReleaseState.RETIRED), STALE, ReleaseState.PENDING)
        store.apply(MoveRelease(two, PENDING | ACTIVE, ReleaseState.REJECTED, FAULT))
        status = store.read(Images())[0].releases[2].status
        assert status == ReleaseStatus(ReleaseState.REJECTED, FAULT, "canary", 2)
        refuses(store, MoveRelease(two, PENDING, ReleaseState.REJECTED, FAULT), STALE, ReleaseState.REJECTED)
        refuses(store, MoveRelease(ReleaseId("rel_none"), PENDING, ReleaseState.ACTIVE), MISSING)

    @pytest.mark.parametrize("to", [ReleaseState.RETIRED, ReleaseState.REJECTED])
    def test_what_a_channel_points_at_stays_usable(self, store: Store, to: ReleaseState) -> None:
        refuses(store, MoveRelease(release().id, ACTIVE, to), ConflictKind.IN_USE, "stable")
        store.apply(*published(release(2)), MoveRelease(release().id, ACTIVE, to))

    def test_a_channel_appears_and_moves_by_revision(self, store: Store) -> None:
        store.apply(*published(release(2), "canary"))
        refuses(store, moved(2, 0), STALE, 1)
        refuses(store, moved(2, 2), STALE, 1)
        refuses(store, moved(2, 1, "new"), STALE, 0)
        store.apply(moved(2, 1), moved(2, 0, "new"))
        refuses(store, moved(1, 1), STALE, 2)
        store.apply(moved(1, None))
        channels = store.read(Images())[0].channels
        assert {name: (it.number, it.revision) for name, it in channels.items()} == {
            "canary": (2, 1),
            "new": (2, 1),
            "stable": (1, 3),
        }

    def test_a_channel_points_at_active_releases_only(self, store: Store) -> None:
        store.apply(AddRelease(release(2), NOW, 50))
        refuses(store, moved(2, 1), STALE, ReleaseState.PENDING)
        for state in (ReleaseState.DEPRECATED, ReleaseState.RETIRED):
            now = store.read(Images())[0].releases[2].status.state
            store.apply(MoveRelease(ReleaseId("rel_web2"), frozenset({now}), state))
            refuses(store, moved(2, None), STALE, state)
        refuses(store, moved(3, 1), MISSING)
