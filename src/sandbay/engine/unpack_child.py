"""The process that unpacks one layer: confined before it reads the first byte of the image.

Started by `engine.unpack` in a fresh interpreter. Plain tar on descriptor 0, one JSON document on descriptor 1:
`{"unpacked": …}`, `{"refusal": …}` or `{"fault": …}`. From `confine` on it has a root folder with nothing but the
layer in it, no network, no device it could open, seven capabilities and nothing to gain more with, and the kernel
answers only the calls of `engine.unpack_calls`. It imports little, because every layer pays for it, and nothing late,
because there is nothing to import from any more.
"""

import errno
import json
import os
import resource
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.reasons import Reason
from sandbay.engine import linux
from sandbay.engine.budget import Budget
from sandbay.engine.extract import Extractor
from sandbay.engine.limits import Limits, exceeded
from sandbay.engine.tar import TarError, TarLimitError, TarReader
from sandbay.engine.tree import Tree
from sandbay.engine.unpack_calls import program_for

# What is left: owners and modes of any file, device nodes, file capabilities, and the marks of overlayfs (`trusted.*`).
_CAPABILITIES = (
    linux.CAP_CHOWN,
    linux.CAP_DAC_OVERRIDE,
    linux.CAP_FOWNER,
    linux.CAP_FSETID,
    linux.CAP_MKNOD,
    linux.CAP_SETFCAP,
    linux.CAP_SYS_ADMIN,
)
_NAMESPACES = linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS
_MEMORY = 1 << 30
_FILES = 8192


@dataclass(frozen=True, slots=True)
class Order:
    """What to do. `into` is the tree to be; `lowers` is None for a layer alone, else its parents, topmost first."""

    into: str
    limits: Limits
    lowers: tuple[str, ...] | None

    def to_json(self) -> str:
        """As an argument of the child."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Order":
        """As the child reads it."""
        said = json.loads(text)
        return cls(said["into"], Limits(**said["limits"]), None if said["lowers"] is None else tuple(said["lowers"]))


def main() -> None:
    """Unpack and tell."""
    try:
        told = _unpack(Order.from_json(sys.argv[1]))
    except Exception as error:  # noqa: BLE001 - told to the parent, which raises it
        told = {"fault": f"{error!r} at {_places_of(error)}"}
    answer = json.dumps(told).encode()
    while answer:
        answer = answer[os.write(1, answer) :]


def _places_of(error: BaseException) -> str:
    """Where it came from, without the traceback module."""
    places, trace = [], error.__traceback__
    while trace is not None:
        places.append(f"{trace.tb_frame.f_code.co_name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return " > ".join(places)


def _unpack(order: Order) -> dict[str, Any]:
    try:
        root, view = confine(order)
    except PermissionError as error:
        why = f"this host does not let an unpacker be confined ({_places_of(error)}: {error.strerror})"
        return _told(Refusal(Reason.HOST_UNFIT, why))
    budget = Budget(order.limits)
    tree = Tree(root, budget, view)
    reader = TarReader(lambda buffer: os.readv(0, [buffer]), order.limits)
    extractor = Extractor(reader, tree, budget, over=order.lowers is not None)
    refusal = verdict(extractor.run)
    if refusal is not None:
        return _told(refusal)
    return {
        "unpacked": {
            "entries": budget.entries,
            "bytes": budget.bytes,
            "implied": _texts(b"/".join(key) for key in tree.implied),
            "late": sorted([os.fsdecode(path), os.fsdecode(target)] for path, target in extractor.late),
            "whiteouts": _texts(b"/".join(key) for key in tree.whitened),
        }
    }


def _told(refusal: Refusal) -> dict[str, Any]:
    return {"refusal": {"reason": refusal.reason, "message": refusal.message, "details": dict(refusal.details)}}


def _texts(paths: Iterable[bytes]) -> list[str]:
    return [os.fsdecode(path) for path in sorted(paths)]


def verdict(unpack: Callable[[], None]) -> Refusal | None:
    """Run, and say what the layer or the disk is refused for. What is neither's doing stays an exception."""
    try:
        unpack()
    except RefusedError as error:
        return error.refusal
    except TarLimitError as error:
        return exceeded(error.limit, error.value, error.bound)
    except TarError as error:
        return Refusal(Reason.MALFORMED_LAYER, str(error))
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return Refusal(Reason.NO_SPACE, "the disk of the layer store is full")
        if error.errno == errno.ENAMETOOLONG:
            return Refusal(Reason.MALFORMED_LAYER, "a name is too long")
        raise
    return None


def confine(order: Order) -> tuple[int, int | None]:
    """Leave everything behind but the tree; its root, and that of the merged lower layers if there are any."""
    os.umask(0)
    linux.unshare(_NAMESPACES)
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    view = _view(order.into, order.lowers) if order.lowers else None
    _enter(order.into)
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    _limit(resource.RLIMIT_AS, _MEMORY)
    _limit(resource.RLIMIT_NOFILE, _FILES)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, order.limits.unpacked_bytes)
    # At the soft limit a signal says what happened; at the hard one nothing could.
    _limit(resource.RLIMIT_CPU, order.limits.cpu_seconds + 1, spare=60)
    linux.keep_capabilities(_CAPABILITIES)
    linux.set_no_new_privileges()
    linux.set_dumpable(False)
    _filter_calls()
    return root, view


def _filter_calls() -> None:
    program = program_for(machine := os.uname().machine)
    if program is None:
        raise PermissionError(errno.EPERM, f"no list of calls is known for {machine}")
    linux.set_seccomp_filter(program)


def _limit(kind: int, most: int, *, spare: int = 0) -> None:
    hard = resource.getrlimit(kind)[1]
    soft, last = (bound if hard == resource.RLIM_INFINITY else min(bound, hard) for bound in (most, most + spare))
    resource.setrlimit(kind, (soft, last))


def _view(at: str, lowers: tuple[str, ...]) -> int:
    """The lower layers as one read-only tree, of which nothing stays but this descriptor.

    It is mounted over the tree to be for a moment, where only this process sees it.
    """
    kept = linux.MS_RDONLY | linux.MS_NODEV | linux.MS_NOSUID | linux.MS_NOEXEC
    if len(lowers) == 1:
        linux.mount(lowers[0], at, flags=linux.MS_BIND)
        linux.mount("none", at, flags=linux.MS_BIND | linux.MS_REMOUNT | kept)
    else:
        # Short names, relative to where we stand: the kernel cuts options at one page.
        folder = os.path.dirname(lowers[0])
        if any(os.path.dirname(lower) != folder for lower in lowers):
            raise ValueError("layers are not side by side")
        os.chdir(folder)
        names = ":".join(map(os.path.basename, lowers))
        options = f"lowerdir={names},index=off,metacopy=off,redirect_dir=off"
        linux.mount("overlay", at, "overlay", kept, options)
    view = os.open(at, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    os.chdir("/")
    linux.umount2(at, linux.MNT_DETACH)
    return view


def _enter(tree: str) -> None:
    """Make the tree the root, in which no link is followed and no device opened, and let the old root go."""
    linux.mount(tree, tree, flags=linux.MS_BIND)
    kept = linux.MS_NODEV | linux.MS_NOSUID | linux.MS_NOEXEC | linux.MS_NOSYMFOLLOW
    linux.mount("none", tree, flags=linux.MS_BIND | linux.MS_REMOUNT | kept)
    os.chdir(tree)
    linux.pivot_root(".", ".")
    linux.umount2(".", linux.MNT_DETACH)
    os.chdir("/")
