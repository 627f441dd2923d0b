"""`/v1/sessions/{id}/files`: the files of a running sandbox, streamed in and out."""

from collections.abc import Callable
from contextlib import closing
from typing import Annotated, BinaryIO
from urllib.parse import parse_qsl

import anyio
import anyio.to_thread
from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.types import Receive, Scope, Send

from sandbay.api.calls import BYTES_BODY, Name, TheActor, TheBody, TheCore, ThePage, project_of, until_gone
from sandbay.api.documented import RUNNING, bytes_of, refusing
from sandbay.api.errors import AsciiJson
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.base import page
from sandbay.api.wire.files import FileList, FileOut, MoveIn, checked_path, cursor, file_out
from sandbay.app.sessions import files_of, find_session
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import SessionId
from sandbay.domain.reasons import Reason
from sandbay.ports.provider import Files

router = APIRouter(prefix="/v1/sessions/{session}/files", route_class=StrictRoute, tags=["files"])

_CHUNK = 256 * 1024
_PATHS = (Reason.PATH_NOT_FOUND, Reason.PATH_INVALID, Reason.ABILITY_UNSUPPORTED)
_ROOM = (Reason.LIMIT_EXCEEDED, Reason.NO_SPACE)
_REFUSALS = refusing(*RUNNING, *_PATHS)
_WRITE_REFUSALS = refusing(*RUNNING, *_PATHS, *_ROOM)


async def files_at(core: TheCore, actor: TheActor, session: Name) -> Callable[[], Files]:
    """How to reach the files of the Session in the path: when all of the request has been understood."""
    return lambda: files_of(core, find_session(core, SessionId(session), project_of(actor)))


async def path_at(
    request: Request,
    path: Annotated[str, Query(description="In the sandbox; a relative one starts at /workspace.")],
) -> str:
    """The `path` parameter, with bytes that are no UTF-8 as surrogate escapes."""
    del path  # declared for the documentation, and read again because decoding has lost such bytes
    pairs = parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True, errors="surrogateescape")
    try:
        return checked_path(next(value for name, value in pairs if name == "path"))
    except ValueError as error:
        raise RefusedError(Reason.INVALID_BODY, str(error), param="path") from error


TheFiles = Annotated[Callable[[], Files], Depends(files_at)]
ThePath = Annotated[str, Depends(path_at)]


@router.get("", response_model=FileList, responses=_REFUSALS)
def get_files(files: TheFiles, path: ThePath, asked: ThePage) -> Response:
    """List a folder."""
    shown, following = page(files().list(path), asked, cursor)
    return AsciiJson(FileList(items=[file_out(entry) for entry in shown], next=following).model_dump())


@router.get("/stat", response_model=FileOut, responses=_REFUSALS)
def get_stat(files: TheFiles, path: ThePath) -> Response:
    """Tell what is at a path; a link at its end is not followed."""
    return AsciiJson(file_out(files().stat(path)).model_dump())


@router.get(
    "/content",
    response_class=Response,
    responses=bytes_of("application/octet-stream") | _REFUSALS,
)
def get_content(files: TheFiles, path: ThePath) -> Response:
    """Read a regular file. An answer that breaks off before its end is not the whole file."""
    return FileContent(files().read(path))


@router.put("/content", status_code=204, responses=_WRITE_REFUSALS, openapi_extra=BYTES_BODY)
def put_content(
    files: TheFiles,
    path: ThePath,
    body: TheBody,
    mode: Annotated[
        int | None, Query(ge=0, le=0o7777, description="Permission bits, as a number: 420 is rw-r--r--.")
    ] = None,
) -> None:
    """Replace a file in one step; missing parents are made."""
    files().write(path, iter(body), mode)


@router.post("/folder", status_code=204, responses=_WRITE_REFUSALS)
def post_folder(files: TheFiles, path: ThePath) -> None:
    """Make a folder and its missing parents; one that is there is fine."""
    files().make_folder(path)


@router.post("/move", status_code=204, responses=_WRITE_REFUSALS)
def post_move(files: TheFiles, body: MoveIn) -> None:
    """Rename within the sandbox."""
    files().move(body.source, body.target)


@router.delete("", status_code=204, responses=_REFUSALS)
def delete_files(files: TheFiles, path: ThePath) -> None:
    """Remove a file, a link, or a folder with all below it."""
    files().remove(path)


class FileContent(Response):
    """Sends an open file a chunk at a time, and closes it whatever happens."""

    media_type: str | None = "application/octet-stream"

    def __init__(self, content: BinaryIO) -> None:
        """Take the file over."""
        self.status_code, self.background = 200, None
        self.body = b""
        self._content = content
        self.init_headers(None)
        del self.headers["content-length"]

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Send all of it, unless the client goes away."""
        with closing(self._content):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch, receive, tasks.cancel_scope)
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                while chunk := await anyio.to_thread.run_sync(self._content.read, _CHUNK):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                tasks.cancel_scope.cancel()

    async def _watch(self, receive: Receive, scope: anyio.CancelScope) -> None:
        await until_gone(receive)
        scope.cancel()
