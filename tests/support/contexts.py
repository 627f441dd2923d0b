"""Build contexts as clients send them: the tar of a folder, from Python data."""

from collections.abc import Mapping, Sequence

from tests.support.tar_entries import Entry, file, folder, tar


def packed(files: Mapping[str, str | bytes], *more: Entry) -> bytes:
    """The tar of a folder with these files, its folders before them; `more` as it is."""
    folders = sorted({"/".join(path.split("/")[: n + 1]) for path in files for n in range(path.count("/"))})
    return tar([*(folder(name) for name in folders), *(_file(*it) for it in sorted(files.items())), *more])


def _file(path: str, content: str | bytes) -> Entry:
    return file(path, content if isinstance(content, bytes) else content.encode())


def recipe(name: str, base: str, containerfile: Sequence[str] = (), **files: str) -> bytes:
    """A context with an image.toml: `recipe("web", "image:base", ["COPY which /which"], which="web")`."""
    lines = ["ARG BASE", "FROM ${BASE}", *containerfile]
    toml = f'name = "{name}"\nbase = "{base}"\n'
    return packed({"image.toml": toml, "Containerfile": "\n".join(lines) + "\n", **files})


def plain(lines: Sequence[str], **files: str) -> bytes:
    """A context with a plain Dockerfile."""
    return packed({"Dockerfile": "\n".join(lines) + "\n", **files})
