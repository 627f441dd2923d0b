"""Templates as they lie on a disk: one document, or a folder with everything that belongs to one.

    template.toml     the members of the API, in TOML; or template.json
    files/            what is laid out in the workspace
    skills/NAME/      a folder with SKILL.md, each
    plugins/NAME/     a folder with plugin.json, each

What is well-formed is for the installation to judge.
"""

import base64
import json
import os
import pathlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbay.sdk.errors import RequestError
from sandbay.sdk.resources import FrozenImage
from sandbay.sdk.wire import Resource, each, take

_MOST = 1000
_NAMES = ("template.toml", "template.json")


@dataclass(frozen=True, kw_only=True)
class Template(Resource):
    """A project's reusable preparation of Sessions; its other members are in `raw`.

    `upgrade_available`: the newer release, as `web:9`, of an image that it is pinned to an older one of.
    """

    id: str
    name: str
    revision: int
    runtime_image_id: str | None = None
    upgrade_available: str | None = None
    image: FrozenImage | None = None
    refusal: Mapping[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    updated_at: str | None = None

    @classmethod
    def of(cls, data: Any) -> "Template":
        """From the template's resource."""
        return take(cls, data, image=FrozenImage.of, warnings=each(str))


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A Template's members, `name` among them where it says one. Raises `RequestError` (invalid_body), OSError."""
    where = pathlib.Path(path)
    if not where.is_dir():
        return parse(where.read_bytes())
    document = next((where / name for name in _NAMES if (where / name).is_file()), None)
    said = {} if document is None else parse(document.read_bytes())
    found = {"files": inline(where / "files"), "skills": _each(where / "skills"), "plugins": _each(where / "plugins")}
    for member, items in found.items():
        if items:
            said[member] = [*said.get(member, ()), *items]
    return said


def parse(data: bytes) -> dict[str, Any]:
    """A document in JSON or TOML."""
    try:
        text = data.decode()
        said = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except (UnicodeDecodeError, ValueError) as error:
        raise RequestError(f"the Template is neither JSON nor TOML: {error}", code="invalid_body") from error
    return dict(said)


def inline(folder: pathlib.Path) -> list[dict[str, Any]]:
    """The files below a folder, as the API takes them; nothing when there is no such folder. Links are not followed."""
    files = sorted(pathlib.Path(above) / name for above, _, names in os.walk(folder) for name in names)
    if len(files) > _MOST:
        raise RequestError(
            f"there are {len(files)} files in {folder}; that many cannot come inline", code="invalid_body"
        )
    return [
        file(path.relative_to(folder).as_posix(), path.read_bytes(), executable=os.access(path, os.X_OK))
        for path in files
        if path.is_file() and not path.is_symlink()
    ]


def file(path: str, data: str | bytes, *, executable: bool = False) -> dict[str, Any]:
    """One file as the API takes it: text as it is, other bytes in base64."""
    said: dict[str, Any] = {"path": path, "executable": executable} if executable else {"path": path}
    if isinstance(data, str):
        return {**said, "content": data}
    try:
        return {**said, "content": data.decode()}
    except UnicodeDecodeError:
        return {**said, "encoding": "base64", "content": base64.b64encode(data).decode()}


def files(contents: Mapping[str, str | bytes] | None) -> list[dict[str, Any]] | None:
    """Path → content, as the API takes them."""
    return None if contents is None else [file(path, data) for path, data in contents.items()]


def _each(folder: pathlib.Path) -> list[dict[str, Any]]:
    folders = sorted(it for it in folder.iterdir() if it.is_dir()) if folder.is_dir() else []
    return [{"files": inline(it)} for it in folders]
