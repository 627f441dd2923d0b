"""What was selected is written down whole, in bytes that depend on nothing but the values."""

import json
from dataclasses import fields, replace
from typing import Any

import pytest

from sandbay.domain.canonical import canonical, plain, rebuild, sha256
from sandbay.domain.catalog import Image
from sandbay.domain.frozen import FrozenRelease
from sandbay.domain.ids import ImageId, ReleaseId
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.domain.release import (
    IMAGE_ID,
    MANIFEST_DIGEST,
    Artifact,
    ImageConfig,
    Known,
    Layer,
    Release,
    Variant,
    content_key,
)
from sandbay.domain.trail import DecidedBy, Level, Outcome, Step
from sandbay.flow.freeze import freeze
from tests.flow.worlds import ARM, NOW, sha, some_id

IMAGE = Image(ImageId(some_id("img", 3)), "web", NOW, "a browser", {"function": "design"}, revision=4)
LAYERS = (Layer(sha(1), sha(2), 1_000, "application/vnd.oci.image.layer.v1.tar+gzip"),)
VARIANT = Variant(
    platform=Platform.of("linux", "arm", "v7"),
    artifacts={MANIFEST_DIGEST: Artifact(sha(3), Known.COMPUTED), IMAGE_ID: Artifact(sha(4), Known.REPORTED)},
    providers=("q", "p"),
    layers=LAYERS,
    config=ImageConfig(cmd=("sh",), user="agent"),
    manifest_size=20,
    config_size=3,
    index_digest=sha(5),
)
OTHER = replace(VARIANT, platform=ARM, artifacts={MANIFEST_DIGEST: Artifact(sha(6), Known.COMPUTED)})
RELEASE = Release(ReleaseId(some_id("rel", 7)), IMAGE.id, 7, (OTHER, VARIANT), source_commit="c" * 40)
TRAIL = (
    Step(Level.SESSION, Outcome.SILENT),
    Step(Level.PROJECT, Outcome.CHOSEN, "growth", "web:7"),
    Step(Level.DEPLOYMENT, Outcome.OVERRULED, None, "@default", Reason.IMAGE_RETIRED, enforced=True),
)
BY = DecidedBy(Level.PROJECT, "growth")
TOOLS = {"node": "22.3.0", "git": "2.39.5"}


def frozen(image: Image = IMAGE, variant: Variant = VARIANT, release: Release = RELEASE) -> FrozenRelease:
    return freeze(image, release, variant, reference="web:7", decided_by=BY, trail=TRAIL, generation=12, tools=TOOLS)


EXPECTED: dict[str, Any] = {
    "image": some_id("img", 3),
    "image_name": "web",
    "reference": "web:7",
    "release": some_id("rel", 7),
    "number": 7,
    "platform": {"os": "linux", "architecture": "arm", "variant": "v7"},
    "artifacts": {
        "image_manifest_digest": {"value": sha(3), "known": "computed"},
        "image_id": {"value": sha(4), "known": "reported"},
    },
    "providers": ["q", "p"],
    "digest": sha(3),
    "index_digest": sha(5),
    "source_commit": "c" * 40,
    "size": 1_023,
    "generation": 12,
    "decided_by": {"level": "project", "subject": "growth"},
    "trail": [
        {"level": "session", "outcome": "silent", "subject": None, "said": None, "reason": None, "enforced": False},
        {
            "level": "project",
            "outcome": "chosen",
            "subject": "growth",
            "said": "web:7",
            "reason": None,
            "enforced": False,
        },
        {
            "level": "deployment",
            "outcome": "overruled",
            "subject": None,
            "said": "@default",
            "reason": "image_retired",
            "enforced": True,
        },
    ],
    "tools": {"node": "22.3.0", "git": "2.39.5"},
}


def test_every_field_is_carried_over() -> None:
    assert plain(frozen()) == EXPECTED
    assert EXPECTED.keys() == {field.name for field in fields(FrozenRelease)}


def test_what_is_run_is_the_variant_that_was_selected() -> None:
    assert frozen().content_key == VARIANT.content_key != OTHER.content_key
    assert frozen().content_key == content_key(VARIANT.platform, {MANIFEST_DIGEST: sha(3), IMAGE_ID: sha(4)})
    assert frozen(variant=OTHER).content_key == OTHER.content_key
    assert frozen(variant=OTHER).digest == sha(6)


def test_the_document_is_the_same_json_for_everybody() -> None:
    document = frozen().document
    assert json.loads(document) == EXPECTED
    written = json.dumps(EXPECTED, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert document == written
    assert frozen().document_digest == sha256(written)
    turned = replace(VARIANT, artifacts=dict(reversed(list(VARIANT.artifacts.items()))))
    assert frozen(variant=turned).document == written


def test_it_is_read_back_as_it_was() -> None:
    for it in (
        frozen(),
        frozen(variant=replace(OTHER, index_digest=None)),
        frozen(variant=replace(VARIANT, artifacts={})),
    ):
        again = rebuild(FrozenRelease, json.loads(it.document))
        assert again == it
        assert (again.document, again.document_digest) == (it.document, it.document_digest)
        assert again.content_key == it.content_key


CHANGES: dict[str, list[Any]] = {
    "image": [ImageId(some_id("img", 4))],
    "image_name": ["wep"],
    "reference": ["web", "@default"],
    "release": [ReleaseId(some_id("rel", 8))],
    "number": [8],
    "platform": [ARM, Platform.of("linux", "arm")],
    "artifacts": [
        {},
        {MANIFEST_DIGEST: Artifact(sha(3), Known.COMPUTED)},
        {**VARIANT.artifacts, MANIFEST_DIGEST: Artifact(sha(9), Known.COMPUTED)},
        {**VARIANT.artifacts, MANIFEST_DIGEST: Artifact(sha(3), Known.STATED)},
    ],
    "providers": [("q",), ("p", "q")],
    "digest": [None, sha(9)],
    "index_digest": [None, sha(9)],
    "source_commit": [None, "d" * 40],
    "size": [0, 1_024],
    "generation": [11],
    "decided_by": [DecidedBy(Level.PROJECT), DecidedBy(Level.SESSION, "growth")],
    "trail": [(), TRAIL[:2], tuple(reversed(TRAIL)), (*TRAIL, TRAIL[0])],
    "tools": [{}, {"node": "22.3.0"}, {**TOOLS, "git": "2.39.6"}],
}


@pytest.mark.parametrize("name, values", CHANGES.items(), ids=CHANGES)
def test_the_digest_changes_with_every_field(name: str, values: list[Any]) -> None:
    digests = {frozen().document_digest, *(replace(frozen(), **{name: v}).document_digest for v in values)}
    assert len(digests) == 1 + len(values)


def test_no_field_is_left_out() -> None:
    assert CHANGES.keys() == {field.name for field in fields(FrozenRelease)}


STANDS_BESIDE = [
    {"description": "another"},
    {"labels": {}},
    {"revision": 5},
    {"created_at": NOW.replace(year=2027)},
]


@pytest.mark.parametrize("change", STANDS_BESIDE)
def test_what_may_change_later_is_not_in_it(change: dict[str, Any]) -> None:
    assert frozen(image=replace(IMAGE, **change)).document == frozen().document


def test_what_was_frozen_before_tools_were_verified_is_still_read() -> None:
    written = {name: value for name, value in EXPECTED.items() if name != "tools"}
    assert rebuild(FrozenRelease, written) == replace(frozen(), tools={})


def test_later_changes_of_what_it_was_made_from_do_not_reach_it() -> None:
    artifacts, tools = dict(VARIANT.artifacts), dict(TOOLS)
    variant, trail = replace(VARIANT, artifacts=artifacts), TRAIL
    it = freeze(IMAGE, RELEASE, variant, reference="web", decided_by=BY, trail=trail, generation=12, tools=tools)
    before = canonical(it)
    artifacts[MANIFEST_DIGEST] = Artifact(sha(9), Known.STATED)
    tools["node"] = "1"
    assert canonical(it) == before
