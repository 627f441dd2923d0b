"""`sandbox/disk`: what image bytes take on the nodes."""

from fastapi import APIRouter

from sandbay.api.calls import TheCore, ThePage
from sandbay.api.documented import refusing
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.base import page
from sandbay.api.wire.disk import DiskList, disk_out
from sandbay.app.disk import disks

router = APIRouter(prefix="/core/v1/sandbox/disk", route_class=StrictRoute, tags=["nodes"])


@router.get("", responses=refusing())
def get_disk(core: TheCore, asked: ThePage) -> DiskList:
    """Tell for each node how many bytes its images take, what they share, what may go and what may not."""
    shown, following = page(disks(core), asked, lambda it: f"{it.node.name}/{it.node.id}")
    return DiskList(items=[disk_out(it) for it in shown], next=following)
