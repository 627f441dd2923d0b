"""`sandbox/uploads`: bytes on their way into the installation."""

from fastapi import APIRouter

from sandbay.api.calls import BYTES_BODY, TheActor, TheBody, TheCore
from sandbay.api.documented import refusing
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.uploads import UploadOut, upload_out
from sandbay.app.uploads import receive
from sandbay.domain.reasons import Reason

router = APIRouter(prefix="/core/v1/sandbox/uploads", route_class=StrictRoute, tags=["images"])


@router.post("", status_code=201, responses=refusing(Reason.LIMIT_EXCEEDED, Reason.NO_SPACE), openapi_extra=BYTES_BODY)
def post_upload(core: TheCore, actor: TheActor, body: TheBody) -> UploadOut:
    """Receive a tar of an OCI layout, or what `docker save` writes.

    It is bounded, hashed as it comes, and dropped when it expires.
    """
    return upload_out(receive(core, actor, body))
