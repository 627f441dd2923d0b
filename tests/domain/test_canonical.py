"""What is stored or sent comes back equal, and has one spelling in bytes."""

import dataclasses
import json
import subprocess
import sys
import types
import typing
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pytest
from cattrs.errors import ForbiddenExtraKeysError
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbay.domain.allocation import Allocation, Booted, Order
from sandbay.domain.canonical import canonical, plain, rebuild, sha256
from sandbay.domain.catalog import Channel, Image
from sandbay.domain.declaration import Declaration
from sandbay.domain.deployment import Deployment, SandboxSize
from sandbay.domain.frozen import FrozenRelease
from sandbay.domain.ids import ImageId
from sandbay.domain.node import Node
from sandbay.domain.project import Key, Project
from sandbay.domain.readiness import Readiness
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Fault, ImageConfig, Layer, Release, ReleaseStatus, Variant
from sandbay.domain.session import Session

STORED: list[type] = [Image, Channel, Release, Variant, ReleaseStatus, Deployment, FrozenRelease, Session, Allocation]
STORED += [Order, Booted, Readiness, Node, Project, Key, Declaration, Fault]

_INTEGER = st.integers(-(2**53) + 1, 2**53 - 1)
_FACT = st.recursive(
    st.none() | st.booleans() | _INTEGER | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=12),
    int: _INTEGER,
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    object: _FACT,
    type(None): st.none(),
    datetime: st.datetimes(timezones=st.just(UTC)),
}


def _values(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type; a type that this does not know is an error, so nothing is left out unseen."""
    kind = getattr(kind, "__supertype__", kind)
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    origin, of = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return st.one_of([_values(part) for part in of])
    if origin is tuple and of[1:] == (...,):
        return st.lists(_values(of[0]), max_size=3).map(tuple)
    if origin is frozenset:
        return st.frozensets(_values(of[0]), max_size=3)
    if origin is Mapping:
        return st.dictionaries(_values(of[0]), _values(of[1]), max_size=3)
    if issubclass(kind, StrEnum):
        return st.sampled_from(list(kind))
    assert isinstance(kind, type), kind
    assert dataclasses.is_dataclass(kind), kind
    hints = typing.get_type_hints(kind)
    return st.builds(kind, **{field.name: _values(hints[field.name]) for field in dataclasses.fields(kind)})


@pytest.mark.parametrize("kind", STORED, ids=lambda kind: kind.__name__)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_what_is_stored_comes_back_equal(kind: type, data: st.DataObject) -> None:
    value = data.draw(_values(kind))
    text = canonical(value)
    again: object = rebuild(kind, json.loads(text))
    assert again == value
    assert type(again) is kind
    assert canonical(again) == text
    assert rebuild(kind, json.loads(json.dumps(plain(value)))) == value


def test_the_bytes_are_fixed() -> None:
    # Digests of frozen releases are over these bytes: they may never change.
    size = SandboxSize(cpus=1.5, memory=10, pids=3)
    assert canonical(size) == b'{"cpus":1.5,"memory":10,"pids":3}'
    fault = Fault(Reason.NO_SPACE, "é", {"b": [1, None, True], "a": {}})
    expected = '{"details":{"a":{},"b":[1,null,true]},"message":"é","reason":"no_space"}'
    assert canonical(fault) == expected.encode()
    assert sha256(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_order_of_keys_makes_no_difference() -> None:
    assert canonical({"b": 1, "a": 2}) == canonical({"a": 2, "b": 1})


def test_sets_have_one_spelling_in_every_process() -> None:
    # String hashes differ between processes, so the order of a set does; the bytes may not.
    program = (
        "from sandbay.domain.canonical import canonical;from sandbay.domain import declaration as d;"
        "print(canonical(d.Declaration('k',d.Mode.NODE,{},(),frozenset({'gzip','zstd','plain'}),1,"
        "frozenset(d.Ability),frozenset(d.Network),frozenset(d.Resource),d.Isolation.REMOTE)).decode())"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(seen) == 1


LAYER = {"digest": "d", "diff_id": "i", "size": 1, "media_type": "m"}


@pytest.mark.parametrize(
    "kind, data",
    [
        (int, "5"),
        (int, 5.0),
        (int, True),
        (str, 5),
        (str, None),
        (bool, 1),
        (float, "1"),
        (float, True),
        (ImageId, 5),
        (Layer, LAYER | {"size": "1"}),
        (Layer, LAYER | {"more": 1}),
        (Layer, {"digest": "d"}),
        (Layer, []),
        (ImageConfig, {"cmd": "sh"}),
        (ImageConfig, {"cmd": {"sh": 1}}),
        (ImageConfig, {"cmd": [1]}),
        (Fault, {"reason": "no_such_reason", "message": ""}),
        (Fault, {"reason": 1, "message": ""}),
    ],
)
def test_data_that_was_not_written_by_us_is_refused(kind: type, data: object) -> None:
    with pytest.raises((TypeError, ValueError, KeyError, AttributeError, ForbiddenExtraKeysError)):
        rebuild(kind, data)


def test_its_healthy_neighbours_are_read() -> None:
    assert rebuild(Layer, LAYER) == Layer("d", "i", 1, "m")
    assert rebuild(ImageConfig, {"cmd": ["sh"], "entrypoint": None}) == ImageConfig(cmd=("sh",))
    assert rebuild(Fault, {"reason": "no_space", "message": ""}) == Fault(Reason.NO_SPACE, "")
    assert rebuild(SandboxSize, {"cpus": 1, "memory": 2, "pids": 3}) == SandboxSize(1.0, 2, 3)
