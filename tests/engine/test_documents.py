"""Documents that strangers wrote: one meaning or a named refusal."""

import json
from typing import Any

import pytest

from sandbay.domain.errors import RefusedError
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.engine.digest import hex_of, parse_digest
from sandbay.engine.documents import MAX_DEPTH, read_document
from sandbay.engine.limits import Limits
from sandbay.engine.manifest import layers_of, parse_config, parse_index, parse_manifest
from sandbay.engine.media import OCI_INDEX, OCI_MANIFEST

A, B = ("sha256:" + letter * 64 for letter in "ab")
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_INDEX = "application/vnd.docker.distribution.manifest.list.v2+json"
LAYER = {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": B, "size": 2}
CONFIG_PART = {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": A, "size": 1}
MANIFEST = {"schemaVersion": 2, "config": CONFIG_PART, "layers": [LAYER]}
ENTRY = {"mediaType": OCI_MANIFEST, "digest": A, "size": 1}
INDEX = {"schemaVersion": 2, "manifests": [ENTRY]}
CONFIG = {"os": "linux", "architecture": "amd64", "rootfs": {"type": "layers", "diff_ids": [B]}}


def reason_of(parse: Any, *arguments: Any) -> Reason:
    with pytest.raises(RefusedError) as caught:
        parse(*arguments)
    return caught.value.refusal.reason


def changed(document: dict[str, Any], **changes: Any) -> bytes:
    """The document with members changed; None takes one away."""
    return json.dumps({name: value for name, value in {**document, **changes}.items() if value is not None}).encode()


@pytest.mark.parametrize(
    "text, reason",
    [
        ("sha512:" + "a" * 128, Reason.UNSUPPORTED_DIGEST),
        ("blake3+x.y:abc_=-", Reason.UNSUPPORTED_DIGEST),
        ("sha256:" + "A" * 64, Reason.INVALID_DIGEST),
        ("sha256:" + "a" * 63, Reason.INVALID_DIGEST),
        ("sha256:" + "a" * 64 + "\n", Reason.INVALID_DIGEST),
        ("SHA256:" + "a" * 64, Reason.INVALID_DIGEST),
        ("a" * 64, Reason.INVALID_DIGEST),
        ("sha256:../../etc/passwd", Reason.INVALID_DIGEST),
        ("md5:../../etc/passwd", Reason.INVALID_DIGEST),
        ("", Reason.INVALID_DIGEST),
    ],
)
def test_digests_are_read_strictly(text: str, reason: Reason) -> None:
    assert reason_of(parse_digest, text) is reason
    assert reason_of(hex_of, text) is reason
    assert hex_of(parse_digest(A)) == "a" * 64


def nested(depth: int) -> bytes:
    return b'{"x":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b'{"a":1,"a":1}',
        b'{"a":{"b":1,"b":2}}',
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":1} {}',
        b'{"a":"\xff"}',
        b"\xef\xbb\xbf{}",
        b'{"a":' + b"9" * 5000 + b"}",
        nested(MAX_DEPTH + 1),
        b"[" * 2_000_000,
        b'{"a":"' + b'\\"' * 1_000_000,
    ],
)
def test_what_two_readers_could_read_differently_is_refused(data: bytes) -> None:
    assert reason_of(read_document, data, Reason.MALFORMED_CONFIG, "config") is Reason.MALFORMED_CONFIG


def test_brackets_in_texts_do_not_count_as_depth() -> None:
    text = json.dumps({"a": "[{" * 1000 + '"\\'}).encode()
    assert read_document(text, Reason.MALFORMED_CONFIG, "config").has("a")
    assert read_document(nested(MAX_DEPTH), Reason.MALFORMED_CONFIG, "config").has("x")


@pytest.mark.parametrize("media_type", [None, OCI_MANIFEST])
def test_a_manifest_need_not_say_its_type_but_must_not_lie(media_type: str | None) -> None:
    data = changed(MANIFEST, mediaType=media_type)
    assert parse_manifest(data, Limits(), OCI_MANIFEST) == parse_manifest(data, Limits())
    if media_type:
        assert reason_of(parse_manifest, data, Limits(), DOCKER_MANIFEST) is Reason.MALFORMED_MANIFEST


def test_docker_types_are_read() -> None:
    config = {**CONFIG_PART, "mediaType": "application/vnd.docker.container.image.v1+json"}
    for ending in ("", ".gzip", ".zstd"):
        layer = {**LAYER, "mediaType": "application/vnd.docker.image.rootfs.diff.tar" + ending}
        data = changed(MANIFEST, mediaType=DOCKER_MANIFEST, config=config, layers=[layer])
        assert parse_manifest(data, Limits(), DOCKER_MANIFEST).layers[0].digest == B
    assert parse_index(changed(INDEX, mediaType=DOCKER_INDEX), DOCKER_INDEX)[0].descriptor.digest == A


@pytest.mark.parametrize(
    "changes, reason",
    [
        ({"schemaVersion": 1}, Reason.MALFORMED_MANIFEST),
        ({"schemaVersion": True}, Reason.MALFORMED_MANIFEST),
        ({"schemaVersion": None}, Reason.MALFORMED_MANIFEST),
        ({"mediaType": OCI_INDEX}, Reason.MALFORMED_MANIFEST),
        ({"mediaType": 7}, Reason.MALFORMED_MANIFEST),
        ({"manifests": []}, Reason.MALFORMED_MANIFEST),
        ({"fsLayers": []}, Reason.MALFORMED_MANIFEST),
        ({"config": None}, Reason.MALFORMED_MANIFEST),
        ({"config": []}, Reason.MALFORMED_MANIFEST),
        ({"layers": None}, Reason.MALFORMED_MANIFEST),
        ({"layers": {}}, Reason.MALFORMED_MANIFEST),
        ({"layers": [7]}, Reason.MALFORMED_MANIFEST),
        ({"layers": [{**LAYER, "size": -1}]}, Reason.MALFORMED_MANIFEST),
        ({"layers": [{**LAYER, "size": 1.5}]}, Reason.MALFORMED_MANIFEST),
        ({"layers": [{**LAYER, "size": "2"}]}, Reason.MALFORMED_MANIFEST),
        ({"layers": [{**LAYER, "digest": 7}]}, Reason.MALFORMED_MANIFEST),
        ({"layers": [{**LAYER, "digest": "../x"}]}, Reason.INVALID_DIGEST),
        ({"layers": [{**LAYER, "mediaType": "text/plain"}]}, Reason.UNSUPPORTED_MEDIA_TYPE),
        ({"config": {**CONFIG_PART, "mediaType": "application/vnd.oci.empty.v1+json"}}, Reason.NOT_AN_IMAGE),
        ({"layers": [LAYER] * 128}, Reason.LIMIT_EXCEEDED),
    ],
)
def test_a_manifest_is_one_or_is_refused(changes: dict[str, Any], reason: Reason) -> None:
    said = OCI_MANIFEST
    assert reason_of(parse_manifest, changed(MANIFEST, **changes), Limits(), said) is reason


def test_as_many_layers_as_the_limit_pass() -> None:
    assert len(parse_manifest(changed(MANIFEST, layers=[LAYER] * 127), Limits()).layers) == 127


@pytest.mark.parametrize("extra", ["layers", "config", "fsLayers"])
def test_an_index_that_is_a_manifest_too(extra: str) -> None:
    assert reason_of(parse_index, changed(INDEX, **{extra: []})) is Reason.MALFORMED_MANIFEST


@pytest.mark.parametrize(
    "extra, platform",
    [
        ({}, None),
        ({"platform": {"os": "linux", "architecture": "arm64", "variant": "v8"}}, Platform("linux", "arm64")),
        ({"platform": {"os": "linux", "architecture": "arm", "variant": "v7"}}, Platform("linux", "arm", "v7")),
        ({"platform": {"os": "unknown", "architecture": "unknown"}}, "left out"),
        ({"platform": {"os": "", "architecture": ""}}, "left out"),
        ({"platform": {"os": "linux/amd64", "architecture": "x"}}, "left out"),
        ({"annotations": {"vnd.docker.reference.type": "attestation-manifest"}}, "left out"),
        ({"artifactType": "application/vnd.example"}, "left out"),
    ],
)
def test_what_an_index_says_of_platforms(extra: dict[str, Any], platform: Platform | str | None) -> None:
    entries = parse_index(changed(INDEX, manifests=[{**ENTRY, **extra}]))
    assert [entry.platform for entry in entries] == ([] if platform == "left out" else [platform])


@pytest.mark.parametrize(
    "changes",
    [
        {"os": None},
        {"os": "unknown"},
        {"architecture": ["amd64"]},
        {"architecture": "am/d64"},
        {"rootfs": None},
        {"rootfs": {"type": "other", "diff_ids": []}},
        {"rootfs": {"type": "layers", "diff_ids": B}},
        {"config": []},
        {"config": {"Cmd": "sh"}},
        {"config": {"Cmd": [["sh"]]}},
        {"config": {"Env": {"A": "1"}}},
        {"config": {"Env": ["NOEQUALS"]}},
        {"config": {"Env": ["=x"]}},
        {"config": {"User": 0}},
        {"config": {"User": "a\0b"}},
        {"config": {"Entrypoint": ["\ud800"]}},
        {"history": {}},
        {"history": ["RUN x"]},
        {"history": [{"created_by": ["RUN"]}]},
        {"history": [{"created_by": "a\0b"}]},
        {"history": [{"empty_layer": "yes"}]},
    ],
)
def test_a_config_is_one_or_is_refused(changes: dict[str, Any]) -> None:
    assert reason_of(parse_config, changed(CONFIG, **changes)) is Reason.MALFORMED_CONFIG


def test_a_config_may_say_nothing_of_running() -> None:
    for inner in (None, {}, {"Cmd": None, "Env": None, "User": None}):
        image = parse_config(changed(CONFIG, config=inner)).image
        assert (image.entrypoint, image.cmd, image.env, image.user) == (None, None, (), "")


STEP, EMPTY = {"created_by": "RUN x"}, {"created_by": "ENV A=1", "empty_layer": True}


@pytest.mark.parametrize(
    "told, steps",
    [
        (None, []),
        ([], []),
        ([EMPTY, STEP, EMPTY], [("ENV A=1", None), ("RUN x", 0), ("ENV A=1", None)]),
        ([{}], [("", 0)]),
        ([{"created_by": None, "empty_layer": None}], [("", 0)]),
        ([{"created_by": "y" * 301}], [("y" * 299 + "…", 0)]),
        ([EMPTY], []),
        ([STEP, STEP], []),
        ([STEP, *[EMPTY] * 999], [("RUN x", 0), *[("ENV A=1", None)] * 999]),
        ([STEP, *[EMPTY] * 1000], []),
    ],
)
def test_a_history_is_told_where_it_fits_the_layers(told: Any, steps: list[tuple[str, int | None]]) -> None:
    config = parse_config(changed(CONFIG, history=told))
    assert [(step.created_by, step.layer) for step in config.history] == steps


def test_layers_and_diff_ids_are_as_many() -> None:
    config = parse_config(changed(CONFIG))
    assert layers_of(parse_manifest(changed(MANIFEST), Limits()), config)[0].diff_id == B
    for layers in ([], [LAYER, LAYER]):
        manifest = parse_manifest(changed(MANIFEST, layers=layers), Limits())
        assert reason_of(layers_of, manifest, config) is Reason.MALFORMED_CONFIG
