"""Scopes, bindings, allow-lists, overrides, grants; and what keys are held to."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from sandbay.domain.binding import Binding, Mode
from sandbay.domain.ceiling import NOTHING_STANDS, AllowListAt, Grant, Override, OverrideAt, Standing, Tier
from sandbay.domain.ids import ImageId, ProjectId
from sandbay.domain.path import DEPLOYMENT, Subject
from sandbay.domain.scope import DEEPEST, Confinement
from sandbay.ports.changes import AddImage, AddKey, AddProject, ChangeImage, ConflictKind, RevokeKey
from sandbay.ports.records import Page
from sandbay.ports.standing import (
    DropScope,
    DropStanding,
    LineageOf,
    PutScope,
    PutStanding,
    RowsOf,
    Scopes,
    Standard,
    StandingOf,
    key_of,
)
from sandbay.ports.store import Images, KeyOf, SessionOf, Store
from tests.contracts.store_base import StoreContract
from tests.contracts.store_things import (
    AGENT,
    PROJECT,
    STANDING,
    TEAM,
    WEB,
    admitted,
    image,
    key,
    later,
    project,
    refuses,
    scope,
    written,
)

STALE, TAKEN, MISSING, IN_USE = ConflictKind.STALE, ConflictKind.TAKEN, ConflictKind.MISSING, ConflictKind.IN_USE
OTHER = ProjectId("prj_other")
rows = pytest.mark.parametrize("row", STANDING, ids=lambda row: f"{type(row).__name__}-{row.subject.level}")


def tree(store: Store) -> None:
    """org:a ◀ team:one ◀ room:x, which are for all, and org:a ◀ team:two ◀ room:y, which are a project's."""
    store.apply(
        PutScope(scope("org:a")),
        PutScope(scope("team:one", "org:a")),
        PutScope(scope("room:x", "team:one")),
        PutScope(scope("team:two", "org:a", PROJECT)),
        PutScope(scope("room:y", "team:two", PROJECT)),
    )


def names(found: Sequence[Any]) -> list[str]:
    return [it.name for it in found]


class StandingSuite(StoreContract):
    def test_a_lineage_is_a_scope_and_its_parents(self, store: Store) -> None:
        tree(store)
        assert store.read(LineageOf("room:y")) == (
            scope("room:y", "team:two", PROJECT),
            scope("team:two", "org:a", PROJECT),
            scope("org:a"),
        )
        assert names(store.read(LineageOf("org:a"))) == ["org:a"]
        assert store.read(LineageOf("room:z")) == ()

    def test_a_project_sees_its_own_scopes_and_those_for_all(self, store: Store) -> None:
        tree(store)
        store.apply(AddProject(project("other")), PutScope(scope("team:theirs", "org:a", OTHER)))
        assert names(store.read(Scopes())) == ["org:a", "room:x", "room:y", "team:one", "team:theirs", "team:two"]
        assert names(store.read(Scopes(OTHER))) == ["org:a", "room:x", "team:one", "team:theirs"]
        assert names(store.read(Scopes(below="team:two"))) == ["room:y", "team:two"]
        assert names(store.read(Scopes(OTHER, below="team:two"))) == []
        assert names(store.read(Scopes(page=Page("room:x", 2)))) == ["room:y", "team:one"]

    def test_a_scope_is_moved_at_the_revision_that_was_seen(self, store: Store) -> None:
        tree(store)
        moved = scope("room:y", "team:one", PROJECT, 2)
        store.apply(PutScope(moved))
        assert names(store.read(LineageOf("room:y"))) == ["room:y", "team:one", "org:a"]
        refuses(store, PutScope(moved), STALE, 2)
        refuses(store, PutScope(scope("room:y")), TAKEN, "room:y")
        refuses(store, PutScope(scope("room:new", revision=2)), STALE, 0)
        store.apply(PutScope(scope("room:y", None, PROJECT, 3)))
        assert names(store.read(LineageOf("room:y"))) == ["room:y"]

    def test_no_scope_stands_below_itself_or_outside_its_project_or_below_nothing(self, store: Store) -> None:
        tree(store)
        for wrong, why in (
            (scope("org:a", "org:a", revision=2), "org:a would stand below itself"),
            (scope("org:a", "room:x", revision=2), "org:a would stand below itself"),
            (scope("room:z", "room:none"), "there is no scope room:none"),
            (scope("room:z", "team:two"), "team:two belongs to a project, so what stands below it does, too"),
        ):
            refuses(store, PutScope(wrong), IN_USE, why)

    def test_a_path_is_no_deeper_than_it_may_be(self, store: Store) -> None:
        chain = [scope(f"s:{n}", f"s:{n - 1}" if n else None) for n in range(DEEPEST)]
        store.apply(*map(PutScope, chain), PutScope(scope("top:a")))
        assert len(store.read(LineageOf(f"s:{DEEPEST - 1}"))) == DEEPEST
        refuses(store, PutScope(scope("s:more", f"s:{DEEPEST - 1}")), IN_USE, f"a path has at most {DEEPEST} scopes")
        refuses(store, PutScope(scope("s:0", "top:a", revision=2)), ConflictKind.LIMIT, DEEPEST)
        store.apply(PutScope(scope("s:1", "top:a", revision=2)))

    def test_a_scope_is_forgotten_when_nothing_needs_it(self, store: Store) -> None:
        tree(store)
        held = replace(key(), confinement=Confinement("room:x", frozenset({"coder"})))
        store.apply(AddKey(held))
        assert store.read(KeyOf(held.hash)) == held
        refuses(store, DropScope("team:one", 1), IN_USE, "room:x")
        refuses(store, DropScope("room:x", 1), IN_USE, held.id)
        store.apply(RevokeKey(held.id, later(1)))
        refuses(store, DropScope("room:x", 2), STALE, 1)
        store.apply(DropScope("room:x", 1), PutStanding(STANDING[1]))
        refuses(store, DropScope("team:one", 1), IN_USE, "bindings")
        store.apply(DropStanding(STANDING[1]), DropScope("team:one", 1))
        refuses(store, DropScope("team:one", 1), MISSING)

    def test_sessions_keep_the_name_of_a_scope_that_is_gone(self, store: Store) -> None:
        store.apply(PutScope(scope("room:x")), admitted(scope="room:x", agent="coder"), DropScope("room:x", 1))
        record = store.read(SessionOf(admitted().session.id))
        assert record is not None
        assert (record.session.scope, record.session.agent) == ("room:x", "coder")

    @rows
    def test_a_row_is_read_back_replaced_and_taken_away(self, store: Store, row: Standard) -> None:
        tree(store)
        again = replace(row, written=written(2, at=later(1), author="bob"))
        store.apply(PutStanding(row))
        assert store.read(RowsOf(type(row))) == (row,)
        assert store.read(RowsOf(type(row), row.subject)) == (row,)
        refuses(store, PutStanding(row), STALE, 1)
        refuses(store, DropStanding(again), STALE, 1)
        store.apply(PutStanding(again))
        assert store.read(RowsOf(type(row))) == (again,)
        refuses(store, DropStanding(row), STALE, 2)
        store.apply(DropStanding(again))
        assert store.read(RowsOf(type(row))) == ()
        refuses(store, DropStanding(again), MISSING)
        refuses(store, PutStanding(again), STALE, 0)

    def test_what_stands_is_of_these_subjects_only(self, store: Store) -> None:
        tree(store)
        second = replace(image("two"), tier=Tier.RESTRICTED)
        stranger = Binding(Subject.of_agent(OTHER, "coder"), Mode.PREFER, "web", written())
        grant = Grant(TEAM, second.id, written())
        store.apply(AddImage(second, 10), *map(PutStanding, (*STANDING, grant, stranger)))
        of_project = Subject.of_project(PROJECT)
        bindings = {it.subject: it for it in STANDING if isinstance(it, Binding)}
        lists = {it.subject: it.allowed for it in STANDING if isinstance(it, AllowListAt)}
        subjects = frozenset({DEPLOYMENT, of_project, TEAM, AGENT})
        whole = Standing(bindings, lists, {TEAM: Override.DENY}, {TEAM: frozenset({WEB, second.id})})
        assert store.read(StandingOf(subjects)) == whole
        assert store.read(StandingOf(frozenset({DEPLOYMENT}))) == Standing({DEPLOYMENT: STANDING[0]})  # type: ignore[dict-item] # it is a binding
        assert store.read(StandingOf()) == NOTHING_STANDS

    def test_what_stands_under_a_scope_needs_that_scope(self, store: Store) -> None:
        for row in STANDING:
            if row.subject == TEAM:
                refuses(store, PutStanding(row), MISSING)

    def test_a_grant_is_of_an_image_that_is_there(self, store: Store) -> None:
        refuses(store, PutStanding(Grant(DEPLOYMENT, ImageId("img_none"), written())), MISSING)

    def test_rows_come_in_pages(self, store: Store) -> None:
        tree(store)
        store.apply(AddImage(image("two"), 10), *map(PutStanding, STANDING))
        store.apply(PutStanding(Grant(TEAM, ImageId("img_two"), written())))
        kinds: tuple[type[Any], ...] = (Binding, AllowListAt, OverrideAt, Grant)
        for kind in kinds:
            whole, seen = store.read(RowsOf(kind)), list[Any]()
            while found := store.read(RowsOf(kind, page=Page(key_of(seen[-1]) if seen else None, 1))):
                seen += found
            assert tuple(seen) == whole
            assert whole

    def test_an_images_tier_is_kept(self, store: Store) -> None:
        store.apply(ChangeImage(replace(image(), tier=Tier.RESTRICTED, revision=2)))
        assert store.read(Images())[0].image.tier is Tier.RESTRICTED
