"""Where `sandbay images register` takes a release from: exactly one of its options."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from sandbay.sdk._sync.catalog import Images
    from sandbay.sdk.catalog import Asked
    from sandbay.sdk.resources import ProgressCallback, Release

Source = Callable[["Images", str, "ProgressCallback", "Asked"], "Release"]
"""Registers a release of the named image."""


def one_source(**given: str | None) -> Source:
    """The source that the options `--from-…` name. Wrong usage unless it is exactly one."""
    named = {kind: text for kind, text in given.items() if text is not None}
    if len(named) != 1:
        options = ", ".join(f"--from-{kind}" for kind in given)
        raise typer.BadParameter(f"give exactly one of {options}")
    ((kind, text),) = named.items()
    return _SOURCES[kind](text)


def _layout(text: str) -> Source:
    def register(images: "Images", name: str, progress: "ProgressCallback", asked: "Asked") -> "Release":
        from sandbay.sdk.layout import split_tag

        folder, tag = split_tag(text)
        return images.register_layout(name, folder, tag=tag, progress=progress, **asked)

    return register


def _archive(text: str) -> Source:
    def register(images: "Images", name: str, progress: "ProgressCallback", asked: "Asked") -> "Release":
        from sandbay.sdk.archive import split_archive_tag

        file, tag = split_archive_tag(text)
        return images.register_archive(name, file, tag=tag, progress=progress, **asked)

    return register


def _registry(text: str) -> Source:
    def register(images: "Images", name: str, progress: "ProgressCallback", asked: "Asked") -> "Release":
        from sandbay.sdk.resources import Progress

        progress(Progress(f"fetching {text}"))
        return images.register_registry(name, text, **asked)

    return register


_SOURCES: dict[str, Callable[[str], Source]] = {"layout": _layout, "archive": _archive, "registry": _registry}
