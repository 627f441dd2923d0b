"""What an image's folder asks for, and the key under which its result is cached."""

import dataclasses
import hashlib
import pathlib
import tomllib

from images.building.host import BuildError
from images.building.layout import architecture, canonical, input_files

# Raised when the same inputs give other bytes, so that nothing older is taken from a cache.
VERSION = 1
IMAGES = pathlib.Path(__file__).resolve().parents[1]
SUITES = {"debian:12": "bookworm"}


@dataclasses.dataclass(frozen=True, slots=True)
class Recipe:
    """One image's folder. Either `suite` is set (bootstrapped from packages) or `parent` (built on that image)."""

    name: str
    folder: pathlib.Path
    suite: str | None
    parent: str | None


def load(name: str, images: pathlib.Path = IMAGES) -> Recipe:
    """Read `<name>/image.toml`; raise `BuildError` when it is missing or asks for what we cannot do."""
    folder = images / name
    file = folder / "image.toml"
    if not file.is_file():
        known = ", ".join(sorted(path.parent.name for path in images.glob("*/image.toml")))
        raise BuildError(f"no image is called {name}: there are {known}")
    try:
        settings = tomllib.loads(file.read_text())
    except tomllib.TOMLDecodeError as error:
        raise BuildError(f"{file} is not TOML: {error}") from error
    if settings.get("name") != name:
        raise BuildError(f"{file} has to say name = {name!r}, like its folder")
    kind, _, what = str(settings.get("base", "")).partition(":")
    if kind == "bootstrap" and what in SUITES:
        return Recipe(name, folder, suite=SUITES[what], parent=None)
    if kind == "image" and what:
        return Recipe(name, folder, suite=None, parent=what)
    raise BuildError(f"{file}: base has to be bootstrap:{' or bootstrap:'.join(SUITES)} or image:NAME")


def content_key(recipe: Recipe, parent_digest: str | None) -> str:
    """Return the hex key of what a build would give: everything that goes into it, hashed.

    Not the state of Debian's archive: a rebuild for newer packages is asked for with --force.
    """
    inputs = {
        "version": VERSION,
        "architecture": architecture(),
        "base": recipe.suite if parent_digest is None else parent_digest,
        "files": list(input_files(recipe.folder)),
    }
    return hashlib.sha256(canonical(inputs)).hexdigest()
