"""What the oci provider can do, as data."""

import platform
from dataclasses import replace

from sandbay.domain.declaration import Ability, ArtifactRule, Declaration, Isolation, Mode, Network, Resource
from sandbay.domain.platform import Platform
from sandbay.domain.release import IMAGE_ID, MANIFEST_DIGEST

_SHA256 = ArtifactRule(r"sha256:[0-9a-f]{64}")

DECLARATION = Declaration(
    kind="oci",
    mode=Mode.NODE,
    artifacts={MANIFEST_DIGEST: _SHA256, IMAGE_ID: _SHA256},
    platforms=(Platform.of("linux", platform.machine()),),
    layer_formats=frozenset({"gzip", "zstd", "plain"}),
    max_layers=127,
    abilities=frozenset({Ability.EXEC, Ability.PTY, Ability.FILES, Ability.SUSPEND}),
    networks=frozenset({Network.DISABLED, Network.ENABLED}),
    enforces=frozenset({Resource.CPUS, Resource.MEMORY, Resource.PIDS}),
    isolation=Isolation.NAMESPACES,
)


def declaration_here(enforces: frozenset[Resource], *, network: bool) -> Declaration:
    """The declaration, less the limits and the network that this host cannot enforce."""
    networks = DECLARATION.networks if network else frozenset({Network.DISABLED})
    return replace(DECLARATION, enforces=DECLARATION.enforces & enforces, networks=networks)
