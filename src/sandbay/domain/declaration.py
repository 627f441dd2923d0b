"""What an adapter declares of its provider. The rest of the system reads this and never a name."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sandbay.domain.platform import Platform
from sandbay.domain.release import Known


class Mode(StrEnum):
    """A node runs it, or a remote service does."""

    NODE = "node"
    DIRECT = "direct"


class Ability(StrEnum):
    """Each is present or absent; an absent one is refused by name."""

    EXEC = "exec"
    PTY = "pty"
    FILES = "files"
    SUSPEND = "suspend"
    PORTABLE_SNAPSHOT = "portable_snapshot"
    STATS = "stats"


class Network(StrEnum):
    """What a sandbox reaches."""

    DISABLED = "disabled"
    ENABLED = "enabled"
    RESTRICTED = "restricted"


class Resource(StrEnum):
    """Limits of a sandbox."""

    CPUS = "cpus"
    MEMORY = "memory"
    PIDS = "pids"
    DISK = "disk"


class Isolation(StrEnum):
    """What stands between the sandbox and the host."""

    NAMESPACES = "namespaces"
    USERSPACE_KERNEL = "userspace-kernel"
    MICROVM = "microvm"
    REMOTE = "remote"


@dataclass(frozen=True, slots=True)
class ArtifactRule:
    """An artifact that a release must carry, the form of its value, and where that comes from.

    What has to be computed is not taken on anybody's word: the provider needs the bytes.
    """

    pattern: str
    known: Known = Known.COMPUTED

    def fits(self, value: str) -> bool:
        """Whether a value is of the declared form."""
        return re.fullmatch(self.pattern, value) is not None


@dataclass(frozen=True, slots=True)
class Declaration:
    """Data about one kind of provider."""

    kind: str
    mode: Mode
    artifacts: Mapping[str, ArtifactRule]
    platforms: tuple[Platform, ...]
    layer_formats: frozenset[str]
    max_layers: int
    abilities: frozenset[Ability]
    networks: frozenset[Network]
    enforces: frozenset[Resource]
    isolation: Isolation
    settings: Mapping[str, str] = field(default_factory=dict)
