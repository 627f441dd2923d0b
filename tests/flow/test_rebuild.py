"""Build or answer what there is."""

from dataclasses import replace

import pytest

from sandbay.domain.ids import ReleaseId
from sandbay.domain.publish import Base, Inputs
from sandbay.flow.rebuild import Earlier, Rebuild, rebuild

NOW = Inputs("sha256:f", "Containerfile", (Base("image:base", "sha256:b", "base:1", 2),), "linux/amd64", "v1")
OTHER = replace(NOW, files="sha256:other")
ONE, TWO = ReleaseId("rel_1"), ReleaseId("rel_2")


CASES: list[tuple[tuple[Earlier, ...], bool, ReleaseId | None, str]] = [
    ((), False, None, "new: "),
    ((), True, None, "new: "),
    ((Earlier(NOW, ONE, usable=True),), False, ONE, "unchanged: "),
    ((Earlier(NOW, ONE, usable=True),), True, None, "asked: "),
    ((Earlier(NOW, ONE, usable=False),), False, None, "gone: "),
    ((Earlier(OTHER, TWO, usable=True), Earlier(NOW, ONE, usable=True)), False, ONE, "unchanged: "),
    ((Earlier(NOW, TWO, usable=False), Earlier(NOW, ONE, usable=True)), False, ONE, "unchanged: "),
    ((Earlier(OTHER, TWO, usable=True),), False, None, "changed: files"),
    ((Earlier(replace(NOW, builder="v0"), TWO, usable=True),), False, None, "changed: builder"),
    ((Earlier(replace(NOW, bases=()), TWO, usable=True),), False, None, "changed: base image:base"),
    (
        (Earlier(replace(OTHER, bases=(Base("image:base", "sha256:a"),)), TWO, usable=True),),
        False,
        None,
        "changed: files, base image:base",
    ),
]


@pytest.mark.parametrize("earlier, asked, release, why", CASES)
def test_only_the_inputs_decide(
    earlier: tuple[Earlier, ...], *, asked: bool, release: ReleaseId | None, why: str
) -> None:
    decided = rebuild(NOW, earlier, asked=asked)
    assert decided == Rebuild(release, decided.why)
    assert decided.why.startswith(why)
