"""What releases promise, which checks of it are due, and what checks saw."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, select

from sandbay.adapters.store.queries.dispatch import Answers
from sandbay.adapters.store.rows import columns_of, noun, variant_of
from sandbay.adapters.store.tables import contract_reports, contracts, release_states, variants
from sandbay.domain.contract import Checked, CheckOrder
from sandbay.domain.release import ReleaseState
from sandbay.ports.records import ReportRow
from sandbay.ports.store import DueChecks, ReportsOf

_answered = (
    (contract_reports.c.release == contracts.c.release)
    & (contract_reports.c.content_key == variants.c.content_key)
    & (contract_reports.c.number == contracts.c.checks)
)
_DUE = (
    select(contracts.c.release, contracts.c.checks, variants.c.document, contracts.c.tools)
    .select_from(contracts)
    .join(variants, variants.c.release == contracts.c.release)
    .join(release_states, release_states.c.release == contracts.c.release)
    .outerjoin(contract_reports, _answered)
    .where(contract_reports.c.release.is_(None), release_states.c.state != ReleaseState.REJECTED)
    .order_by(contracts.c.release, variants.c.position)
)
_REPORTS = (
    select(contract_reports.c.content_key, contract_reports.c.node, *columns_of(Checked, contract_reports))
    .where(contract_reports.c.release == bindparam("key"))
    .order_by(contract_reports.c.number.desc(), contract_reports.c.content_key)
)


def _due_checks(connection: Connection, _: DueChecks) -> Sequence[CheckOrder]:
    return tuple(CheckOrder(row[0], row[1], variant_of(row[2]), row[3]) for row in connection.execute(_DUE))


def _reports_of(connection: Connection, query: ReportsOf) -> Sequence[ReportRow]:
    rows = connection.execute(_REPORTS, {"key": query.release})
    return tuple(ReportRow(row[0], row[1], noun(Checked, row, 2)) for row in rows)


ANSWERS: Answers = {DueChecks: _due_checks, ReportsOf: _reports_of}
