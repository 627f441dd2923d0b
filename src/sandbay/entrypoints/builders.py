"""How images are built on this host."""

from pathlib import Path

from sandbay.adapters.builders.builder import HostBuilder
from sandbay.adapters.builders.cache import BuildCache
from sandbay.adapters.image_source.layout import FolderTree, LayoutSource
from sandbay.app.installation import host_platform
from sandbay.entrypoints.settings import Settings
from sandbay.ports.builder import Builder
from sandbay.ports.image_source import ImageSource


def open_builder(settings: Settings) -> Builder:
    """This host's own tools, working in the installation's home."""
    cache = BuildCache(settings.build_cache) if settings.build_cache else None
    return HostBuilder(settings.home / "builds", host_platform(), _open_layout, cache)


def _open_layout(folder: Path) -> ImageSource:
    return LayoutSource(lambda: FolderTree(folder))
