"""Which providers are installed, and how the local node's is opened."""

from importlib.metadata import entry_points

from sandbay.entrypoints.settings import Settings
from sandbay.ports.blobs import Blobs
from sandbay.ports.provider import Provider, ProviderAdapter, ProviderPlace


def adapters() -> dict[str, ProviderAdapter]:
    """Every installed provider's adapter, by kind."""
    return {point.name: point.load() for point in entry_points(group="sandbay.providers")}


def open_provider(settings: Settings, blobs: Blobs, installation: str) -> Provider:
    """The local node's provider."""
    place = ProviderPlace(
        *(settings.home, settings.run, blobs, installation),
        reach=settings.reach,
        budget=settings.store_budget,
        limits=settings.image_limits,
        runtime=settings.runtime,
    )
    return adapters()[settings.provider].open(place)
