"""`sandbox/nodes`: who runs sandboxes."""

from fastapi import APIRouter

from sandbay.api.calls import TheCore, ThePage
from sandbay.api.documented import refusing
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.base import page
from sandbay.api.wire.nodes import NodeList, node_out
from sandbay.app.holdings import list_nodes

router = APIRouter(prefix="/core/v1/sandbox/nodes", route_class=StrictRoute, tags=["nodes"])


@router.get("", responses=refusing())
def get_nodes(core: TheCore, asked: ThePage) -> NodeList:
    """List all nodes by name, those that are away included."""
    shown, following = page(list_nodes(core), asked, lambda view: f"{view.node.name}/{view.node.id}")
    return NodeList(items=[node_out(view) for view in shown], next=following)
