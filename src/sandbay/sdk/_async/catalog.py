"""The catalog, for administrators: images, releases, channels, and what nodes hold of them."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from sandbay.sdk._async.channels import IMAGES as _IMAGES
from sandbay.sdk._async.channels import AsyncChannels
from sandbay.sdk._async.following import async_followed
from sandbay.sdk._async.transport import AsyncCall
from sandbay.sdk._async.uploads import async_upload
from sandbay.sdk.archive import ArchiveFile
from sandbay.sdk.catalog import STABLE, Asked, prepare_failed, summed
from sandbay.sdk.client import said
from sandbay.sdk.errors import StateError, UnknownReferenceError, of_reason
from sandbay.sdk.layout import LayoutTar
from sandbay.sdk.references import Reference, parse
from sandbay.sdk.releases import Release
from sandbay.sdk.resources import Channel, Evicted, Image, Progress, ProgressCallback, Readiness
from sandbay.sdk.transport import segment
from sandbay.sdk.twins import async_work
from sandbay.sdk.verification import Verification

_VERIFIED_WITHIN = 1800.0
_ASKED_WITHIN = 300.0
_PATIENCE = 60.0
_PAUSE = 1.0


class AsyncImages(AsyncChannels):
    """The catalog's images. Methods that take a reference know `NAME`, `NAME:CHANNEL`, `NAME:7`, `NAME@DIGEST`."""

    async def list(self) -> Sequence[Image]:
        """All images."""
        return [Image.of(item) async for item in self._transport.pages(_IMAGES)]

    async def get(self, name: str) -> Image:
        """One image by name or id. Raises `UnknownReferenceError` (image_unknown)."""
        return Image.of(await self._transport.send(AsyncCall("GET", f"{_IMAGES}/{segment(name)}")))

    async def create(
        self, name: str, *, description: str | None = None, labels: Mapping[str, str] | None = None
    ) -> Image:
        """A new entry without releases. Raises `StateError` (name_taken)."""
        body = {"name": name, "description": description, "labels": labels}
        return Image.of(await self._transport.send(AsyncCall("POST", _IMAGES, json=said(body))))

    async def what_if(
        self,
        *,
        binding: Mapping[str, Any] | None = None,
        allow_list: Mapping[str, Any] | None = None,
        channel: Mapping[str, Any] | None = None,
        retire: Mapping[str, Any] | None = None,
    ) -> Sequence[Mapping[str, Any]]:
        """Whose answers would change if exactly one of these were written: `{kind, name, project, before, after}`.

        `binding` is `{subject, runtime_image_id, mode?}`, `allow_list` `{subject, images?, labels?, everything?,
        absent?}`, `channel` `{image, channel, release}`, `retire` `{image, release?}`. Nothing is written.
        """
        body = said({"binding": binding, "allow_list": allow_list, "channel": channel, "retire": retire})
        call = AsyncCall("POST", "/core/v1/sandbox/what-if", json=body, repeatable=True, read_timeout=_ASKED_WITHIN)
        changes: Sequence[Mapping[str, Any]] = (await self._transport.send(call))["changes"]
        return changes

    async def releases(self, name: str) -> Sequence[Release]:
        """All releases of an image, whole."""
        return [Release.of(item) async for item in self._transport.pages(f"{_IMAGES}/{segment(name)}/releases")]

    async def release(self, reference: str) -> Release:
        """The release that a reference means now. Raises `UnknownReferenceError`."""
        asked = parse(reference)
        if asked.digest is not None:
            return await self._by_digest(asked)
        number = asked.number if asked.number is not None else (await self._channel(asked)).release
        return Release.of(
            await self._transport.send(AsyncCall("GET", f"{_IMAGES}/{segment(asked.name)}/releases/{number}"))
        )

    async def register_layout(
        self,
        name: str,
        folder: str | os.PathLike[str],
        *,
        tag: str | None = None,
        progress: ProgressCallback | None = None,
        **asked: Unpack[Asked],
    ) -> Release:
        """Upload an OCI layout folder and register it as a release of `name`; the image is made if missing.

        The same content again is the same release. It is `pending` until a node has proved it (`wait_active`).
        Raises `ContentError` and what `create` raises.
        """
        return await self._register(
            name,
            {"upload": await async_upload(self._transport, await async_work(LayoutTar, folder), progress), "tag": tag},
            asked,
            progress,
        )

    async def register_archive(
        self,
        name: str,
        file: str | os.PathLike[str],
        *,
        tag: str | None = None,
        progress: ProgressCallback | None = None,
        **asked: Unpack[Asked],
    ) -> Release:
        """Upload an archive and register it: the tar of an OCI layout, or what `docker save` wrote.

        `tag` says which image where there are several, as the archive spells it. Raises as `register_layout` does.
        """
        return await self._register(
            name,
            {"upload": await async_upload(self._transport, await async_work(ArchiveFile, file), progress), "tag": tag},
            asked,
            progress,
        )

    async def register_registry(
        self, name: str, reference: str, *, progress: ProgressCallback | None = None, **asked: Unpack[Asked]
    ) -> Release:
        """Register what a registry has under HOST/REPOSITORY[:TAG][@DIGEST]; the installation fetches it.

        A tag is resolved to its digest now. Where the registry wants credentials, put them first
        (`AdminClient.registries`). Raises `TransferError`, and as `register_layout` does.
        """
        return await self._register(name, {"registry": reference}, asked, progress)

    async def register_artifacts(self, name: str, **asked: Unpack[Asked]) -> Release:
        """Register what a provider has already, by the `artifacts` that identify it there; no bytes are given.

        Raises `ChoosingError` (release_incomplete) where that is enough for no provider of the installation.
        """
        return await self._register(name, None, asked, None)

    async def _register(
        self, name: str, source: Mapping[str, Any] | None, asked: Asked, progress: ProgressCallback | None
    ) -> Release:
        try:
            await self.create(name)
        except StateError as error:
            if error.code != "name_taken":
                raise
        body = {
            "source": None if source is None else said(source),
            "artifacts": dict(asked.get("artifacts", {})) or None,
            "platforms": list(asked.get("platforms", ())) or None,
            "providers": list(asked.get("providers", ())) or None,
            "source_commit": asked.get("source_commit"),
            "promote": asked.get("promote"),
            "tools": asked.get("tools"),
        }
        call = AsyncCall("POST", f"{_IMAGES}/{segment(name)}/releases", json=said(body), read_timeout=_VERIFIED_WITHIN)
        phase = "fetching" if source is not None and "registry" in source else "verifying"
        return Release.of(await async_followed(self._transport, call, "release", phase, progress))

    async def wait_active(
        self, name: str, number: int, *, timeout: float = 1800.0, progress: ProgressCallback | None = None
    ) -> Release:
        """Wait until a release is active. Raises what keeps it from that.

        Its fault when it is rejected, `image_prepare_failed` when every node gave up on it, `wait_expired`
        after `timeout` seconds.
        """
        waited = 0.0
        while True:
            # The nodes first: what they failed by is then already in the release's state.
            held = [line for line in await self.readiness(name) if line.release == number]
            call = AsyncCall("GET", f"{_IMAGES}/{segment(name)}/releases/{number}", patience=_PATIENCE)
            release = Release.of(await self._transport.send(call))
            if release.state == "rejected":
                raise of_reason(release.raw.get("fault"))
            if release.state != "pending":
                return release
            if held and all(line.state == "failed" and line.retry_at is None for line in held):
                raise of_reason(prepare_failed(f"{name}:{number}", held))
            if waited >= timeout:
                message = f"{name}:{number} is still pending after {timeout:.0f} s"
                raise of_reason({"code": "wait_expired", "message": message})
            if progress is not None:
                progress(summed(held))
            await self._transport.sleep(_PAUSE)
            waited += _PAUSE

    async def check(
        self, reference: str, *, timeout: float = 600.0, progress: ProgressCallback | None = None
    ) -> Release:
        """Have a release's tools looked at again in a new sandbox, and wait for the report.

        The answer's `contract.state` says whether it keeps what it promises; a release that is in use stays in use.
        Raises `ChoosingError` (release_rejected) for bytes at fault, `wait_expired` after `timeout` seconds.
        """
        name, number = parse(reference).name, (await self.release(reference)).number
        path = f"{_IMAGES}/{segment(name)}/releases/{number}"
        release = Release.of(await self._transport.send(AsyncCall("POST", f"{path}/check", repeatable=True)))
        waited = 0.0
        while release.contract is not None and release.contract.state == "due":
            if waited >= timeout:
                trouble = release.contract.trouble
                why = "" if trouble is None else f": {trouble.message} ({trouble.code})"
                message = f"{name}:{number} has not been checked after {timeout:.0f} s{why}"
                raise of_reason({"code": "wait_expired", "message": message})
            if progress is not None:
                progress(Progress("checking tools"))
            await self._transport.sleep(_PAUSE)
            waited += _PAUSE
            release = Release.of(await self._transport.send(AsyncCall("GET", path, patience=_PATIENCE)))
        return release

    async def retire(self, reference: str) -> None:
        """No new Sessions on an image, or on one release of it; those that live go on."""
        await self._become(reference, "retired")

    async def set_tier(self, name: str, tier: str) -> Image:
        """Make it `restricted`, so that it needs a grant, or `standard`. Raises `UnknownReferenceError`."""
        call = AsyncCall("PATCH", f"{_IMAGES}/{segment(name)}", json={"tier": tier}, repeatable=True)
        return Image.of(await self._transport.send(call))

    async def deprecate(self, reference: str) -> None:
        """Advise against an image, or against one release of it; both still work."""
        await self._become(reference, "deprecated")

    async def reactivate(self, reference: str) -> None:
        """Take back `deprecate` and `retire`."""
        await self._become(reference, "active")

    async def _become(self, reference: str, state: str) -> None:
        asked = parse(reference)
        if asked.is_whole_image:
            body = {"state": state, "expected_revision": (await self.get(asked.name)).revision}
            await self._transport.send(AsyncCall("PATCH", f"{_IMAGES}/{segment(asked.name)}", json=body))
        else:
            number = asked.number if asked.number is not None else (await self.release(reference)).number
            path = f"{_IMAGES}/{segment(asked.name)}/releases/{number}"
            await self._transport.send(AsyncCall("PATCH", path, json={"state": state}, repeatable=True))

    async def readiness(self, name: str) -> Sequence[Readiness]:
        """What each node says of the image."""
        return [Readiness.of(item) async for item in self._transport.pages(f"{_IMAGES}/{segment(name)}/readiness")]

    async def evict(self, reference: str, *, node: str | None = None) -> Evicted:
        """Have nodes drop an image's bytes, as far as nothing needs them."""
        return Evicted.of(await self._act_on_nodes(reference, "evict", node) or {})

    async def preload(self, reference: str, *, node: str | None = None) -> None:
        """Wish that nodes hold the image; they fetch it in their own time, at once where it has failed."""
        await self._act_on_nodes(reference, "preload", node)

    async def verify(
        self, reference: str, *, node: str | None = None, progress: ProgressCallback | None = None
    ) -> Verification:
        """Look at every byte again: the blobs in the installation's store, and what nodes made of them.

        What a node finds damaged is not ready there any more, and is fetched again. `NAME` means all releases.
        """
        call = _about_nodes(reference, "verify", node)
        answer = await async_followed(self._transport, call, "verified", "verifying", progress)
        return Verification.of(answer)

    async def _act_on_nodes(self, reference: str, action: str, node: str | None) -> Any:
        return await self._transport.send(_about_nodes(reference, action, node))

    async def _channel(self, asked: Reference) -> Channel:
        name = asked.channel or STABLE
        channel = (await self.get(asked.name)).channels.get(name)
        if channel is None:
            message = f"{asked.name} has no channel {name}"
            raise UnknownReferenceError(message, code="channel_unknown", param="reference")
        return channel

    async def _by_digest(self, asked: Reference) -> Release:
        for release in await self.releases(asked.name):
            if any(asked.digest in {v.digest, v.index_digest} for v in release.variants):
                return release
        message = f"{asked.name} has no release with this digest"
        raise UnknownReferenceError(message, code="release_unknown", param="reference")


def _about_nodes(reference: str, action: str, node: str | None) -> AsyncCall:
    asked = parse(reference)
    body = {"reference": None if asked.is_whole_image else reference, "node": node}
    path = f"{_IMAGES}/{segment(asked.name)}/{action}"
    return AsyncCall("POST", path, json=said(body), repeatable=True, read_timeout=_SLOW[action])


_SLOW = {"evict": 300.0, "preload": 300.0, "verify": 7200.0}
"""Seconds until an answer that nobody is told the progress of."""
