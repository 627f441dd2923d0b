"""A node in Core's process: one provider of this host and the agent that serves it."""

import os
import platform
from contextlib import suppress

from sandbay.adapters.node_link.inprocess import InProcessLink
from sandbay.app.core import Core
from sandbay.app.installation import host_platform
from sandbay.domain.deployment import Pool, SandboxSize
from sandbay.entrypoints.identities import Identities
from sandbay.entrypoints.providers import open_provider
from sandbay.entrypoints.settings import Settings
from sandbay.node.agent import Agent, Identity

LOCAL_POOL = "local"
_LEAST_SLOTS = 8


class LocalNode:
    """Each serves one provider; the host's memory is shared out among them."""

    def __init__(self, settings: Settings, kind: str, core: Core, link: InProcessLink, who: Identities) -> None:
        """Open the provider; nothing runs yet."""
        self._settings = settings
        self._provider = open_provider(settings, kind, core.blobs, who.installation)
        host, others = platform.node() or "local", len(settings.providers) - 1
        identity = Identity(
            who.nodes[kind],
            f"{host}-{kind}" if others else host,
            self._provider.runtime,
            host_platform(),
            slots(SandboxSize(), others + 1),
        )
        self._agent = Agent(identity, self._provider, link, core.clock)

    def pool(self, name: str) -> Pool:
        """What a new installation has for it."""
        return Pool(name, self._provider.declaration.kind, host_platform())

    def start(self) -> None:
        """Say hello, and serve what Core asks for."""
        self._agent.start()

    def close(self) -> None:
        """Serve no more. Sandboxes that run go on."""
        self._agent.close()
        self._provider.close()
        for folder in (self._settings.run / "nodes", self._settings.run):
            with suppress(OSError):  # another node's things are in it, or a sandbox's
                folder.rmdir()


def slots(size: SandboxSize, nodes: int = 1) -> int:
    """How many sandboxes of this size a node's share of the host's memory holds, at least 8: most are mostly idle."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(_LEAST_SLOTS, memory // size.memory // nodes)


def pool_names(kinds: tuple[str, ...]) -> tuple[str, ...]:
    """The first one's pool is `local`, tried before the others'."""
    return (LOCAL_POOL, *(f"{LOCAL_POOL}-{kind}" for kind in kinds[1:]))
