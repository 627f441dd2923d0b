"""Finished layouts by the digest of their inputs: another installation on this host, or this one anew, builds nothing.

What is kept is looked at whole before it is used, since nobody else has.
"""

import os
import secrets
import shutil
from pathlib import Path

from sandbay.adapters.builders.layout import is_whole
from sandbay.engine.digest import hex_of
from sandbay.engine.durable import make_folder, remove_tree

_PART = ".part"


class BuildCache:
    """A folder. Several processes may share it."""

    def __init__(self, folder: Path, *, kept: int = 64) -> None:
        """`kept` layouts at most, the least recently used go first."""
        self._folder, self._kept = make_folder(folder), kept

    def find(self, key: str) -> Path | None:
        """The layout that these inputs gave, whole and right."""
        place = self._folder / hex_of(key)
        if not place.is_dir():
            return None
        if not is_whole(place):
            remove_tree(place)
            return None
        os.utime(place)
        return place

    def keep(self, key: str, layout: Path) -> None:
        """Keep a copy, visible only when it is whole, in place of an older one."""
        place = self._folder / hex_of(key)
        part = self._folder / f"{secrets.token_hex(8)}{_PART}"
        try:
            shutil.copytree(layout, part)
            if place.exists():
                place.rename(part.with_suffix(".old"))
                remove_tree(part.with_suffix(".old"))
            part.rename(place)
        finally:
            remove_tree(part)
        self._trim()

    def _trim(self) -> None:
        layouts = [path for path in self._folder.iterdir() if path.suffix == ""]
        by_use = sorted(layouts, key=lambda path: path.stat().st_mtime, reverse=True)
        for old in by_use[self._kept :]:
            remove_tree(old)
