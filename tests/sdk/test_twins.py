"""Both clients offer the same: each public name, with the same arguments, and nothing besides."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from sandbay.sdk import _async, _sync
from tools import sdk

_SAME = {"aclose": "close", "__aenter__": "__enter__", "__aexit__": "__exit__", "__aiter__": "__iter__"}
MODULES = sorted(module.name for module in pkgutil.iter_modules(_async.__path__))


def classes(package: Any, module: str) -> Mapping[str, type]:
    found = importlib.import_module(f"{package.__name__}.{module}")
    return {
        name.removeprefix("Async"): value
        for name, value in vars(found).items()
        if isinstance(value, type) and value.__module__ == found.__name__
    }


def surface(kind: type) -> Mapping[str, str]:
    """Its public members with their arguments, as the synchronous client names them."""
    return {_SAME.get(name, name): _arguments(member) for name, member in _members(kind)}


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    for name, member in vars(kind).items():
        if (not name.startswith("_") or name in _SAME or name in _SAME.values()) and not isinstance(member, str):
            yield name, member.__func__ if isinstance(member, classmethod) else member


def _arguments(member: Any) -> str:
    if not inspect.isfunction(member):
        return type(member).__name__
    named = [one for one in inspect.signature(member).parameters.values() if one.name != "sleep"]
    return ", ".join(f"{one.kind.name} {one.name} = {one.default}" for one in named)


@pytest.mark.parametrize("module", MODULES)
def test_both_have_the_same_classes_with_the_same_members(module: str) -> None:
    mine, twin = classes(_async, module), classes(_sync, module)
    assert mine.keys() == twin.keys()
    for name, kind in mine.items():
        assert surface(kind) == surface(twin[name]), name


@pytest.mark.parametrize("module", MODULES)
def test_only_the_one_waits(module: str) -> None:
    waits = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    for kind in classes(_sync, module).values():
        assert not [name for name, member in vars(kind).items() if any(wait(member) for wait in waits)]


def test_what_is_committed_is_what_the_source_says() -> None:
    folder = sdk.FOLDER
    assert {path.name: path.read_text() for path in folder.glob("*.py")} == sdk.twins()


def test_a_twin_edited_by_hand_is_noticed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = dict(sdk.twins())
    edited = wanted["client.py"] + "\n"
    monkeypatch.setattr(sdk, "twins", lambda: {**wanted, "client.py": edited, "gone.py": ""})
    assert sdk.main(["--check"]) == 1
    said = capsys.readouterr().out
    assert "_sync/client.py" in said
    assert "_sync/gone.py" in said
    assert "_sync/admin.py" not in said
