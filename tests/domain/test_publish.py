"""image.toml, read strictly; the moves of a publish; what makes inputs equal."""

from dataclasses import replace

import pytest

from sandbay.domain.errors import Refusal
from sandbay.domain.publish import (
    FINISHED,
    PUBLISH_MOVES,
    RECIPE_BYTES,
    UNDER_WAY,
    Base,
    Bootstrap,
    Inputs,
    PublishPhase,
    Recipe,
    origin_of,
    read_recipe,
)
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import ByNumber, Malformed, OciReference, OfImage

DIGEST = "sha256:" + "a" * 64
WHOLE = """
name = "web"
description = "For the web"
base = "image:base"
labels = { function = "engineering" }
[tools]
node = "node --version"
"""


def test_a_recipe_says_all_of_it() -> None:
    assert read_recipe(WHOLE.encode()) == Recipe(
        "web", "image:base", "For the web", {"function": "engineering"}, {"node": "node --version"}
    )


REFUSED = [
    ("name = ", "image.toml"),
    ("base = 'image:base'", "image.toml.name"),
    ("name = 'Web'\nbase = 'image:base'", "image.toml.name"),
    ("name = 7\nbase = 'image:base'", "image.toml.name"),
    ("name = 'web'", "image.toml.base"),
    ("name = 'web'\nbase = ''", "image.toml.base"),
    ("name = 'web'\nbase = 'image:'", "image.toml.base"),
    ("name = 'web'\nbase = 'image:base:'", "image.toml.base"),
    ("name = 'web'\nbase = 'bootstrap:debian:99'", "image.toml.base"),
    ("name = 'web'\nbase = 'reg.example/x:tag'", "image.toml.base"),
    ("name = 'web'\nbase = 'dir:/etc'", "image.toml.base"),
    ("name = 'web'\nbase = 'oci:/etc'", "image.toml.base"),
    ("name = 'web'\nbase = 'image:base'\ndescription = ['x']", "image.toml.description"),
    ("name = 'web'\nbase = 'image:base'\ndescription = \"a\\u001b[2J\"", "image.toml.description"),
    ("name = 'web'\nbase = 'image:base'\nlabels = 'x'", "image.toml.labels"),
    ("name = 'web'\nbase = 'image:base'\nlabels = { a = 1 }", "image.toml.labels.a"),
    ("name = 'web'\nbase = 'image:base'\n[tools]\nnode = ['node']", "image.toml.tools.node"),
    ("name = 'web'\nbase = 'image:base'\n[tools]\n'../x' = 'x'", "image.toml.tools.../x"),
    ("name = 'web'\nbase = 'image:base'\npacks = []", "image.toml.packs"),
    ("name = 'web'\nbase = 'image:base'\npackages = []", "image.toml.packages"),
    ("name = 'web'\nname = 'web'\nbase = 'image:base'", "image.toml"),
    ("x = " + "[" * 5_000 + "]" * 5_000, "image.toml"),
    ("#" * (RECIPE_BYTES + 1), "image.toml"),
]


@pytest.mark.parametrize("text, param", REFUSED)
def test_what_is_at_fault_is_named(text: str, param: str) -> None:
    refusal = read_recipe(text.encode())
    assert isinstance(refusal, Refusal), refusal
    assert (refusal.reason, refusal.param) == (Reason.INVALID_BODY, param)


def test_bytes_that_are_no_text() -> None:
    assert isinstance(read_recipe(b"name = '\xff'"), Refusal)


def test_three_kinds_of_base() -> None:
    assert origin_of("image:base:7") == OfImage("base", ByNumber(7))
    assert origin_of("bootstrap:debian:12") == Bootstrap("debian:12")
    assert origin_of(f"reg.example/x@{DIGEST}") == OciReference("reg.example", "x", None, DIGEST)
    assert isinstance(origin_of("dir:/etc/passwd"), Malformed)


def test_every_phase_has_its_moves_and_ends() -> None:
    assert set(PUBLISH_MOVES) == set(PublishPhase)
    assert {phase for phase, after in PUBLISH_MOVES.items() if not after} == FINISHED
    assert set(PublishPhase) - FINISHED - {PublishPhase.QUEUED} == UNDER_WAY
    for phase in set(PublishPhase) - FINISHED:
        assert PublishPhase.FAILED in PUBLISH_MOVES[phase]
    assert PublishPhase.CANCELLED not in PUBLISH_MOVES[PublishPhase.PROMOTING]


INPUTS = Inputs("sha256:f", "Containerfile", (Base("image:base", "sha256:b", "base:1", 2),), "linux/amd64", "v1")


@pytest.mark.parametrize(
    "change",
    [
        {"files": "sha256:g"},
        {"dockerfile": "Dockerfile"},
        {"bases": (Base("image:base", "sha256:c", "base:1", 2),)},
        {"bases": ()},
        {"platform": "linux/arm64"},
        {"builder": "v2"},
    ],
)
def test_every_input_counts(change: dict[str, object]) -> None:
    assert replace(INPUTS, **change).digest != INPUTS.digest  # type: ignore[arg-type]


def test_where_a_base_was_found_does_not_count() -> None:
    elsewhere = Base("image:base", "sha256:b", "base:9", 3)
    assert replace(INPUTS, bases=(elsewhere,)).digest == INPUTS.digest
