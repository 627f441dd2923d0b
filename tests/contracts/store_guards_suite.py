"""The database itself refuses to change what was frozen, whoever writes and however: tried in raw SQL.

For every database: subclass `GuardsSuite` as `Test…` and give `raw`.
"""

# ruff: noqa: S608 - the names in these statements are our own

import itertools
from collections.abc import Sequence
from typing import Any, Protocol

import pytest
from sqlalchemy import JSON, Boolean, Column, DateTime, Integer, Table, create_engine

from sandbay.adapters.store.tables import METADATA
from sandbay.adapters.store.triggers import frozen_columns
from sandbay.domain.allocation import AllocationState
from sandbay.domain.ids import AllocationId, PublishId, SnapshotId, UploadId
from sandbay.domain.publish import Publish, PublishOrder
from sandbay.domain.registry import RegistrySecret
from sandbay.domain.secret import Secret
from sandbay.domain.suspension import Suspension
from sandbay.ports.changes import (
    AddAudit,
    AddKey,
    AddPublish,
    AddTemplate,
    AddUpload,
    AddWish,
    AdmitSession,
    MoveAllocation,
    PutRegistrySecret,
)
from sandbay.ports.channels import AddPromotion
from sandbay.ports.secrets import PutSecret
from sandbay.ports.snapshots import AddSnapshot
from sandbay.ports.standing import PutScope, PutStanding
from sandbay.ports.store import Store
from tests.contracts.store_things import (
    FAULT,
    NODE,
    NOW,
    PROJECT,
    STANDING,
    answered,
    content,
    entry,
    frozen,
    frozen_template,
    install,
    key,
    promised,
    promotion,
    reserved,
    scope,
    session,
    template,
    upload,
)

APPEND_ONLY = [
    *(
        "releases",
        "variants",
        "channel_history",
        "deployments",
        "frozen_releases",
        "frozen_templates",
        "idempotency_keys",
        "audit",
        "session_events",
        "contract_reports",
    ),
]
FROZEN = {
    "images": {"id", "name", "created_at"},
    "release_states": {"release"},
    "contracts": {"release"},
    "channels": {"image", "name"},
    "keys": {"id", "kind", "principal", "hash", "created_at", "project", "confinement"},
    "sessions": {
        *("seq", "id", "project", "frozen", "frozen_digest", "created_at", "principal"),
        *("network", "resources", "env", "secret_env", "template", "template_digest", "setup_network"),
        *("scope", "agent", "life"),
    },
    "publishes": {"seq", "id", "image", "order", "principal", "created_at", "idempotency_key", "body_hash"},
    "promotions": {
        *("seq", "id", "image", "channel", "number", "before", "expected"),
        *("nodes", "deadline", "created_at", "principal", "why", "force"),
    },
    "snapshots": {"id", "session", "node", "frozen", "frozen_digest", "at"},
    "allocations": {"id", "session", "node", "pool", "size", "frozen", "frozen_digest", "ordinal", "opened_at"},
}
FREE = {
    *("projects", "nodes", "readiness", "pins", "wishes", "uploads", "registry_secrets", "secrets", "templates"),
    *("scopes", "bindings", "allow_lists", "overrides", "grants"),
}
"""Written by hand, so that a declaration that goes missing is missed."""

GUARDED = [table for table in METADATA.sorted_tables if table.name not in FREE]
CELLS = [(table, name) for table in GUARDED for name in frozen_columns(table)]
FREE_CELLS = [
    (table, column.name)
    for table in METADATA.sorted_tables
    for column in table.columns
    if column.name not in frozen_columns(table)
]


def _named(value: object) -> str:
    return value.name if isinstance(value, Table) else str(value)


cells = pytest.mark.parametrize("table,column", CELLS, ids=_named)
free_cells = pytest.mark.parametrize("table,column", FREE_CELLS, ids=_named)
guarded = pytest.mark.parametrize("table", GUARDED, ids=_named)


class Raw(Protocol):
    """A connection that knows nothing of us, in a transaction that is not kept."""

    refusal: type[Exception]
    """What a guard's and a key's refusal is; others that can be in the way of a change are not `Raw`'s to raise."""
    reference: type[Exception] | tuple[()]
    """What a broken reference is, where this connection looks at references at all."""
    updates: Sequence[str]
    """Every way to begin an UPDATE."""
    says: str
    """How it refuses; `{table}` stands for the table."""

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Run a statement with `?` for values; how many rows it changed."""

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """What a query finds, in values that can be written back."""

    def go_on(self) -> None:
        """Begin again after a refusal."""


def fill(store: Store) -> None:
    """A row, and more, in every table."""
    install(store)
    kept = frozen_template()
    one = session(template=kept.template, template_digest=kept.document_digest, setup_network=kept.setup_network)
    admitted = AdmitSession(one, frozen(), "idem", "sha256:body", kept)
    kept_of = Suspension(SnapshotId("snp_1"), one.id, NODE, one.frozen, one.frozen_digest, NOW)
    store.apply(
        admitted, reserved(), AddSnapshot(kept_of), AddWish(content("w"), NODE, NOW), AddTemplate(template(), 10)
    )
    stop = MoveAllocation(AllocationId("alo_1"), frozenset(AllocationState), AllocationState.CLOSED, NOW, FAULT)
    store.apply(stop, reserved(again="b"), AddKey(key()), AddUpload(upload()), AddAudit(entry("one")))
    order = PublishOrder(UploadId("upl_u"), "web")
    store.apply(AddPublish(Publish(PublishId("pub_one"), "web", order, "ann", NOW), "key", "sha256:body"))
    store.apply(AddAudit(entry("two")), PutRegistrySecret(RegistrySecret("reg.example", "sealed", NOW)))
    store.apply(PutSecret(Secret(PROJECT, "gh", "sealed", NOW), 1))
    store.apply(PutScope(scope("team:one")), *(PutStanding(row) for row in STANDING))
    store.apply(AddPromotion(promotion()))
    store.apply(promised(), answered(1), promised(checks=2), answered(2))


def rows(raw: Raw, table: Table) -> list[tuple[Any, ...]]:
    return sorted(raw.rows(f"SELECT {quoted(table)} FROM {table.name}"), key=repr)


def row(raw: Raw, table: Table) -> dict[str, Any]:
    return dict(zip(names(table), raw.rows(f"SELECT {quoted(table)} FROM {table.name}")[0], strict=True))


def is_refused(raw: Raw, table: Table, statement: str, values: Sequence[Any] = ()) -> None:
    before = rows(raw, table)
    assert before, f"nothing in {table.name} to try it on"
    with pytest.raises(raw.refusal, match=raw.says.format(table=table.name)):
        raw.run(statement, values)
    raw.go_on()
    assert rows(raw, table) == before


def another(column: Column[Any], value: Any) -> Any:
    """A different value of the same kind."""
    kind = getattr(column.type, "impl_instance", column.type)
    match kind:
        case Boolean():
            return "0" if value in (1, "1", "true") else "1"
        case Integer():
            return int(value or 0) + 1000
        case JSON():
            return '{"another": 1}'
        case DateTime():
            return "2031-01-01 00:00:00.000000"
        case _:
            return f"{value}x"


def names(table: Table) -> list[str]:
    return [column.name for column in table.columns]


def quoted(table: Table) -> str:
    return ", ".join(f'"{name}"' for name in names(table))


def insertion(table: Table, how: str = "INSERT") -> str:
    return f"{how} INTO {table.name} ({quoted(table)}) VALUES ({', '.join('?' * len(names(table)))})"


def key_of(table: Table) -> str:
    return ", ".join(f'"{column.name}"' for column in table.primary_key.columns)


def rivals(raw: Raw, table: Table) -> list[list[Any]]:
    """Rows that share a key with one that is there: each key of it alone, and all of it."""
    there, found = row(raw, table), []
    for kept in _keys(table):
        rival = {n: v if n in kept or v is None else another(table.c[n], v) for n, v in there.items()}
        found.append(list((rival | ({"state": "running"} if "state" in rival else {})).values()))
    return found


def _keys(table: Table) -> list[set[str]]:
    """Column names of each unique key, as SQLite lists them, and of the whole row."""
    with create_engine("sqlite://").connect() as connection:
        table.metadata.create_all(connection)
        listed = connection.exec_driver_sql(f"PRAGMA index_list({table.name})").all()
        unique = [row[1] for row in listed if row[2]]
        found = [{c[2] for c in connection.exec_driver_sql(f"PRAGMA index_info({index})")} for index in unique]
    return [set(table.primary_key.columns.keys()), set(names(table)), *found]


def copy_of_allocation(how: str = "INSERT") -> str:
    """A statement that copies allocation `alo_1` under another id, with `?` for its state."""
    columns = [name for name in names(METADATA.tables["allocations"]) if name not in ("id", "ordinal", "state")]
    listed = ", ".join(f'"{name}"' for name in columns)
    into = f"{how} INTO allocations (id, ordinal, state, {listed})"
    return f"{into} SELECT 'alo_9', 9, ?, {listed} FROM allocations WHERE id = 'alo_1'"


unfrozen = pytest.mark.parametrize("column,value", list(itertools.product(["frozen", "frozen_digest"], [None, ""])))


def open_but_unfrozen(raw: Raw, column: str, value: str | None) -> tuple[str, list[Any]]:
    """An insertion of an open allocation that does not name its frozen release."""
    table = METADATA.tables["allocations"]
    new = row(raw, table) | {"id": "alo_9", "session": "ses_9", "ordinal": 9, "state": "running", column: value}
    return insertion(table), list(new.values())


class GuardsSuite:
    """What every database has to refuse, and what it must not."""

    @pytest.fixture
    def raw(self) -> Raw:
        raise NotImplementedError

    @cells
    def test_a_frozen_column_takes_no_update(self, raw: Raw, table: Table, column: str) -> None:
        value = row(raw, table)[column]
        for update in raw.updates:
            for new in (another(table.c[column], value), None):
                if value is not None or new is not None:
                    is_refused(raw, table, f'{update} {table.name} SET "{column}" = ?', [new])

    @free_cells
    def test_a_free_column_changes(self, raw: Raw, table: Table, column: str) -> None:
        """The first row only, so that unique columns can take the value."""
        first = f"SELECT {key_of(table)} FROM {table.name} LIMIT 1"
        new = "closed" if column == "state" else another(table.c[column], row(raw, table)[column])
        statement = f'UPDATE {table.name} SET "{column}" = ? WHERE ({key_of(table)}) = ({first})'
        try:
            assert raw.run(statement, [new]) == 1
        except raw.reference:
            assert table.c[column].foreign_keys or table.c[column].primary_key

    @guarded
    def test_the_same_values_written_again_are_no_change(self, raw: Raw, table: Table) -> None:
        before = rows(raw, table)
        raw.run(f"UPDATE {table.name} SET " + ", ".join(f'"{name}" = "{name}"' for name in names(table)))
        assert rows(raw, table) == before

    @guarded
    def test_no_row_is_deleted(self, raw: Raw, table: Table) -> None:
        is_refused(raw, table, f"DELETE FROM {table.name}")
        every = f"SELECT {key_of(table)} FROM {table.name}"
        is_refused(raw, table, f"DELETE FROM {table.name} WHERE ({key_of(table)}) IN ({every})")

    @guarded
    def test_no_row_is_inserted_over(self, raw: Raw, table: Table) -> None:
        """With every key of a row that is there, alone and together."""
        for values in rivals(raw, table):
            is_refused(raw, table, insertion(table), values)

    def test_a_second_open_allocation_is_refused(self, raw: Raw) -> None:
        table = METADATA.tables["allocations"]
        is_refused(raw, table, copy_of_allocation(), ["starting"])
        is_refused(raw, table, "UPDATE allocations SET state = 'running' WHERE id = 'alo_1'")
        assert raw.run(copy_of_allocation(), ["closed"]) == 1

    def test_a_release_takes_no_variant_after_it_was_registered(self, raw: Raw) -> None:
        variants = METADATA.tables["variants"]
        statement = "INSERT INTO variants SELECT release, 7, 'linux/riscv64', content_key, document FROM variants"
        is_refused(raw, variants, statement)


def broken_pairs(raw: Raw) -> list[tuple[str, list[Any]]]:
    """Insertions whose pair of id and digest, or whose Session, is not a real one."""
    found = []
    for table, changed in (
        ("sessions", {"seq": 9, "id": "ses_9", "frozen_digest": "sha256:else"}),
        ("allocations", {"id": "alo_9", "ordinal": 9, "state": "closed", "frozen_digest": "sha256:else"}),
        ("allocations", {"id": "alo_9", "ordinal": 9, "state": "closed", "session": "ses_none"}),
    ):
        it = METADATA.tables[table]
        found.append((insertion(it), list((row(raw, it) | changed).values())))
    return found
