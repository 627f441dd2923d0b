"""What an order asks for that this host cannot enforce is refused before anything of it is made."""

from sandbay.adapters.providers.oci.declaration import DECLARATION
from sandbay.adapters.providers.oci.starting import network_unsupported
from sandbay.domain.allocation import Order
from sandbay.domain.canonical import plain
from sandbay.domain.declaration import Declaration
from sandbay.domain.deployment import SandboxSize
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason

_LEAST = SandboxSize(cpus=0.01, memory=16 * 1024**2, pids=16)


def refuse_unenforceable(order: Order, here: Declaration) -> None:
    """Refuse with `network_unsupported` or `resource_unsupported`; `here` is what the host can do."""
    for mode in order.networks:
        if mode not in here.networks:
            raise network_unsupported("this network mode cannot be enforced", mode, here.networks)
    missing = sorted(DECLARATION.enforces - here.enforces)
    if missing or not order.size.holds(_LEAST):
        facts = {"not_enforced": missing, "least": plain(_LEAST), "asked": plain(order.size)}
        raise RefusedError(Reason.RESOURCE_UNSUPPORTED, "these limits cannot be enforced", details=facts)
