"""A docker daemon of the bench's own: its folders, its socket, no bridge and no firewall rule; ended afterwards."""

import contextlib
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from bench.host import UnmeasurableError, family, named, no_groups_left, processor_seconds, run, wait_until
from bench.node import SIZE

_PROGRAM = "/usr/sbin/dockerd"
_CLIENT = "/usr/bin/docker"
_API = "/v1.41"
_LIMITS = {
    "Memory": SIZE.memory,
    "NanoCpus": round(SIZE.cpus * 1e9),
    "PidsLimit": SIZE.pids,
    "NetworkMode": "none",
}
LIMITS = (f"--memory={SIZE.memory}", f"--cpus={SIZE.cpus}", f"--pids-limit={SIZE.pids}", "--network=none")
"""The same for a command line, docker's or podman's."""
_OFF = ("--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false")


class Docker:
    """The daemon, its command line and its API."""

    def __init__(self, place: Path, process: "subprocess.Popen[bytes]") -> None:
        """`place` holds its socket."""
        self._place, self._socket, self._process = place, place / "docker.sock", process
        transport = httpx.HTTPTransport(uds=str(self._socket))
        self.api = httpx.Client(transport=transport, base_url=f"http://docker{_API}", timeout=120)

    @property
    def command(self) -> tuple[str, ...]:
        """The start of a command line."""
        return (_CLIENT, "--host", f"unix://{self._socket}")

    @property
    def processes(self) -> list[int]:
        """The daemon, its containerd, and the shims of its containers; not what runs in them."""
        return family(self._process.pid) + named("containerd-shim", str(self._place))

    def run(self, *arguments: str | Path) -> str:
        """Run its command line; what it says."""
        return run(*self.command, *arguments)

    def processor_seconds(self) -> float:
        """What the daemon has cost until now, its containerd and the children that unpack included."""
        return processor_seconds(family(self._process.pid))

    def pull(self, reference: str) -> tuple[float, float]:
        """Pull an image; wall and processor seconds."""
        cost, begun = self.processor_seconds(), time.perf_counter()
        self.run("pull", "--quiet", reference)
        wall = time.perf_counter() - begun
        return wall, self.processor_seconds() - cost

    def create(self, image: str, *argv: str) -> str:
        """Create and start a container without a network, with limits; its id."""
        body = {"Image": image, "Cmd": list(argv), "HostConfig": _LIMITS}
        name = self._post("/containers/create", body)["Id"]
        self._post(f"/containers/{name}/start")
        return name

    def first_output(self, image: str, *argv: str) -> float:
        """Seconds from asking for a container until its first byte of output; it is removed afterwards."""
        begun = time.perf_counter()
        body = {"Image": image, "Cmd": list(argv), "AttachStdout": True, "HostConfig": _LIMITS}
        name = self._post("/containers/create", body)["Id"]
        attach = f"/containers/{name}/attach?stream=1&stdout=1"
        with self.api.stream("POST", attach) as answer:
            self._post(f"/containers/{name}/start")
            next(answer.iter_raw())
            took = time.perf_counter() - begun
        self.remove(name)
        return took

    def exec(self, container: str, *argv: str) -> float:
        """Seconds until the first byte of output of a command in a container."""
        begun = time.perf_counter()
        made = self._post(f"/containers/{container}/exec", {"AttachStdout": True, "Cmd": list(argv)})
        with self.api.stream("POST", f"/exec/{made['Id']}/start", json={"Detach": False}) as answer:
            next(answer.iter_raw())
            return time.perf_counter() - begun

    def remove(self, container: str) -> None:
        """End and remove a container."""
        self.api.delete(f"/containers/{container}", params={"force": "1"}).raise_for_status()

    def _post(self, path: str, body: object = None) -> dict[str, str]:
        answer = self.api.post(path, json=body).raise_for_status()
        return dict(json.loads(answer.content)) if answer.content else {}


@contextlib.contextmanager
def serving(data: Path) -> Iterator[Docker]:
    """A daemon that keeps its images and containers in `data`."""
    if not Path(_PROGRAM).exists():
        raise UnmeasurableError(f"{_PROGRAM} is not there: ./dev bench installs it")
    with no_groups_left("docker"), tempfile.TemporaryDirectory(prefix="sandbay-bench-docker-", dir="/run") as name:
        place = Path(name)
        settings = place / "daemon.json"
        settings.write_text(json.dumps({"deprecated-key-path": str(place / "key.json")}))
        where: list[str | Path] = [
            *("--config-file", settings, "--data-root", data, "--exec-root", place / "exec"),
            *("--pidfile", place / "pid", "--host", f"unix://{place}/docker.sock"),
        ]
        with (place / "log").open("wb") as log:
            command = [_PROGRAM, *where, *_OFF, "--insecure-registry", "127.0.0.0/8"]
            process = subprocess.Popen(command, stdout=log, stderr=log)
        docker = Docker(place, process)
        try:
            wait_until(lambda: _answers(docker), "the docker daemon's start")
            yield docker
        finally:
            docker.api.close()
            _end(process, place, data)


def _answers(docker: Docker) -> bool:
    try:
        return docker.api.get("/_ping").is_success
    except httpx.TransportError:
        return False


def _end(process: "subprocess.Popen[bytes]", place: Path, data: Path) -> None:
    """End it, and undo the mounts that it leaves."""
    helpers = family(process.pid)[1:]
    process.terminate()
    process.wait(60)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in helpers), "the daemon's end")
    mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for point in reversed(mounted):
        if point.startswith((f"{place}/", f"{data}/")) or point == str(data):
            run("umount", point)
