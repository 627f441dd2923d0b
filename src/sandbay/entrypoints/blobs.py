"""Where the installation's blobs lie: in its home, or in a registry."""

from collections.abc import Callable
from contextlib import ExitStack

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.adapters.blobs.registry import RegistryBlobs
from sandbay.domain.registry import Credentials
from sandbay.engine.registry.pace import Pace
from sandbay.engine.registry.trust import Trust
from sandbay.entrypoints.identities import identities
from sandbay.entrypoints.settings import Settings
from sandbay.ports.blobs import Blobs


def open_blobs(settings: Settings, kept: Callable[[str], Credentials | None], pace: Pace, closing: ExitStack) -> Blobs:
    """The one that the settings name; `kept`: what the installation has for a registry's host.

    A registry is not asked before it is needed: it may be away at the start.
    """
    place = settings.blobs
    if place is None:
        return FolderBlobs(settings.home / "blobs")

    def login() -> Credentials | None:
        return settings.blobs_login or kept(place.domain)

    trust = Trust(settings.plain_registries)
    installation = identities(settings.home).installation
    return closing.enter_context(RegistryBlobs(place, installation, login, trust, settings.home / "pushing", pace))
