"""The Python client of an installation.

    from sandbay import Sandbox

    with Sandbox.create("web:stable") as box:
        print(box.image.digest, box.image.decided_by)
        print(box.commands.run("node --version").stdout)

Imports nothing else of Sandbay: it knows the HTTP interface and no more.
"""

from sandbay.sdk.admin import AdminClient
from sandbay.sdk.client import Client
from sandbay.sdk.commands import CommandStream, Result
from sandbay.sdk.errors import SandbayError
from sandbay.sdk.frames import Chunk
from sandbay.sdk.resources import Progress
from sandbay.sdk.sandbox import Sandbox

__all__ = [
    "AdminClient",
    "Chunk",
    "Client",
    "CommandStream",
    "Progress",
    "Result",
    "SandbayError",
    "Sandbox",
]
