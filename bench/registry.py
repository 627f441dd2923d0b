"""Debian's docker-registry on loopback, and what it was asked for, by its own access log."""

import contextlib
import re
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from bench.host import UnmeasurableError, folder, run, wait_until
from bench.image import Image
from sandbay.adapters.blobs.registry import RegistryBlobs
from sandbay.adapters.image_source.layout import FolderTree, LayoutSource
from sandbay.domain.platform import Platform
from sandbay.domain.reference import OciReference
from sandbay.domain.release import Variant
from sandbay.engine.registry.trust import Trust
from sandbay.ports.image_source import Wanted

REPOSITORY = "bench/image"
_INSTALLATION = "ins_bench"
_ASKED = re.compile(r'"(?P<method>[A-Z]+) /v2/(?P<path>\S+) HTTP/[0-9.]+" (?P<status>\d+) (?P<bytes>\d+)')


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that the registry has answered, and how many bytes it sent."""

    method: str
    path: str
    status: int
    bytes: int

    @property
    def of_blob(self) -> bool:
        """Whether a blob's bytes were asked for."""
        return self.method == "GET" and "/blobs/sha256:" in self.path


class Registry:
    """A registry that serves while `serving` is entered."""

    def __init__(self, root: Path, host: str) -> None:
        """`host` is where it listens."""
        self._root, self.host = root, host
        self._log = root / "log"

    @property
    def address(self) -> str:
        """The repository of all images here."""
        return f"{self.host}/{REPOSITORY}"

    def blobs(self) -> RegistryBlobs:
        """The repository as an installation's store of blobs."""
        place = OciReference(self.host, REPOSITORY, None, None)
        return RegistryBlobs(place, _INSTALLATION, lambda: None, Trust([self.host]), self._root / "scratch")

    def take(self, image: Image) -> Variant:
        """Have an image, for docker as a tag and for us as an installation keeps it; what was registered."""
        tag = f"docker://{self.address}:{image.layout.name}"
        run("skopeo", "--insecure-policy", "copy", "--dest-tls-verify=false", f"oci:{image.layout}", tag)
        platform = Platform.parse(f"linux/{image.architecture}")
        if platform is None:
            raise UnmeasurableError("the images are of no known platform")
        with self.blobs() as blobs:
            source = LayoutSource(lambda: FolderTree(image.layout))
            (variant,) = source.read(Wanted([platform]), blobs, lambda _: None)
        return variant

    def asked(self) -> list[Asked]:
        """All requests until now."""
        found = (_ASKED.search(line) for line in self._log.read_text(errors="replace").splitlines())
        return [Asked(it["method"], it["path"], int(it["status"]), int(it["bytes"])) for it in found if it]


@contextlib.contextmanager
def serving() -> Iterator[Registry]:
    """A fresh registry."""
    with folder("registry") as root, socket.create_server(("127.0.0.1", 0)) as probe:
        host = f"127.0.0.1:{probe.getsockname()[1]}"
        probe.close()
        config = root / "config.yml"
        config.write_text(
            "version: 0.1\n"
            "log: {level: error, formatter: text}\n"
            f"storage: {{filesystem: {{rootdirectory: {root}/data}}}}\n"
            f"http: {{addr: '{host}', secret: not-one}}\n"
        )
        with (root / "log").open("wb") as log:
            process = subprocess.Popen(["docker-registry", "serve", config], stdout=log, stderr=log)
        try:
            wait_until(lambda: _answers(host), "the registry's start")
            yield Registry(root, host)
        finally:
            process.terminate()
            process.wait(30)


def _answers(host: str) -> bool:
    try:
        return httpx.get(f"http://{host}/v2/", trust_env=False).is_success
    except httpx.TransportError:
        return False
