"""Where `sandbay images register` takes a release from: one of its options, or what is stated of it alone."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from sandbay.sdk._sync.catalog import Images
    from sandbay.sdk.catalog import Asked
    from sandbay.sdk.releases import Release
    from sandbay.sdk.resources import ProgressCallback

Source = Callable[["Images", str, "ProgressCallback", "Asked"], "Release"]
"""Registers a release of the named image."""


def one_source(artifacts: Mapping[str, str], **given: str | None) -> Source:
    """The source that the options `--from-…` name. Wrong usage unless it is one, or artifacts stand for it."""
    named = {kind: text for kind, text in given.items() if text is not None}
    if not named and artifacts:
        return _bare
    if len(named) != 1:
        options = ", ".join(f"--from-{kind}" for kind in given)
        raise typer.BadParameter(f"give exactly one of {options}, or --artifact alone")
    ((kind, text),) = named.items()
    return _SOURCES[kind](text)


def named_values(given: list[str] | None) -> Mapping[str, str]:
    """`NAME=VALUE` of a repeated option. Wrong usage where one is none, or a name comes twice."""
    pairs = [text.partition("=") for text in given or ()]
    for name, equals, value in pairs:
        if not (name and equals and value) or [pair[0] for pair in pairs].count(name) > 1:
            raise typer.BadParameter(f"--artifact takes NAME=VALUE, each name once, not {name}{equals}{value}")
    return {name: value for name, _, value in pairs}


def _bare(images: "Images", name: str, _: "ProgressCallback", asked: "Asked") -> "Release":
    return images.register_artifacts(name, **asked)


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
        return images.register_registry(name, text, progress=progress, **asked)

    return register


_SOURCES: dict[str, Callable[[str], Source]] = {"layout": _layout, "archive": _archive, "registry": _registry}
