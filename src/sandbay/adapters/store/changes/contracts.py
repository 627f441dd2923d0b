"""What releases promise, and what checks of it saw."""

from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from sandbay.adapters.store.changes.dispatch import Writes
from sandbay.adapters.store.changes.guards import refuse_taken, refuse_unless, value_there
from sandbay.adapters.store.rows import values_of
from sandbay.adapters.store.tables import contract_reports, contracts, release_states
from sandbay.ports.changes import AddReport, SetContract

_RELEASE = select(release_states.c.state).where(release_states.c.release == bindparam("key"))
_CHECKS = select(contracts.c.checks).where(contracts.c.release == bindparam("key"))
_UPDATE = (
    update(contracts)
    .where(contracts.c.release == bindparam("key"))
    .values(tools=bindparam("tools"), checks=bindparam("checks"))
)
_REPORTED = select(contract_reports.c.release).where(
    contract_reports.c.release == bindparam("key"),
    contract_reports.c.content_key == bindparam("content"),
    contract_reports.c.number == bindparam("count"),
)


def _set_contract(connection: Connection, change: SetContract) -> None:
    key = {"key": change.release}
    value_there(connection, _RELEASE, key, change)
    stored = connection.execute(_CHECKS, key).scalar()
    refuse_unless((stored or 0) == change.contract.checks - 1, stored or 0, change)
    values: dict[str, Any] = values_of(change.contract)
    if stored is None:
        connection.execute(insert(contracts), {"release": change.release, **values})
    else:
        connection.execute(_UPDATE, {**key, **values})


def _add_report(connection: Connection, change: AddReport) -> None:
    checked = change.checked
    asked = value_there(connection, _CHECKS, {"key": change.release}, change)
    refuse_unless(asked == checked.number, asked, change)
    cell = {"key": change.release, "content": change.key, "count": checked.number}
    refuse_taken(connection, _REPORTED, cell, change)
    row = {"release": change.release, "content_key": change.key, "node": change.node}
    connection.execute(insert(contract_reports), {**row, **values_of(checked)})


WRITES: Writes = {AddReport: _add_report, SetContract: _set_contract}
