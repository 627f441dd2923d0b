"""A node's process that starts and ends sandboxes for ever; tests kill it. Arguments: see `main`."""

import json
import sys
from pathlib import Path

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.adapters.providers.oci.provider import OciProvider
from sandbay.domain.canonical import rebuild
from sandbay.domain.command import Command
from sandbay.domain.release import Variant
from sandbay.engine.store import LayerStore
from tests.contracts.provider_harness import order_for, silent


def main(home: str, run: str, blobs: str, installation: str, variant_json: str) -> None:
    """Prepare, create, exec, leave a child running, destroy, remove, again and again. Says `begun` first."""
    variant = rebuild(Variant, json.loads(variant_json))
    layers = LayerStore(Path(home) / "store", FolderBlobs(Path(blobs)))
    provider = OciProvider(Path(home), Path(run), layers, installation)
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    while True:
        provider.prepare(variant, silent)
        order = order_for(variant)
        provider.create(order)
        line = "sleep 4320 & setsid sleep 4321 & echo on"
        provider.exec(order.allocation, Command(shell=line), emit=lambda _, __: None)
        provider.files(order.allocation).write("file", [b"x" * 100_000])
        provider.destroy(order.allocation)
        provider.remove(variant.content_key)


if __name__ == "__main__":
    main(*sys.argv[1:])
