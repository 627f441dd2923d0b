"""From a sandbox to this machine. All names but the caller's own are hostile.

Everything is done relative to descriptors of folders that were opened without following links, so nothing
outside the target is ever touched, whatever the sandbox answers and whatever lies in the target already.
"""

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator

from sandbay.sdk._async.sandbox_files import AsyncSandboxFiles
from sandbay.sdk.copying import DEEPEST, Copied, Tally, last_name, refused, single_name
from sandbay.sdk.resources import FileEntry, ProgressCallback
from sandbay.sdk.twins import async_work

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PERMISSIONS = 0o777  # never setuid, setgid or sticky


async def copy_out(
    files: AsyncSandboxFiles, source: str, target: str | os.PathLike[str], progress: ProgressCallback | None = None
) -> Copied:
    """Copy the file or folder `source` of the sandbox to `target` here.

    As `cp -r`: into `target` when that is a folder, else under that name. A file that is there is replaced
    in one step, a link that is there is replaced, not followed. Links and special files of the sandbox are
    left out and reported. Raises `RequestError` (path_not_found, path_invalid) and `OSError` of this machine.
    """
    entry = await files.stat(source)
    tally = Tally(progress)
    parent, name = await async_work(_landing, source, os.fspath(target))
    with _opened(os.open(parent, _FOLDER)) as folder:
        await _put(files, source, entry, folder, name, tally)
    return tally.copied


def _landing(source: str, target: str) -> tuple[str, str | None]:
    """The folder here that takes it, and under which name."""
    if os.path.isdir(target):  # noqa: PTH112 - descriptors, not Path
        return target, last_name(source)
    return os.path.dirname(target.rstrip("/")) or ".", last_name(target)  # noqa: PTH120


async def _put(
    files: AsyncSandboxFiles, source: str, entry: FileEntry, folder: int, name: str | None, tally: Tally
) -> None:
    if entry.kind == "directory":
        if name is None:
            await _fill(files, source, folder, tally, 0)
        else:
            with _opened(_made(folder, name, entry.mode)) as inner:
                await _fill(files, source, inner, tally, 0)
    elif entry.kind == "file" and name is not None:
        await _receive(files, source, entry, folder, name, tally)
    else:
        raise refused(f"{source} is neither a file nor a folder ({entry.kind}), and nothing else is copied", source)


async def _fill(files: AsyncSandboxFiles, source: str, folder: int, tally: Tally, depth: int) -> None:
    """Copy all that is in the sandbox's folder into the open folder."""
    if depth > DEEPEST:
        raise refused(f"{source} is more than {DEEPEST} folders deep", source)
    for entry in await files.list(source):
        name = single_name(entry.name)
        path = f"{source.rstrip('/')}/{name}"
        if entry.kind == "directory":
            with _opened(_made(folder, name, entry.mode)) as inner:
                await _fill(files, path, inner, tally, depth + 1)
        elif entry.kind == "file":
            await _receive(files, path, entry, folder, name, tally)
        else:
            tally.skip(path, f"a {entry.kind} is not copied")


async def _receive(
    files: AsyncSandboxFiles, source: str, entry: FileEntry, folder: int, name: str, tally: Tally
) -> None:
    """Write to a new file beside, then take the name: never through a link, never half a file."""
    fresh = f".sandbay-{secrets.token_hex(8)}"
    handle = os.open(fresh, _NEW_FILE, entry.mode & _PERMISSIONS, dir_fd=folder)  # the umask applies
    try:
        with os.fdopen(handle, "wb") as output:
            async for chunk in files.chunks(source):
                await async_work(output.write, chunk)
                tally.add(len(chunk))
        os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException as error:
        os.unlink(fresh, dir_fd=folder)
        if isinstance(error, IsADirectoryError):
            raise refused(f"{source} cannot replace a folder of the same name", source) from error
        raise
    tally.file()


def _made(folder: int, name: str, mode: int) -> int:
    """A folder of this name within the open one, made when missing, opened without following a link."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, (mode & _PERMISSIONS) | 0o700, dir_fd=folder)
    try:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise refused(f"what is called {name!r} here is no folder, and is not followed", name) from error
        raise


@contextlib.contextmanager
def _opened(handle: int) -> Iterator[int]:
    try:
        yield handle
    finally:
        os.close(handle)
