"""Who an installation and its local nodes are, kept in its home."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbay.adapters.ids.random import RandomIds
from sandbay.domain.ids import NodeId
from sandbay.engine.durable import write_file


@dataclass(frozen=True, slots=True)
class Identities:
    """Made at the first start and kept: who this installation is, and its local nodes by the kind of their provider."""

    installation: str
    nodes: Mapping[str, NodeId]


def identities(home: Path, kinds: Sequence[str] = ()) -> Identities:
    """Read them; what is new is made durable before anybody hears of it."""
    path, ids = home / "identity.json", RandomIds()
    known = json.loads(path.read_text()) if path.exists() else {}
    nodes: dict[str, str] = {kind: ids.new("node") for kind in kinds} | known.get("nodes", {})
    data = {"installation": ids.new("installation"), **known, "nodes": nodes}
    if data != known:
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        write_file(path, json.dumps(data).encode(), part)
    return Identities(data["installation"], {kind: NodeId(node) for kind, node in nodes.items()})
