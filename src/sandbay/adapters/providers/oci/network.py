"""The network of one installation's sandboxes: a bridge, made by CNI's plugins, and our rules around it.

It is there while an allocation's record asks for it: the first start makes it, the last end removes all of it. What
is needed to remove it lies in one volatile folder that is written first and removed last, so an end that was
interrupted anywhere can be done again. At its start a sandbox is attached before anything of its image runs.

An interface whose alias names its allocation is attached whole: the alias is the last thing that it gets.
"""

import contextlib
import errno
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path
from typing import NamedTuple

import structlog

from sandbay.adapters.providers.oci.allocations import AllocationFolders, AllocationRecord
from sandbay.adapters.providers.oci.network_rules import (
    FAMILIES,
    INTERFACE,
    Net,
    cni_configuration,
    free_subnet,
    hosts_file,
    install_rules,
    label,
    nameservers,
    net_name,
    remove_rules,
    resolv_conf,
)
from sandbay.domain.declaration import Network
from sandbay.ports.provider import Reach

_PLUGIN_FOLDERS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"), Path("/usr/libexec/cni"))
_PLUGINS = ("bridge", "host-local")
_PROGRAMS = ("nft", "ip", "bridge", "unshare")
_FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
_RESOLVERS = (Path("/etc/resolv.conf"), Path("/run/systemd/resolve/resolv.conf"))
"""The second has the real servers where the first names a local stub."""
_HOSTS, _RESOLV_CONF = _FILES = ("hosts", "resolv.conf")
_DEFAULT_MTU = 1500
_SECONDS = 20.0
_PROBE_SECONDS = 5.0
_STEP_SECONDS = 0.005
_TRY = """ip link add "$1" type bridge
ip link add v0 type veth peer name v1
ip link set v0 master "$1"
bridge link set dev v0 isolated on
exec nft -f -
"""

log = structlog.get_logger()


class Lack(NamedTuple):
    """What this host lacks for it, and what to do."""

    seen: str
    do: str


@dataclass
class SandboxNetwork:
    """One per provider. `folder` is volatile; `owner` names installation and home."""

    owner: str
    installation: str
    folder: Path
    folders: AllocationFolders
    reach: Reach
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _detached: set[str] = field(default_factory=set)
    _installed: str | None = None
    """The rules as they are listed after they were put in place; None before this process has."""

    @property
    def name(self) -> str:
        """The name of bridge and table."""
        return net_name(self.owner)

    def fault(self) -> Lack | None:
        """Why this host cannot enforce it, or None. Tried out in a network namespace that goes at once."""
        missing = [program for program in _PROGRAMS if shutil.which(program) is None]
        if missing:
            return Lack(f"no program {', '.join(missing)}", "install the packages nftables, iproute2, util-linux")
        if _plugins() is None:
            return Lack("there are no CNI plugins", "install the package containernetworking-plugins")
        if _text(_FORWARDING).strip() != "1" and not os.access(_FORWARDING, os.W_OK):
            says = "packets are not forwarded and that cannot be changed"
            return Lack(says, "set net.ipv4.ip_forward (sysctl) to 1")
        rules = install_rules(self._net(IPv4Network("198.18.0.0/20")))
        try:
            _call(["unshare", "--net", "--", "/bin/sh", "-ec", _TRY, "sh", self.name], rules, _PROBE_SECONDS)
        except OSError as error:
            says = f"the kernel does not make or guard a bridge here: {error.strerror}"
            return Lack(
                says, "load the modules bridge, veth and nf_tables; in a container, allow it network namespaces"
            )
        return None

    def nameservers(self) -> Sequence[str]:
        """Whom sandboxes ask for names; empty where the host has none that they could."""
        return self.reach.nameservers or nameservers(*map(_text, _RESOLVERS))

    def make_files(self, record: AllocationRecord, bundle: Path) -> Mapping[str, Path]:
        """Make the sandbox's `hosts` and `resolv.conf`, its root's, for no network yet; path inside → file."""
        _fill(record, bundle)
        for name in _FILES:
            (bundle / name).chmod(0o644)
            os.chown(bundle / name, record.base, record.base)
        return {f"/etc/{name}": bundle / name for name in _FILES}

    def attach(self, record: AllocationRecord, pid: int, bundle: Path) -> None:
        """Give the network namespace of a process its interface, which it has not. Raises `OSError`."""
        with self._lock:
            self._attach(record, pid, bundle)

    def change(self, record: AllocationRecord, mode: Network, pid: int, bundle: Path) -> None:
        """Bring a running sandbox to this mode, from whatever a change that was interrupted left. Raises `OSError`."""
        with self._lock:
            if mode is not Network.DISABLED and self._has_port(record.allocation):
                return
            # Nothing that a change left halfway is trusted: a lease without an interface, or one that is not guarded.
            self._release(record.allocation, f"/proc/{pid}/ns/net")
            if mode is Network.DISABLED:
                if INTERFACE in Path(f"/proc/{pid}/net/dev").read_text():
                    raise OSError(errno.EBUSY, "the sandbox's interface did not go")
                _fill(record, bundle)
                self._detached_is(record.allocation)
            else:
                self._attach(record, pid, bundle)

    def uphold(self) -> None:
        """Put the packet rules back where they are not as they were installed; until that succeeds, nothing passes."""
        with self._lock:
            if not self._conf.exists():
                return
            before = self._rules()
            if before == self._installed:
                return
            try:
                self._ensure()
            except OSError:
                self._installed = None
                self._turn("down")
                log.exception("sandboxes have no network until their packet rules can be put back", bridge=self.name)
                return
            self._turn("up")
            if before != self._installed:
                log.warning("the packet rules of sandboxes were gone or changed; they are back", table=self.name)

    def _rules(self) -> str:
        """Our tables as they are, empty where one is missing."""
        try:
            return "".join(_call(["nft", "--stateless", "list", "table", family, self.name]) for family in FAMILIES)
        except OSError:
            return ""

    def _turn(self, state: str) -> None:
        if _interface(self.name).exists():
            _call(["ip", "link", "set", "dev", self.name, state])

    def _attach(self, record: AllocationRecord, pid: int, bundle: Path) -> None:
        self._detached.discard(record.allocation)
        result = json.loads(_cni("ADD", record.allocation, f"/proc/{pid}/ns/net", self._ensure()))
        (port,) = [each["name"] for each in result["interfaces"] if _is_port(each, self.name)]
        # Once more than the rules say it, because rules can be flushed: the bridge itself keeps its ports apart.
        _call(["bridge", "link", "set", "dev", port, "isolated", "on"])
        _fill(record, bundle, str(result["ips"][0]["address"]).partition("/")[0], self.nameservers())
        aliases = {self.name: label(self.installation), port: label(self.installation, record.allocation)}
        _call(["ip", "-batch", "-"], "".join(f"link set dev {dev} alias {text}\n" for dev, text in aliases.items()))

    def _has_port(self, allocation: str) -> bool:
        ports = _interface(self.name) / "brif"
        wanted = label(self.installation, allocation)
        names = os.listdir(ports) if ports.is_dir() else []  # noqa: PTH208 - names are what is needed
        return any(_text(_interface(name) / "ifalias").strip() == wanted for name in names)

    @contextlib.contextmanager
    def released(self, allocation: str, pid: int | None) -> Iterator[None]:
        """Detach after the block, which ends the allocation's processes. Raises `OSError` for what would not go."""
        if not self._is_asked_for(allocation):
            yield
            return
        namespace = _open_namespace(pid)
        try:
            yield
            self._detach(allocation, namespace)
        finally:
            if namespace is not None:
                os.close(namespace)

    def _detach(self, allocation: str, namespace: int | None) -> None:
        with self._lock:
            self._release(allocation, "" if namespace is None else f"/proc/{os.getpid()}/fd/{namespace}")
            self._detached_is(allocation)

    def _release(self, allocation: str, namespace: str) -> None:
        if self._conf.exists():
            _cni("DEL", allocation, namespace, self._conf.read_text())

    def _detached_is(self, allocation: str) -> None:
        """With the last one detached, nothing of the network stays."""
        self._detached.add(allocation)
        using = {each.allocation for each in self.folders.all() if each.networked}
        self._detached &= using
        if using <= self._detached:
            self._remove()

    def _is_asked_for(self, allocation: str) -> bool:
        record = self.folders.read(allocation)
        return record is not None and record.networked

    @property
    def _conf(self) -> Path:
        return self.folder / "cni.json"

    def _ensure(self) -> str:
        """CNI's configuration, after the rules have been put in place anew."""
        if not self._conf.exists():
            self._configure()
        configuration = self._conf.read_text()
        subnet = IPv4Network(json.loads(configuration)["ipam"]["ranges"][0][0]["subnet"])
        _call(["nft", "-f", "-"], install_rules(self._net(subnet)))
        self._installed = self._rules()
        return configuration

    def _net(self, subnet: IPv4Network) -> Net:
        return Net(self.name, self.installation, subnet, self.nameservers(), self.reach.allowed)

    def _configure(self) -> None:
        """Choose a subnet and write it down, whole or not at all."""
        taken = [*_routed(), *self.nameservers(), *self.reach.allowed]
        subnet = free_subnet(self.owner, taken)
        if subnet is None:
            raise OSError(errno.EADDRNOTAVAIL, "every subnet for sandboxes is already routed on this host")
        self.folder.mkdir(mode=0o700, exist_ok=True)
        new = self.folder / "cni.json.new"
        new.write_text(json.dumps(cni_configuration(self.name, subnet, str(self.folder / "leases"), _mtu())))
        new.rename(self._conf)

    def _remove(self) -> None:
        if self._conf.exists():
            self._await_ports()
            # Whoever is still attached loses the bridge before the rules.
            if _interface(self.name).exists():
                _call(["ip", "link", "delete", self.name])
            _call(["nft", "-f", "-"], remove_rules(self.name))
            shutil.rmtree(self.folder / "leases", ignore_errors=True)
            self._conf.unlink()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _await_ports(self) -> None:
        """A namespace whose last process has just ended takes its interfaces along a moment later."""
        ports = _interface(self.name) / "brif"
        deadline = time.monotonic() + _SECONDS
        while ports.is_dir() and os.listdir(ports) and time.monotonic() < deadline:  # noqa: PTH208 - only whether any
            time.sleep(_STEP_SECONDS)


def _fill(record: AllocationRecord, bundle: Path, address: str | None = None, servers: Sequence[str] = ()) -> None:
    """Write the files, in place: they may already be mounted in the sandbox."""
    (bundle / _HOSTS).write_text(hosts_file(record.hostname, address))
    (bundle / _RESOLV_CONF).write_text(resolv_conf(servers))


def _is_port(interface: Mapping[str, str], bridge: str) -> bool:
    return not interface.get("sandbox") and interface["name"] != bridge


def _interface(name: str) -> Path:
    return Path("/sys/class/net") / name


def _open_namespace(pid: int | None) -> int | None:
    if pid is None:
        return None
    try:
        return os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError):
        return None


def _plugins() -> Path | None:
    return next((each for each in _PLUGIN_FOLDERS if all(os.access(each / p, os.X_OK) for p in _PLUGINS)), None)


def _cni(command: str, allocation: str, namespace: str, configuration: str) -> str:
    """One call of the bridge plugin. Raises `OSError`."""
    plugins = _plugins()
    if plugins is None:
        raise FileNotFoundError(errno.ENOENT, "the CNI plugins are gone")
    env = {
        "CNI_COMMAND": command,
        "CNI_CONTAINERID": allocation,
        "CNI_NETNS": namespace,
        "CNI_IFNAME": INTERFACE,
        "CNI_PATH": str(plugins),
        "PATH": os.environ.get("PATH", os.defpath),
    }
    return _call([str(plugins / "bridge")], configuration, env=env)


def _routes() -> list[dict[str, str]]:
    routes: list[dict[str, str]] = json.loads(_call(["ip", "-json", "-4", "route", "show", "table", "all"]) or "[]")
    return routes


def _routed() -> list[str]:
    return [route["dst"] for route in _routes() if route["dst"] != "default"]


def _mtu() -> int:
    """That of the interface to the outside: a larger one would cost every connection its first packets."""
    out = [route["dev"] for route in _routes() if route["dst"] == "default" and "dev" in route]
    text = _text(_interface(out[0]) / "mtu").strip() if out else ""
    return int(text) if text else _DEFAULT_MTU


def _call(argv: Sequence[str], stdin: str = "", seconds: float = _SECONDS, env: Mapping[str, str] | None = None) -> str:
    """Its standard output. Raises `OSError` with its complaint."""
    try:
        done = subprocess.run(
            argv,
            input=stdin.encode(),
            capture_output=True,
            timeout=seconds,
            check=False,
            env=None if env is None else dict(env),
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(errno.ETIMEDOUT, f"{Path(argv[0]).name} took too long") from error
    if done.returncode != 0:
        # A plugin complains on its standard output.
        complaint = (done.stderr.strip() or done.stdout.strip()).decode(errors="replace")
        raise OSError(errno.EIO, f"{Path(argv[0]).name}: {complaint[-500:]}")
    return done.stdout.decode()


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
