"""What releases promise, which checks of it are due, and what checks saw."""

from dataclasses import replace

import pytest

from sandbay.domain.contract import CheckOrder, Contract
from sandbay.domain.release import ReleaseState
from sandbay.ports.changes import AddImage, AddRelease, ConflictKind, MoveRelease
from sandbay.ports.records import ReportRow
from sandbay.ports.store import CatalogOf, DueChecks, Images, ReportsOf, Store
from tests.contracts.store_base import StoreContract
from tests.contracts.store_things import (
    AMD,
    ARM,
    FAULT,
    NODE,
    NOW,
    PENDING,
    TOOLS,
    answered,
    content,
    image,
    promised,
    refuses,
    release,
    variant,
)

STALE, TAKEN, MISSING = ConflictKind.STALE, ConflictKind.TAKEN, ConflictKind.MISSING
BOTH = release(2, variant("x", AMD), variant("y", ARM))


def orders(store: Store) -> list[tuple[str, int, str]]:
    return [(it.release, it.number, it.variant.content_key) for it in store.read(DueChecks())]


class ContractsSuite(StoreContract):
    def test_without_a_contract_nothing_is_promised_or_due(self, store: Store) -> None:
        held = store.read(Images())[0].releases[1]
        assert (held.contract, dict(held.checked)) == (Contract(), {})
        assert orders(store) == []
        assert list(store.read(ReportsOf(release().id))) == []

    def test_a_release_is_born_with_its_contract_and_each_variant_is_due(self, store: Store) -> None:
        store.apply(AddRelease(BOTH, NOW, 50, contract=Contract(TOOLS, 1)))
        assert store.read(Images())[0].releases[2].contract == Contract(TOOLS, 1)
        assert list(store.read(DueChecks())) == [CheckOrder(BOTH.id, 1, v, TOOLS) for v in BOTH.variants]

    def test_a_report_answers_one_variant_of_one_check(self, store: Store) -> None:
        store.apply(AddRelease(BOTH, NOW, 50, contract=Contract(TOOLS, 1)), answered(1, BOTH, "x"))
        assert orders(store) == [(BOTH.id, 1, variant("y", ARM).content_key)]
        held = store.read(CatalogOf(frozenset({"web"}))).entries[0].releases[2]
        assert dict(held.checked) == {content("x"): answered(1, BOTH, "x").checked}
        refuses(store, answered(1, BOTH, "x"), TAKEN, BOTH.id)
        refuses(store, answered(2, BOTH, "x"), STALE, 1)
        refuses(store, answered(1), MISSING)

    def test_a_new_check_makes_all_due_again_and_the_newest_report_counts(self, store: Store) -> None:
        store.apply(promised(), answered(1), promised(checks=2))
        assert orders(store) == [(release().id, 2, content("web1"))]
        refuses(store, answered(1), STALE, 2)
        held = store.read(Images())[0].releases[1]
        assert held.checked[content("web1")].number == 1
        store.apply(answered(2, shell=False))
        held = store.read(Images())[0].releases[1]
        assert held.checked[content("web1")] == answered(2, shell=False).checked
        assert orders(store) == []
        rows = store.read(ReportsOf(release().id))
        assert list(rows) == [
            ReportRow(content("web1"), NODE, answered(2, shell=False).checked),
            ReportRow(content("web1"), NODE, answered(1).checked),
        ]

    @pytest.mark.parametrize("checks", [0, 1, 3])
    def test_a_contract_is_replaced_by_the_next_one_only(self, store: Store, checks: int) -> None:
        store.apply(promised())
        refuses(store, promised(checks=checks), STALE, 1)

    def test_a_contract_is_of_a_release_that_is_there(self, store: Store) -> None:
        refuses(store, promised(release(9)), MISSING)
        refuses(store, promised(checks=2), STALE, 0)
        changed = promised(checks=2)
        store.apply(promised(), replace(changed, contract=Contract({}, 2)))
        assert store.read(Images())[0].releases[1].contract == Contract({}, 2)

    def test_what_is_rejected_is_not_checked(self, store: Store) -> None:
        store.apply(
            AddRelease(BOTH, NOW, 50, contract=Contract(TOOLS, 1)),
            MoveRelease(BOTH.id, PENDING, ReleaseState.REJECTED, FAULT),
        )
        assert orders(store) == []

    def test_the_same_bytes_in_two_images_are_two_contracts(self, store: Store) -> None:
        cad = release(1, variant("web1"), of="cad")
        store.apply(AddImage(image("cad"), 10), AddRelease(cad, NOW, 50, contract=Contract({}, 1)), promised())
        assert orders(store) == [(cad.id, 1, content("web1")), (release().id, 1, content("web1"))]
        store.apply(answered(1, cad))
        assert orders(store) == [(release().id, 1, content("web1"))]
        assert dict(store.read(Images())[1].releases[1].checked) == {}
