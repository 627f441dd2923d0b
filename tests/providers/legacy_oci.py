"""A node on a host that mounts control groups of version 1 only; prints what it got done."""

import os
import sys
from pathlib import Path

from tests.providers.real_oci import Images, Installation


def main(folder: Path, home: Path) -> None:
    images = Images(folder)
    installation = Installation(images, home)
    print(installation.provider._cgroups.layout)  # noqa: T201 - the test reads it
    allocation = installation.start(images.plain())
    if installation.run(allocation, "cat /etc/which").stdout == b"plain":
        print("ran")  # noqa: T201
    ran = installation.run(allocation, "setsid sleep 4405 & sleep 4405", timeout=1.0)
    if ran.exit.timed_out and installation.processes(allocation) == []:
        print("ended")  # noqa: T201
    installation.provider.destroy(allocation)
    installation.provider.close()
    # Asked here: the mount is in this process's own mount namespace.
    if installation.left() == {} and not os.path.ismount(installation.run_folder / "cgroup2"):
        print("free")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
