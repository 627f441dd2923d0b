"""What a registry's "no" means. Its own code is kept; its words are not repeated, they may hold anything."""

import re
from collections.abc import Mapping
from http import HTTPStatus

from sandbay.domain.errors import Facts, RefusedError
from sandbay.domain.reasons import Reason
from sandbay.engine.documents import read_document

_CODE = re.compile(r"[A-Z_]{1,64}")


class PassingError(RefusedError):
    """A refusal that may be gone when the same is tried again. `wait` is what the other side asks for, in seconds."""

    def __init__(
        self, reason: Reason, message: str, *, details: Facts | None = None, wait: float | None = None
    ) -> None:
        """As `RefusedError`."""
        super().__init__(reason, message, details=details)
        self.wait = wait


def unreachable(registry: str, why: str, **facts: object) -> PassingError:
    """It cannot be talked to, for now."""
    return PassingError(
        Reason.REGISTRY_UNREACHABLE, f"{registry} cannot be used: {why}", details={"registry": registry, **facts}
    )


def refused_for_good(registry: str, why: str, **facts: object) -> RefusedError:
    """It answers what we do not go along with; asking again would not change that."""
    return RefusedError(
        Reason.REGISTRY_UNREACHABLE, f"{registry} cannot be used: {why}", details={"registry": registry, **facts}
    )


def stalled(registry: str) -> PassingError:
    """It sends nothing, or hardly anything."""
    return PassingError(Reason.STALLED, f"{registry} stopped sending", details={"registry": registry})


def unauthorized(registry: str, status: int = 401) -> RefusedError:
    """Registries answer the same for what does not exist and for what these credentials may not see."""
    return RefusedError(
        Reason.UNAUTHORIZED_OR_MISSING,
        f"{registry} wants other credentials, or there is no such repository",
        details={"registry": registry, "status": status},
    )


def of_answer(registry: str, status: int, body: bytes, missing: Reason) -> RefusedError:
    """The refusal for an answer of the registry itself. `missing` is what a plain 404 means here."""
    code = _code(body)
    facts: Mapping[str, object] = {"registry": registry, "status": status, "code": code}
    if status == HTTPStatus.UNAUTHORIZED:
        return unauthorized(registry)
    if status == HTTPStatus.FORBIDDEN:
        return RefusedError(Reason.SOURCE_FORBIDDEN, f"{registry} does not allow it", details=facts)
    if status == HTTPStatus.NOT_FOUND:
        reason = Reason.REPOSITORY_MISSING if code in ("NAME_UNKNOWN", "NAME_INVALID") else missing
        return RefusedError(reason, f"{registry} {_LACKS[reason]}", details=facts)
    if code in _UNSETTLED:
        return unreachable(registry, "it does not see what was pushed as it was", status=status, code=code)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return unreachable(registry, f"it answers {status}", status=status, code=code)
    return refused_for_good(registry, f"it answers {status}", status=status, code=code)


_UNSETTLED = frozenset({"MANIFEST_BLOB_UNKNOWN", "DIGEST_INVALID"})
"""Said of what was pushed right: where others push the same at the same moment, or bytes were lost on the way."""

_LACKS = {
    Reason.REPOSITORY_MISSING: "has no such repository",
    Reason.MANIFEST_MISSING: "has no such tag or digest",
    Reason.BLOB_MISSING: "lacks a blob that the manifest names",
    Reason.REGISTRY_UNREACHABLE: "has forgotten an upload that it began",
}


def _code(body: bytes) -> str | None:
    """The first code of the registry's error document, if it is one."""
    try:
        errors = read_document(body, Reason.MALFORMED_MANIFEST, "error").parts("errors")
        code = errors[0].text("code", "") if errors else ""
    except RefusedError:
        return None
    return code if _CODE.fullmatch(code) else None
