"""What is large: layers in flat memory, documents as large as real ones, many layers."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbay.engine.media import Compression
from tests.engine.store_support import Host
from tests.support.oci_layout import Layout
from tests.support.tar_entries import file
from tests.support.unpacking import needs_unpacking

pytestmark = needs_unpacking

MIB = 1 << 20


def took(folder: Path, compression: Compression, mib: int) -> dict[str, int]:
    folder.mkdir()
    command = [sys.executable, "-m", "tests.support.huge", str(folder), compression, str(mib)]
    done = subprocess.run(command, capture_output=True, check=True, cwd=Path(__file__).parents[2])
    shutil.rmtree(folder)
    told: dict[str, int] = json.loads(done.stdout)
    assert told["written"] == mib * MIB
    return told


@pytest.mark.parametrize("compression", [Compression.GZIP, Compression.ZSTD])
def test_memory_stays_flat_however_large_a_layer_is(tmp_path: Path, compression: Compression) -> None:
    """Both processes take for 256 MiB what they take for 16 MiB, give or take a buffer."""
    small, large = took(tmp_path / "s", compression, 16), took(tmp_path / "l", compression, 256)
    assert large["bytes"] == 256 * MIB + 1
    assert large["grew"] < small["grew"] + 8 * 1024, (small, large)
    assert large["child"] < small["child"] + 8 * 1024, (small, large)


@pytest.mark.parametrize("large", ["manifest", "config"])
def test_documents_as_large_as_real_ones_pass(tmp_path: Path, large: str) -> None:
    """Annotations and history of 3 MiB are no reason to refuse an image."""
    words: dict[str, Any] = {"manifest": {"annotations": {"a": "x" * 3 * MIB}}, "config": {"author": "x" * 3 * MIB}}
    layout = Layout(tmp_path / "layout")
    layout.image([[file("f", "1")]], platform="linux/amd64", **{f"change_{large}": words[large]})
    host = Host(tmp_path)
    variant = host.register(layout.path)
    assert host.verdict(variant) is None
    assert max(variant.manifest_size, variant.config_size) > 3 * MIB
