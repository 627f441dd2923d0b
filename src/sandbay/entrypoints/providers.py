"""Which providers are installed, and how the one of a local node is opened."""

from importlib.metadata import entry_points
from pathlib import Path

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.entrypoints.settings import PROVIDERS_VARIABLE, Settings
from sandbay.ports.blobs import Blobs
from sandbay.ports.provider import Provider, ProviderAdapter, ProviderPlace


def adapters() -> dict[str, ProviderAdapter]:
    """Every installed provider's adapter, by kind."""
    return {point.name: point.load() for point in entry_points(group="sandbay.providers")}


def open_provider(settings: Settings, kind: str, blobs: Blobs, installation: str) -> Provider:
    """The provider of this host's node of that kind, in folders of its own.

    Refuses with `provider_unknown` where no adapter of that kind is installed, and as the adapter does.
    """
    installed = adapters()
    if kind not in installed:
        message = f"no adapter for {kind} is installed; there are {', '.join(sorted(installed))}"
        raise RefusedError(Reason.PROVIDER_UNKNOWN, message, param=PROVIDERS_VARIABLE)
    place = ProviderPlace(
        *(_own(settings.home, kind), _own(settings.run, kind), blobs, installation),
        reach=settings.reach,
        budget=settings.store_budget,
        limits=settings.image_limits,
        runtime=settings.runtime,
    )
    return installed[kind].open(place)


def node_home(settings: Settings, kind: str) -> Path:
    """Where the node of that kind keeps what outlives it."""
    return settings.home / "nodes" / kind


def _own(above: Path, kind: str) -> Path:
    """Sandboxes run as other users and pass through it."""
    folder = above / "nodes" / kind
    folder.mkdir(mode=0o711, parents=True, exist_ok=True)
    return folder
