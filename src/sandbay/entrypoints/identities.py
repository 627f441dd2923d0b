"""Who an installation and its local node are, kept in its home."""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sandbay.adapters.ids.random import RandomIds
from sandbay.domain.ids import NodeId
from sandbay.engine.durable import write_file


@dataclass(frozen=True, slots=True)
class Identities:
    """Made at the first start and kept: who this installation and its local node are."""

    installation: str
    node: NodeId


def identities(home: Path) -> Identities:
    """Read them, or make them durable."""
    path = home / "identity.json"
    with suppress(FileNotFoundError):
        data = json.loads(path.read_text())
        return Identities(data["installation"], NodeId(data["node"]))
    ids = RandomIds()
    made = Identities(ids.new("installation"), NodeId(ids.new("node")))
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    write_file(path, json.dumps({"installation": made.installation, "node": made.node}).encode(), part)
    return made
