"""What booted is read from a mount table, and never from what was asked for."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sandbay.adapters.providers.oci.freeing import stop_signal_of
from sandbay.adapters.providers.oci.identity import booted_from, mounted_lowers
from sandbay.domain.release import ContentKey, ImageConfig

OVERLAY = (
    "92 69 0:39 / / rw,nodev - overlay overlay rw,{},upperdir=/u,workdir=/w\n93 92 0:42 / /proc rw - proc proc rw\n"
)


@dataclass(frozen=True)
class Held:
    key: ContentKey
    lowers: tuple[str, ...]
    artifacts: dict[str, str]
    config: ImageConfig = field(default_factory=ImageConfig)
    layers_folder: Path = Path("/l")


ONE = Held(ContentKey("sha256:1"), ("b", "a"), {"image_id": "1"})
TWIN = Held(ContentKey("sha256:2"), ("b", "a"), {"image_id": "2"})
OTHER = Held(ContentKey("sha256:3"), ("c",), {"image_id": "3"})


@pytest.mark.parametrize(
    "options, lowers",
    [
        ("lowerdir=b:a", ("b", "a")),
        ("lowerdir=/run/x/l/b:/run/x/l/a", ("b", "a")),
        ("lowerdir+=b,lowerdir+=a", ("b", "a")),
        ("lowerdir=.", ()),
        ("lowerdir=/with\\040space/b", ("b",)),
    ],
)
def test_lowers_of_the_root(options: str, lowers: tuple[str, ...]) -> None:
    assert mounted_lowers(OVERLAY.format(options)) == lowers


def test_a_root_that_is_no_overlay_tells_nothing() -> None:
    assert mounted_lowers("65 43 254:0 / / rw - ext4 /dev/vda rw\n") is None


def test_another_image_is_reported_as_what_it_is() -> None:
    assert booted_from(("c",), [ONE, TWIN, OTHER], ONE.key) is OTHER
    assert booted_from(("x",), [ONE, TWIN, OTHER], ONE.key) is None


def test_twins_by_layers_are_told_apart_by_what_was_assembled() -> None:
    assert booted_from(("b", "a"), [ONE, TWIN], TWIN.key) is TWIN
    assert booted_from(("b", "a"), [ONE], TWIN.key) is ONE


@pytest.mark.parametrize(
    "text, name",
    [
        ("SIGQUIT", "SIGQUIT"),
        ("quit", "SIGQUIT"),
        ("3", "SIGQUIT"),
        ("", "SIGTERM"),
        ("9999", "SIGTERM"),
        ("x", "SIGTERM"),
    ],
)
def test_stop_signals(text: str, name: str) -> None:
    assert stop_signal_of(text).name == name
