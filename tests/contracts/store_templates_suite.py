"""Templates, and what Sessions keep of them."""

from dataclasses import replace

import pytest

from sandbay.domain.ids import ProjectId, SessionId, TemplateId
from sandbay.ports.changes import AddProject, AddTemplate, AdmitSession, ChangeTemplate, ConflictKind, DropTemplate
from sandbay.ports.records import Page
from sandbay.ports.store import FrozenTemplateOf, SessionOf, Store, TemplateOf, Templates
from tests.contracts.store_base import StoreContract
from tests.contracts.store_things import (
    PROJECT,
    everything,
    frozen,
    frozen_template,
    later,
    preparation,
    project,
    refuses,
    session,
    template,
)

STALE, TAKEN, MISSING = ConflictKind.STALE, ConflictKind.TAKEN, ConflictKind.MISSING
OTHER = ProjectId("prj_other")


def admitted(number: int = 1) -> AdmitSession:
    kept = frozen_template()
    made = session(
        number, template=kept.template, template_digest=kept.document_digest, setup_network=kept.setup_network
    )
    return AdmitSession(made, frozen(), template=kept)


class TemplatesSuite(StoreContract):
    def test_a_template_is_read_back_whole_by_name_and_id(self, store: Store) -> None:
        store.apply(AddTemplate(template(), 10))
        assert store.read(TemplateOf(PROJECT, "work")) == template()
        assert store.read(TemplateOf(PROJECT, "tmp_work")) == template()
        assert store.read(TemplateOf(PROJECT, "none")) is None

    def test_templates_are_their_projects(self, store: Store) -> None:
        mine = template(id=TemplateId("tmp_theirs"), project=OTHER)
        store.apply(AddProject(project("other")), AddTemplate(template(), 1), AddTemplate(mine, 1))
        assert store.read(TemplateOf(OTHER, "tmp_work")) is None
        assert store.read(TemplateOf(OTHER, "work")) == mine
        assert [it.id for it in store.read(Templates(OTHER))] == ["tmp_theirs"]

    def test_lists_are_by_name_in_pages_and_without_bytes(self, store: Store) -> None:
        store.apply(*(AddTemplate(template(name), 10) for name in ("c", "a", "b")))
        listed = store.read(Templates(PROJECT, Page(limit=2)))
        assert listed == tuple(replace(template(name), content=preparation().outline) for name in ("a", "b"))
        assert [it.name for it in store.read(Templates(PROJECT, Page("b", 2)))] == ["c"]

    def test_a_name_is_used_once_in_a_project(self, store: Store) -> None:
        store.apply(AddTemplate(template(), 10), AddTemplate(template("b"), 10))
        renamed = replace(template("b", 2), name="work")
        refuses(store, AddTemplate(template(id=TemplateId("tmp_x")), 10), TAKEN, "tmp_work")
        refuses(store, ChangeTemplate(renamed), TAKEN, "tmp_work")
        store.apply(DropTemplate(TemplateId("tmp_work"), 1), ChangeTemplate(renamed))
        assert [it.name for it in store.read(Templates(PROJECT))] == ["work"]

    def test_a_project_has_so_many(self, store: Store) -> None:
        store.apply(AddTemplate(template(), 1))
        refuses(store, AddTemplate(template("b"), 1), ConflictKind.LIMIT, 1)

    def test_a_change_is_of_the_revision_that_was_seen(self, store: Store) -> None:
        changed = template(revision=2, content=preparation(env={}, files=()), updated_at=later(1))
        store.apply(AddTemplate(template(), 10), ChangeTemplate(changed))
        assert store.read(TemplateOf(PROJECT, "work")) == changed
        refuses(store, ChangeTemplate(changed), STALE, 2)
        refuses(store, DropTemplate(changed.id, 1), STALE, 2)
        refuses(store, ChangeTemplate(template("none", 2)), MISSING)
        store.apply(DropTemplate(changed.id, 2))
        refuses(store, DropTemplate(changed.id, 2), MISSING)
        assert store.read(TemplateOf(PROJECT, "work")) is None

    def test_what_a_session_keeps_is_what_was_written(self, store: Store) -> None:
        store.apply(AddTemplate(template(), 10), admitted(), admitted(2))
        record = store.read(SessionOf(SessionId("ses_1")))
        assert record is not None
        assert record.session == admitted().session
        assert record.session.template_digest is not None
        kept = store.read(FrozenTemplateOf(record.session.template_digest))
        assert kept == frozen_template()
        assert kept.document == frozen_template().document
        assert store.read(FrozenTemplateOf("sha256:none")) is None

    def test_changing_and_dropping_a_template_alters_no_session(self, store: Store) -> None:
        store.apply(AddTemplate(template(), 10), admitted())
        digest = frozen_template().document_digest
        before = (store.read(SessionOf(SessionId("ses_1"))), store.read(FrozenTemplateOf(digest)))
        store.apply(ChangeTemplate(template(revision=2, content=preparation(env={"A": "other"}))))
        store.apply(DropTemplate(TemplateId("tmp_work"), 2))
        assert (store.read(SessionOf(SessionId("ses_1"))), store.read(FrozenTemplateOf(digest))) == before

    def test_a_session_names_the_template_that_it_is_prepared_with(self, store: Store) -> None:
        before = everything(store)
        for wrong in (
            replace(admitted(), template=None),
            replace(admitted(), session=session()),
            replace(admitted(), session=replace(admitted().session, template_digest="sha256:other")),
        ):
            with pytest.raises(ValueError, match="ses_1"):
                store.apply(wrong)
        assert everything(store) == before
