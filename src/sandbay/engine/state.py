"""What can be told of a store by looking, while nobody or somebody works in it: nothing is changed, nothing locked."""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sandbay.engine.usage import size_of

_NAMES = ("records", "layers", "l", "staging")


@dataclass(frozen=True, slots=True)
class StoreState:
    """Counts. `torn`: records of layers whose tree is gone. `leftover`: what the next start sweeps.

    `lost`: records of variants that name a layer which is not there. `used`: bytes of the trees.
    """

    variants: int
    trees: int
    used: int
    torn: int
    leftover: int
    lost: int


def look(root: Path) -> StoreState | None:
    """The store at `root`; None when there is none. What changes meanwhile may be counted or not."""
    if not (root / "records").is_dir():
        return None
    records, layers, trees, staging = (_listed(root / name) for name in _NAMES)
    named = {f"sha256:{Path(name).stem}": _read(root / "layers" / name) for name in layers}
    whole = {key for key, it in named.items() if it.get("short") in trees}
    unnamed = trees - {it.get("short") for it in named.values()}
    return StoreState(
        variants=len(records),
        trees=len(whole),
        used=sum(size_of(_number(named[key], "bytes"), _number(named[key], "entries")) for key in whole),
        torn=len(named) - len(whole),
        leftover=len(staging) + len(unnamed),
        lost=sum(not whole.issuperset(_needed(root / "records" / name)) for name in records),
    )


def _listed(folder: Path) -> set[str]:
    with suppress(FileNotFoundError):
        return set(os.listdir(folder))
    return set()


def _number(record: dict[str, object], name: str) -> int:
    found = record.get(name)
    return found if isinstance(found, int) else 0


def _needed(path: Path) -> Iterator[str]:
    """What a record of a variant stands on. A damaged one stands on what is nowhere."""
    layers = _read(path).get("layers")
    return (str(layer["key"]) for layer in layers) if isinstance(layers, list) else iter(["nothing"])


def _read(path: Path) -> dict[str, object]:
    with suppress(OSError, ValueError):
        found = json.loads(path.read_bytes())
        if isinstance(found, dict):
            return found
    return {}
