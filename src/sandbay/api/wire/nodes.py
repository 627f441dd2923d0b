"""Nodes."""

from datetime import datetime

from pydantic import Field

from sandbay.api.wire.base import Listing, Out
from sandbay.domain.declaration import Network
from sandbay.domain.node import NodeView


class NodeOut(Out):
    """A process that runs sandboxes of one provider with one runtime on a host."""

    id: str = Field(description="Its id.")
    name: str = Field(description="Its name.")
    provider: str = Field(description="The kind of provider.")
    runtime: str = Field(description="What the provider starts sandboxes with.")
    platform: str = Field(description="os/architecture[/variant].")
    slots: int = Field(description="How many sandboxes it may run at once.")
    active: int = Field(description="How many it runs.")
    online: bool = Field(description="Heard from lately.")
    warm: bool = Field(description="Whether it holds everything that is required, so that it takes Sessions.")
    last_seen: datetime | None = Field(description="When it was last heard from.")
    labels: dict[str, str] = Field(description="What pools select nodes by.")
    networks: list[Network] = Field(description="The network modes that it enforces.")


class NodeList(Listing[NodeOut]):
    """Nodes by name."""


def node_out(view: NodeView) -> NodeOut:
    """From the domain."""
    node = view.node
    return NodeOut(
        id=node.id,
        name=node.name,
        provider=node.provider,
        runtime=node.runtime,
        platform=str(node.platform),
        slots=node.slots,
        active=view.active,
        online=view.online,
        warm=node.warm,
        last_seen=node.last_seen,
        labels=dict(node.labels),
        networks=sorted(node.networks),
    )
