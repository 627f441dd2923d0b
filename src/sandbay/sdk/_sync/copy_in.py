# Made by `./dev sdk` from _async/copy_in.py, which is the one to edit.
"""From this machine to a sandbox. Links below the source are not followed, and special files not opened.

An agent may have prepared the folder that is copied: a link in it must not send a secret of this machine.
"""

import os
import stat
from collections.abc import Iterator

from sandbay.sdk._sync.sandbox_files import SandboxFiles
from sandbay.sdk.copying import DEEPEST, Copied, Tally, last_name, refused
from sandbay.sdk.errors import RequestError
from sandbay.sdk.resources import ProgressCallback
from sandbay.sdk.twins import work

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_CHUNK = 256 * 1024


def copy_in(
    files: SandboxFiles, source: str | os.PathLike[str], target: str, progress: ProgressCallback | None = None
) -> Copied:
    """Copy the file or folder `source` of this machine to `target` in the sandbox.

    As `cp -r`: into `target` when that is a folder, else under that name. Only `source` itself may be a link.
    Raises `RequestError` (path_invalid) and `OSError` of this machine.
    """
    path = os.fspath(source)
    handle = os.open(path, _READ)
    try:
        tally = Tally(progress)
        _send(files, handle, path, _landing(files, path, target), tally, 0)
    finally:
        os.close(handle)
    return tally.copied


def _landing(files: SandboxFiles, source: str, target: str) -> str:
    try:
        is_folder = (files.stat(target)).kind == "directory"
    except RequestError as error:
        if error.code != "path_not_found":
            raise
        is_folder = False
    name = last_name(source) if is_folder else None
    return target if name is None else f"{target.rstrip('/')}/{name}"


def _send(files: SandboxFiles, handle: int, source: str, target: str, tally: Tally, depth: int) -> None:
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        files.send(target, lambda: _bytes_of(handle, tally), mode=stat.S_IMODE(mode) & 0o777)
        tally.file()
    elif stat.S_ISDIR(mode):
        files.make_folder(target)
        _send_folder(files, handle, source, target, tally, depth)
    else:
        raise refused(f"{source} is neither a file nor a folder", source)


def _send_folder(files: SandboxFiles, folder: int, source: str, target: str, tally: Tally, depth: int) -> None:
    if depth > DEEPEST:
        raise refused(f"{source} is more than {DEEPEST} folders deep", source)
    for name in sorted(work(os.listdir, folder)):
        path = f"{source.rstrip('/')}/{name}"
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            tally.skip(path, "a link is not followed" if stat.S_ISLNK(mode) else "a special file is not copied")
            continue
        # It may have been swapped for a link since: O_NOFOLLOW refuses, and fstat looks at what was opened.
        handle = os.open(name, _READ | os.O_NOFOLLOW, dir_fd=folder)
        try:
            _send(files, handle, path, f"{target.rstrip('/')}/{name}", tally, depth + 1)
        finally:
            os.close(handle)


def _bytes_of(handle: int, tally: Tally) -> Iterator[bytes]:
    os.lseek(handle, 0, os.SEEK_SET)
    while chunk := work(os.read, handle, _CHUNK):
        tally.add(len(chunk))
        yield chunk
