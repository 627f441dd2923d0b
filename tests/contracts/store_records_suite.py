"""Projects, keys, uploads, the audit; and what an open store is."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from sandbay.domain.ids import KeyId, ProjectId, UploadId
from sandbay.domain.registry import RegistrySecret
from sandbay.domain.secret import Secret
from sandbay.ports.changes import (
    AddAudit,
    AddKey,
    AddProject,
    AddUpload,
    ChangeProject,
    ConflictKind,
    DropRegistrySecret,
    DropUpload,
    PutRegistrySecret,
    RevokeKey,
)
from sandbay.ports.records import Page
from sandbay.ports.secrets import DropSecret, PutSecret, SecretsOf
from sandbay.ports.store import (
    Audit,
    AuditInOrder,
    ExpiredUploads,
    KeyOf,
    Keys,
    ProjectOf,
    Projects,
    RegistrySecretOf,
    RegistrySecrets,
    Store,
    UploadOf,
)
from tests.contracts.store_base import Open, StoreContract
from tests.contracts.store_things import NOW, PROJECT, entry, everything, key, later, project, refuses, upload

STALE, TAKEN, MISSING = ConflictKind.STALE, ConflictKind.TAKEN, ConflictKind.MISSING


class RecordsSuite(StoreContract):
    def test_a_project_is_found_by_name_and_id(self, store: Store) -> None:
        store.apply(AddProject(project("abc")))
        assert store.read(ProjectOf("abc")) == store.read(ProjectOf("prj_abc")) == project("abc")
        assert store.read(ProjectOf("none")) is None
        assert store.read(Projects()) == (project("abc"), project("one"))

    def test_a_projects_name_is_used_once(self, store: Store) -> None:
        refuses(store, AddProject(project()), TAKEN, PROJECT)
        refuses(store, AddProject(replace(project(), id=ProjectId("prj_other"))), TAKEN, PROJECT)
        refuses(store, AddProject(replace(project(), name="other")), TAKEN)

    def test_a_project_changes_by_the_next_revision_only(self, store: Store) -> None:
        changed = replace(project(), scope_required=True, revision=2)
        store.apply(ChangeProject(changed))
        assert store.read(ProjectOf("one")) == changed
        refuses(store, ChangeProject(changed), STALE, 2)
        refuses(store, ChangeProject(replace(project("none"), revision=2)), MISSING)

    def test_keys_are_found_by_hash_and_by_owner(self, store: Store) -> None:
        mine, admin = key("mine"), key("admin", None)
        store.apply(AddKey(mine), AddKey(admin))
        assert store.read(KeyOf(mine.hash)) == mine
        assert store.read(KeyOf("sha256:none")) is None
        assert store.read(Keys(PROJECT)) == (mine,)
        assert store.read(Keys()) == (admin,)
        assert store.read(Keys(ProjectId("prj_none"))) == ()

    def test_a_hash_is_one_key(self, store: Store) -> None:
        store.apply(AddKey(key()))
        refuses(store, AddKey(key()), TAKEN, "key_k")
        refuses(store, AddKey(replace(key("other"), hash=key().hash)), TAKEN, "key_k")
        refuses(store, AddKey(replace(key("other"), id=key().id)), TAKEN)
        refuses(store, AddKey(key("other", ProjectId("prj_none"))), MISSING)

    def test_a_key_is_revoked_once_and_by_its_project(self, store: Store) -> None:
        store.apply(AddKey(key()), AddProject(project("other")))
        refuses(store, RevokeKey(key().id, NOW, ProjectId("prj_other")), MISSING)
        refuses(store, RevokeKey(KeyId("key_none"), NOW), MISSING)
        store.apply(RevokeKey(key().id, later(1), PROJECT))
        store.apply(RevokeKey(key().id, later(2)))
        assert store.read(KeyOf(key().hash)) == replace(key(), revoked_at=later(1))

    def test_uploads_expire(self, store: Store) -> None:
        store.apply(
            AddUpload(upload("b", later(2))), AddUpload(upload("a", later(1))), AddUpload(upload("c", later(3)))
        )
        assert store.read(UploadOf(UploadId("upl_b"))) == upload("b", later(2))
        assert [it.id for it in store.read(ExpiredUploads(later(2)))] == ["upl_a", "upl_b"]
        assert store.read(ExpiredUploads(NOW)) == ()
        refuses(store, AddUpload(upload("a")), TAKEN)
        for _ in range(2):
            store.apply(DropUpload(UploadId("upl_b")))
        assert store.read(UploadOf(UploadId("upl_b"))) is None

    def test_a_project_has_one_secret_of_a_name_the_last_one(self, store: Store) -> None:
        other = ProjectId("prj_other")
        store.apply(AddProject(project("other")))
        for owner, name, sealed in ((PROJECT, "b", "1"), (PROJECT, "a", "2"), (PROJECT, "b", "3"), (other, "b", "4")):
            store.apply(PutSecret(Secret(owner, name, sealed, NOW), 2))
        assert store.read(SecretsOf(PROJECT)) == (Secret(PROJECT, "a", "2", NOW), Secret(PROJECT, "b", "3", NOW))
        refuses(store, PutSecret(Secret(PROJECT, "c", "5", NOW), 2), ConflictKind.LIMIT, 2)
        refuses(store, DropSecret(PROJECT, "c"), MISSING)
        store.apply(DropSecret(PROJECT, "b"))
        assert [it.name for it in store.read(SecretsOf(PROJECT))] == ["a"]
        assert store.read(SecretsOf(other)) == (Secret(other, "b", "4", NOW),)
        refuses(store, PutSecret(Secret(ProjectId("prj_none"), "a", "1", NOW), 2), MISSING)

    def test_a_registry_has_one_secret_the_last_one(self, store: Store) -> None:
        for registry, sealed, at in (("b", "1", NOW), ("a", "2", NOW), ("b", "3", later(1))):
            store.apply(PutRegistrySecret(RegistrySecret(registry, sealed, at)))
        kept = (RegistrySecret("a", "2", NOW), RegistrySecret("b", "3", later(1)))
        assert store.read(RegistrySecrets()) == kept
        assert [store.read(RegistrySecretOf(name)) for name in ("a", "b", "c")] == [*kept, None]
        refuses(store, DropRegistrySecret("c"), MISSING)
        store.apply(DropRegistrySecret("a"))
        assert store.read(RegistrySecrets()) == kept[1:]

    def test_the_audit_in_order_is_read_on_from_any_place(self, store: Store) -> None:
        assert store.read(AuditInOrder()) == ()
        written = [entry(str(n)) for n in range(4)]
        store.apply(*(AddAudit(it) for it in written))
        rows = store.read(AuditInOrder())
        assert [it for _, it in rows] == written
        places = [place for place, _ in rows]
        assert places == sorted(set(places))
        assert store.read(AuditInOrder(limit=2)) == rows[:2]
        assert store.read(AuditInOrder(places[1])) == rows[2:]
        assert store.read(AuditInOrder(places[-1])) == ()

    def test_the_audit_is_newest_first_by_page_and_subject(self, store: Store) -> None:
        odd = [entry(f"{n}", "odd" if n % 2 else "even") for n in range(7)]
        store.apply(*(AddAudit(it) for it in odd))
        assert store.read(Audit()) == tuple(reversed(odd))
        first = store.read(Audit(page=Page(limit=3)))
        assert [it.id for it in first] == ["aud_6", "aud_5", "aud_4"]
        assert [it.id for it in store.read(Audit(page=Page("aud_4", 2)))] == ["aud_3", "aud_2"]
        assert [it.id for it in store.read(Audit("odd", Page("aud_4")))] == ["aud_3", "aud_1"]
        assert store.read(Audit("none")) == ()
        assert store.read(Audit(page=Page("aud_none"))) == ()

    def test_an_entry_is_written_once(self, store: Store) -> None:
        store.apply(AddAudit(entry("x")))
        refuses(store, AddAudit(entry("x")), TAKEN)

    def test_a_moment_is_one_in_every_zone(self, store: Store) -> None:
        east = timezone(timedelta(hours=5, minutes=30))
        store.apply(AddUpload(upload("east", later(1).astimezone(east))), AddUpload(upload("west", later(2))))
        found = store.read(ExpiredUploads(later(1).astimezone(timezone(timedelta(hours=-11)))))
        assert [(it.id, it.expires_at, it.expires_at.utcoffset()) for it in found] == [
            ("upl_east", later(1), timedelta())
        ]

    def test_a_time_without_a_zone_is_no_moment(self, store: Store) -> None:
        before = everything(store)
        with pytest.raises(Exception, match="without a zone"):
            store.apply(AddAudit(entry("first")), AddUpload(upload("x", datetime(2026, 1, 1))))  # noqa: DTZ001
        assert everything(store) == before

    def test_applying_nothing_is_nothing(self, store: Store) -> None:
        before = everything(store)
        store.apply()
        assert everything(store) == before

    def test_all_of_it_is_there_after_opening_again(self, open_store: Open, store: Store) -> None:
        store.apply(AddKey(key()), AddUpload(upload()), AddAudit(entry("x")))
        before = everything(store)
        store.close()
        store.close()
        again = open_store()
        try:
            assert everything(again) == before
        finally:
            again.close()

    def test_a_closed_store_says_so(self, store: Store) -> None:
        store.close()
        with pytest.raises(RuntimeError):
            store.read(Projects())
        with pytest.raises(RuntimeError):
            store.apply(AddAudit(entry("x")))
