"""`sandbay doctor`: what this host has for the local node's provider, without an installation being up."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.entrypoints.providers import open_provider
from sandbay.entrypoints.service import check_root
from sandbay.entrypoints.settings import Settings
from sandbay.ports.provider import Finding


def examine(settings: Settings) -> Sequence[Finding]:
    """The provider's own findings, in folders that are gone afterwards."""
    check_root()
    base = settings.home if settings.home.is_dir() else Path("/var/tmp")  # noqa: S108 - a private folder in it
    with tempfile.TemporaryDirectory(prefix="doctor-", dir=base) as folder:
        home = Path(folder)
        home.chmod(0o711)
        scratch = replace(settings, home=home / "home", run=home / "run")
        provider = open_provider(scratch, FolderBlobs(home / "blobs"), "ins_doctor")
        try:
            return provider.check()
        finally:
            provider.close()
