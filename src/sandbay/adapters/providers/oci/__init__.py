"""The oci provider: our layer store, overlay mounts and an OCI runtime on this host."""

from dataclasses import replace

from sandbay.adapters.providers.oci.choice import Choice
from sandbay.adapters.providers.oci.declaration import DECLARATION
from sandbay.adapters.providers.oci.provider import OciProvider
from sandbay.adapters.providers.oci.settings import OciSettings
from sandbay.engine.limits import Limits
from sandbay.engine.store import LayerStore
from sandbay.ports.provider import ProviderAdapter, ProviderPlace


def _open(place: ProviderPlace) -> OciProvider:
    layers = LayerStore(place.home / "store", place.blobs, Limits(**place.limits), place.budget)
    settings = OciSettings(reach=place.reach)
    choice = Choice(place, settings)
    chosen = choice.runtime()
    settings = replace(settings, runtime=chosen, explain=lambda: choice.findings(chosen))
    provider = OciProvider(place.home, place.run, layers, place.installation, settings)
    layers.sweep(provider.mounted())
    return provider


PROVIDER = ProviderAdapter(DECLARATION, _open)
