"""One identity from what bytes tell and people state, and who can run it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from sandbay.domain.declaration import ArtifactRule, Declaration
from sandbay.domain.errors import Refusal
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Artifact, Known, Layer, Variant
from sandbay.flow.identify import identify, undeclared
from tests.fakes.memory_provider import DECLARATION

D1, D2 = ("sha256:" + digit * 64 for digit in "12")
BYTES = replace(DECLARATION, kind="bytes")
HASH = ArtifactRule("[0-9a-f]{4}", Known.REPORTED)
VM = replace(DECLARATION, kind="vm", artifacts={"ref": ArtifactRule("[a-z]+@[0-9]+", Known.STATED), "firmware": HASH})
ALL = {each.kind: each for each in (BYTES, VM)}
FROM_BYTES = {name: Artifact(value, Known.COMPUTED) for name, value in zip(BYTES.artifacts, (D1, D2), strict=True)}
GZIP, ZSTD = ("application/vnd.oci.image.layer.v1.tar+" + packed for packed in ("gzip", "zstd"))


def variant(artifacts: Mapping[str, Artifact] = FROM_BYTES, layers: Sequence[str] = (GZIP,)) -> Variant:
    found = tuple(Layer(D1, D2, 1, media_type) for media_type in layers)
    return Variant(Platform.of("linux", "amd64"), artifacts, (), found)


def told(
    it: Variant,
    *stated: Mapping[str, str],
    declarations: Mapping[str, Declaration] = ALL,
    asked: Sequence[str] | None = None,
) -> tuple[str, ...] | tuple[Reason, str | None]:
    """The providers, or the reason and its parameter."""
    answer = identify(it, stated, declarations, asked)
    return (answer.reason, answer.param) if isinstance(answer, Refusal) else answer.providers


INCOMPLETE, NOT_ONE = Reason.RELEASE_INCOMPLETE, Reason.NOT_ONE_DISTRIBUTION
MANIFEST, CONFIG = BYTES.artifacts
VM_SAID = {"ref": "web@1", "firmware": "00ff"}


@pytest.mark.parametrize(
    "it, stated, asked, answer",
    [
        (variant(), [], None, ("bytes",)),
        (variant(), [VM_SAID], None, ("bytes", "vm")),
        (variant(), [{"ref": "web@1"}, {"firmware": "00ff"}], None, ("bytes", "vm")),
        (variant(), [VM_SAID], ["vm"], ("vm",)),
        (variant(), [VM_SAID], ["vm", "bytes"], ("vm", "bytes")),
        (variant(), [], ["bytes", "vm"], (INCOMPLETE, "artifacts.ref")),
        (variant(), [{"ref": "web@1"}], ["vm"], (INCOMPLETE, "artifacts.firmware")),
        # Without bytes: what wants to compute an artifact has no use for one that is stated.
        (variant({}, []), [VM_SAID], None, ("vm",)),
        (variant({}, []), [VM_SAID], ["bytes"], (INCOMPLETE, f"artifacts.{MANIFEST}")),
        (variant({}, []), [{MANIFEST: D1}], None, (INCOMPLETE, f"artifacts.{CONFIG}")),
        (variant({}, []), [{MANIFEST: D1, CONFIG: D2}], None, (INCOMPLETE, f"artifacts.{MANIFEST}")),
        (variant({}, []), [{MANIFEST: D1, CONFIG: D2}, VM_SAID], None, ("vm",)),
        (variant({}, []), [{}], None, (INCOMPLETE, f"artifacts.{MANIFEST}")),
        # Two words on one artifact.
        (variant(), [{MANIFEST: D1, CONFIG: D2}], None, ("bytes",)),
        (variant(), [{MANIFEST: D2}], None, (NOT_ONE, f"artifacts.{MANIFEST}")),
        (variant(), [{"ref": "web@1"}, {"ref": "web@1"}], None, ("bytes",)),
        (variant(), [{"ref": "web@1"}, {"ref": "web@2"}], None, (NOT_ONE, "artifacts.ref")),
        # Forms.
        (variant(), [{"ref": "web"}], None, (INCOMPLETE, "artifacts.ref")),
        (variant(), [{"ref": "web@1\n"}], None, (INCOMPLETE, "artifacts.ref")),
        (variant(), [{"of-nobody": "anything"}], None, ("bytes",)),
        # Layers.
        (variant(layers=[GZIP] * 128), [], None, (INCOMPLETE, "layers")),
        (variant(layers=[GZIP] * 127), [], None, ("bytes",)),
        (variant(layers=[GZIP] * 128), [VM_SAID], None, ("vm",)),
    ],
)
def test_who_can_run_what(
    it: Variant, stated: list[Mapping[str, str]], asked: list[str] | None, answer: tuple[object, ...]
) -> None:
    assert told(it, *stated, asked=asked) == answer


@pytest.mark.parametrize("media_type, packed", [(GZIP, "gzip"), (ZSTD, "zstd"), ("application/x.tar", "plain")])
def test_a_provider_that_cannot_unpack_it_is_none(media_type: str, packed: str) -> None:
    takes = {p: {"a": replace(BYTES, layer_formats=frozenset({p}))} for p in ("gzip", "zstd", "plain")}
    for format_, declarations in takes.items():
        answer = told(variant(layers=[media_type]), declarations=declarations)
        assert answer == (("a",) if format_ == packed else (INCOMPLETE, "layers"))


def test_what_is_computed_stays_so_and_the_rest_is_stated() -> None:
    whole = identify(variant(), [{MANIFEST: D1, **VM_SAID}], ALL, None)
    assert isinstance(whole, Variant)
    assert whole.artifacts == {**FROM_BYTES, **{name: Artifact(value, Known.STATED) for name, value in VM_SAID.items()}}
    assert whole.content_key != variant().content_key


def test_the_refusal_tells_both_values() -> None:
    refusal = identify(variant(), [{MANIFEST: D2}], ALL, None)
    assert isinstance(refusal, Refusal)
    assert refusal.details == {"artifact": MANIFEST, "computed": D1, "other": D2}


def test_an_artifact_that_nobody_declares() -> None:
    assert undeclared(["ref", MANIFEST], ALL) is None
    refusal = undeclared(["ref", "refs"], ALL)
    assert refusal is not None
    assert (refusal.reason, refusal.param) == (INCOMPLETE, "artifacts.refs")
    assert refusal.details == {"declared": sorted([*BYTES.artifacts, *VM.artifacts])}
