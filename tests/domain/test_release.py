"""What a content key is over, and which moves a release may make."""

import hashlib
from dataclasses import fields, replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbay.domain.ids import ImageId, ReleaseId
from sandbay.domain.platform import Platform
from sandbay.domain.release import (
    IMAGE_ID,
    MANIFEST_DIGEST,
    RELEASE_MOVES,
    Artifact,
    ImageConfig,
    Known,
    Layer,
    Release,
    ReleaseState,
    Step,
    Variant,
    content_key,
)

AMD, ARM = Platform.of("linux", "amd64"), Platform.of("linux", "arm64")
ONE, TWO = "sha256:" + "1" * 64, "sha256:" + "2" * 64
LAYER = Layer(ONE, TWO, 10, "application/vnd.oci.image.layer.v1.tar+gzip")


def _variant(**changes: Any) -> Variant:
    plain = Variant(
        platform=AMD,
        artifacts={MANIFEST_DIGEST: Artifact(ONE, Known.COMPUTED), IMAGE_ID: Artifact(TWO, Known.COMPUTED)},
        providers=("a",),
    )
    return replace(plain, **changes)


def test_the_key_is_fixed() -> None:
    # Nodes, pins and stores are keyed by it: a change here orphans what is on every disk.
    written = '{"artifacts":{"image_manifest_digest":"sha256:' + "1" * 64 + '"},"platform":"linux/amd64"}'
    expected = "sha256:" + hashlib.sha256(written.encode()).hexdigest()
    assert content_key(AMD, {MANIFEST_DIGEST: ONE}) == expected


OTHER: dict[str, dict[str, Any]] = {
    "providers": {"providers": ("a", "b")},
    "layers": {"layers": (LAYER,)},
    "config": {"config": ImageConfig(user="x")},
    "manifest_size": {"manifest_size": 5},
    "config_size": {"config_size": 5},
    "index_digest": {"index_digest": TWO},
    "source": {"source": "reg.example/x@" + TWO},
    "history": {"history": (Step("RUN make", 0),)},
    "known": {"artifacts": {n: replace(a, known=Known.STATED) for n, a in _variant().artifacts.items()}},
    "order": {"artifacts": dict(reversed(list(_variant().artifacts.items())))},
}


@pytest.mark.parametrize("change", OTHER.values(), ids=OTHER)
def test_what_the_key_does_not_depend_on(change: dict[str, Any]) -> None:
    assert _variant(**change).content_key == _variant().content_key


def test_every_field_is_inside_the_key_or_outside_it_on_purpose() -> None:
    assert {field.name for field in fields(Variant)} == (OTHER.keys() - {"known", "order"}) | {"platform", "artifacts"}


@pytest.mark.parametrize(
    "change",
    [
        {"platform": ARM},
        {"platform": Platform.of("linux", "amd64", "v3")},
        {"artifacts": {}},
        {"artifacts": {MANIFEST_DIGEST: Artifact(ONE, Known.COMPUTED)}},
        {"artifacts": {MANIFEST_DIGEST: Artifact(TWO, Known.COMPUTED), IMAGE_ID: Artifact(ONE, Known.COMPUTED)}},
    ],
)
def test_what_the_key_depends_on(change: dict[str, Any]) -> None:
    assert _variant(**change).content_key != _variant().content_key


_ARTIFACTS = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)
_PLATFORMS = st.sampled_from([AMD, ARM, Platform.of("linux", "arm", "v7")])


@given(_PLATFORMS, _ARTIFACTS, _PLATFORMS, _ARTIFACTS)
def test_equal_keys_mean_equal_content(p: Platform, a: dict[str, str], q: Platform, b: dict[str, str]) -> None:
    assert (content_key(p, a) == content_key(q, b)) is ((p, a) == (q, b))


def test_each_layer_is_fetched_once() -> None:
    other = replace(LAYER, digest=TWO, size=7)
    assert _variant(layers=(LAYER, other, LAYER), manifest_size=2, config_size=3).size == 2 + 3 + 10 + 7


def test_a_variant_without_a_manifest_has_no_digest() -> None:
    assert _variant().digest == ONE
    assert _variant(artifacts={"template": Artifact("t:1", Known.STATED)}).digest is None


def test_only_the_very_platform_will_do() -> None:
    release = Release(ReleaseId("rel_x"), ImageId("img_x"), 1, (_variant(),))
    assert release.variant_for(AMD) == _variant()
    assert release.variant_for(ARM) is None
    assert release.variant_for(Platform.of("linux", "amd64", "v3")) is None


LEGAL = {
    ("pending", "active"),
    ("pending", "rejected"),
    ("active", "deprecated"),
    ("active", "retired"),
    ("deprecated", "active"),
    ("deprecated", "retired"),
    ("retired", "active"),
}


@pytest.mark.parametrize("here, there", list(product(ReleaseState, ReleaseState)))
def test_moves(here: ReleaseState, there: ReleaseState) -> None:
    assert (there in RELEASE_MOVES[here]) is ((here.value, there.value) in LEGAL)
