"""From a record and held layers to a running sandbox, in steps that `freeing` undoes from wherever they stopped."""

import contextlib
import json
import platform
import posixpath
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sandbay.adapters.providers.oci.allocations import AllocationRecord
from sandbay.adapters.providers.oci.bundle import INIT, MOUNT_POINTS, Parts, Program, spec
from sandbay.adapters.providers.oci.calls import Call, Sandbox
from sandbay.adapters.providers.oci.cgroups import (
    Cgroups,
    Layout,
    aside,
    create_command,
    group_path,
    limit_files,
    resources,
)
from sandbay.adapters.providers.oci.execs import Execs
from sandbay.adapters.providers.oci.groups import Groups
from sandbay.adapters.providers.oci.identity import HeldImage
from sandbay.adapters.providers.oci.network import SandboxNetwork
from sandbay.adapters.providers.oci.reaping import Reaping
from sandbay.adapters.providers.oci.resident import First, Resident
from sandbay.adapters.providers.oci.root import SandboxRoot
from sandbay.adapters.providers.oci.runtime import Runtime, complaint, open_files
from sandbay.adapters.providers.oci.seccomp import profile
from sandbay.adapters.providers.oci.spawner import ENDINGS
from sandbay.adapters.providers.oci.streams import NotStarted
from sandbay.domain.command import WORKSPACE, User, find_user
from sandbay.domain.declaration import Network
from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ImageConfig
from sandbay.engine import rootfs

START_SECONDS = 60.0
NOOP_SECONDS = 30.0
_SEARCHABLE = 0o711
_BUNDLE = "bundle"
_ENDED_SECONDS = 5.0
_CONFINED = {"NoNewPrivs": "1", "Seccomp": "2"}
"""Of `/proc/PID/status`; 2 is a filter."""
USER_FILES = ("/etc/passwd", "/etc/group")
_ROOT = User(0, 0)
_IPV6 = Path("/proc/sys/net/ipv6")


@dataclass(frozen=True, slots=True)
class Places:
    """Where one allocation's things lie: `durable` is its folder, `mounts` is searchable by its user 0."""

    durable: Path
    volatile: Path
    sandbox: Sandbox

    @classmethod
    def of(cls, name: str, durable: Path, run: Path, installation: str) -> "Places":
        """The places of allocation `name`."""
        volatile = run / name
        config = volatile / _BUNDLE / "config.json"
        return cls(durable, volatile, Sandbox(name, group_path(installation, name), volatile / "execs", config))

    @property
    def mounts(self) -> Path:
        """What `rootfs` mounts below."""
        return self.volatile / "mounts"

    @property
    def bundle(self) -> Path:
        """The runtime's bundle."""
        return self.volatile / _BUNDLE

    @property
    def workspace(self) -> Path:
        """The folder behind `/workspace`."""
        return self.durable / "workspace"

    @property
    def log(self) -> Path:
        """Where the runtime complains."""
        return self.volatile / "runtime.log"


@dataclass(frozen=True)
class Starter:
    """What all starts of a provider share. `swap` says whether swap is accounted for."""

    runtime: Runtime
    cgroups: Cgroups
    execs: Execs
    reaping: Reaping
    resident: Resident
    swap: bool
    network: SandboxNetwork

    def start(self, record: AllocationRecord, image: HeldImage, places: Places, *, prove_only: bool) -> None:
        """Returns when a program has run inside. `prove_only` leaves the image's user and folders out of it.

        Refuses with `start_failed`, `user_not_found`, `invalid_workdir`; to prove, with `not_an_image`, too: nobody has
        written into the tree then, so that what is unfit in it is the image's.
        """
        kept = places.workspace.exists()
        self._make_folders(places)
        root = rootfs.assemble(
            image.layers_folder,
            image.lowers,
            mounts=places.mounts,
            upper=places.durable / "upper",
            work=places.durable / "work",
            id_base=record.base,
        )
        self._prepare(root, record, image.config, None if kept else places.workspace, prove_only=prove_only)
        first = self.resident.place()
        self._write_bundle(record, root, first, places)
        Groups(self.cgroups, places.sandbox.group).make()
        self._run_first(first, places)
        self._attach(record, places)
        self._prove_limits(record, places.sandbox.group)
        self._prove_running(places)
        self._prove_confined(places.sandbox.group)

    def _run_first(self, first: First, places: Places) -> None:
        """Returns when the first process runs, and listens if it is to: that is after it has installed the filter."""
        pid_file = places.bundle / "pid"
        where = ["--bundle", str(places.bundle), "--pid-file", str(pid_file)]
        command = [*self.runtime.prefix(places.log), "run", "--detach", *where, places.sandbox.name]
        argv = create_command(self.cgroups, places.sandbox.group, command)
        apart = aside(self.cgroups, places.sandbox.group)
        with contextlib.closing(self.reaping.call(argv, pid_file, START_SECONDS, apart, first.filter)) as left:
            if left.code != 0:
                says = "it took too long" if left.code is None else complaint(places.log)
                raise start_failed("the runtime did not start the sandbox", says=says)
            if first.filter is not None and not self.execs.listens(places.sandbox):
                code = left.ended(_ENDED_SECONDS)
                says = ENDINGS.get(code or 0, "nobody knows why")
                raise start_failed("the sandbox's first process does not take requests", code=code, says=says)

    def _attach(self, record: AllocationRecord, places: Places) -> None:
        """Only our init runs yet, so no program of the image ever sees the namespace without its rules."""
        if record.networks[0] is Network.DISABLED:
            return
        self.network.attach(record, self._first_pid(places.sandbox.group), places.bundle)

    def _first_pid(self, group: PurePosixPath) -> int:
        pid = Groups(self.cgroups, group).init_pid()
        if pid is None:
            raise start_failed("the sandbox's first process has ended")
        return pid

    @staticmethod
    def _make_folders(places: Places) -> None:
        for name in ("upper", "work", "workspace"):
            (places.durable / name).mkdir(mode=0o700, exist_ok=True)
        places.volatile.mkdir(exist_ok=True)
        places.mounts.mkdir(exist_ok=True)
        for searchable in (places.volatile, places.mounts):
            searchable.chmod(_SEARCHABLE)
        for private in (places.bundle, places.sandbox.execs):
            private.mkdir(mode=0o700, exist_ok=True)

    @staticmethod
    def _prepare(
        root: Path, record: AllocationRecord, config: ImageConfig, new_workspace: Path | None, *, prove_only: bool
    ) -> None:
        """Give a new workspace to the image's user and make the image's working directory."""
        with SandboxRoot(root, record.base) as inside:
            if prove_only:
                inside.refuse_unfit(MOUNT_POINTS, USER_FILES)
            inside.refuse_endless(*USER_FILES)
            user = _ROOT if prove_only else image_user(inside, config)
            inside.make_folders(WORKSPACE, 0, 0)
            if config.workdir and not prove_only:
                ensure_workdir(inside, posixpath.join(WORKSPACE, config.workdir))
        if new_workspace is not None:
            with SandboxRoot(new_workspace, record.base) as workspace:
                workspace.give_top(user.uid, user.gid)
            new_workspace.chmod(0o755)

    def _write_bundle(self, record: AllocationRecord, root: Path, first: First, places: Places) -> None:
        parts = Parts(
            hostname=record.hostname,
            rootfs=root,
            workspace=places.workspace,
            init=first.program,
            spawns=first.filter is not None,
            base=record.base,
            group=places.sandbox.group,
            open_files=open_files(),
            resources=resources(record.size, swap=self.swap),
            seccomp=profile(platform.machine()),
            network_files=self.network.make_files(record, places.bundle) if record.networked else None,
            ipv6=_IPV6.exists(),
        )
        places.sandbox.config.write_text(json.dumps(spec(parts)))

    def _prove_limits(self, record: AllocationRecord, group: PurePosixPath) -> None:
        for file, wanted in limit_files(self.cgroups, group, record.size, swap=self.swap).items():
            if self.cgroups.layout is Layout.UNIFIED and "swap" in file.name and not file.exists():
                continue
            if (found := file.read_text().strip()) != wanted:
                raise start_failed("a limit does not hold", limit=file.name, wanted=wanted, found=found)

    def _prove_confined(self, group: PurePosixPath) -> None:
        """Of the first process, from which all others inherit it, as the kernel shows it to the host."""
        lines = Path(f"/proc/{self._first_pid(group)}/status").read_text().splitlines()
        status = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
        for field, wanted in _CONFINED.items():
            if (found := status.get(field)) != wanted:
                raise start_failed("the sandbox is not confined", field=field, wanted=wanted, found=found)

    def _prove_running(self, places: Places) -> None:
        first = Program(INIT, [INIT, "-V"], {}, _ROOT, "/")
        done = self.execs.run(places.sandbox, first, Call(lambda *_: None, timeout=NOOP_SECONDS))
        if isinstance(done, NotStarted):
            raise start_failed("no program can be run in the sandbox", says=done.complaint)
        if done.code:
            raise start_failed("the first program in the sandbox failed", code=done.code, timed_out=done.timed_out)


def image_user(root: SandboxRoot, config: ImageConfig, spec_of_request: str | None = None) -> User:
    """The request's user, else the image's, by the sandbox's own files. Refuses with `user_not_found`."""
    wanted = spec_of_request or config.user
    passwd, group = (root.read_small(path) for path in USER_FILES)
    found = find_user(wanted, passwd, group)
    if isinstance(found, Refusal):
        raise RefusedError.of(found)
    return found


def ensure_workdir(root: SandboxRoot, path: str) -> None:
    """Make a missing working directory, root's and 0755. Refuses with `invalid_workdir`."""
    try:
        root.make_folders(path, 0, 0)
    except (OSError, ValueError, RefusedError) as error:
        message = "the working directory is no folder and cannot be made one"
        raise RefusedError(Reason.INVALID_WORKDIR, message, param="workdir", details={"workdir": path}) from error


def start_failed(message: str, **facts: object) -> RefusedError:
    """The refusal of a start that went wrong on this host."""
    return RefusedError(Reason.START_FAILED, message, details=facts)


def network_unsupported(message: str, mode: Network, offered: Iterable[Network]) -> RefusedError:
    """The refusal of a network mode that this host, or this order, does not have."""
    details = {"network": mode, "offered": sorted(offered)}
    return RefusedError(Reason.NETWORK_UNSUPPORTED, message, param="network", details=details)
