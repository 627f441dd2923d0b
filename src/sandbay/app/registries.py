"""Registries as sources, and the installation's secrets for them: put, listed by name, used, never told."""

import json
from collections.abc import Sequence

from sandbay.app import audit
from sandbay.app.core import Actor, Core
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import Malformed, OciReference, parse_oci, parse_registry
from sandbay.domain.registry import Credentials, RegistrySecret
from sandbay.ports.changes import Conflict, DropRegistrySecret, PutRegistrySecret
from sandbay.ports.image_source import ImageSource
from sandbay.ports.store import RegistrySecretOf, RegistrySecrets, Store
from sandbay.ports.vault import Vault


def put_secret(core: Core, actor: Actor, registry: str, credentials: Credentials) -> RegistrySecret:
    """Keep them for this registry, in place of what was kept before."""
    name = _registry(registry)
    said = json.dumps([credentials.username, credentials.password]).encode()
    secret = RegistrySecret(name, core.vault.seal(said, _context(name)), core.clock.now())
    core.store.apply(PutRegistrySecret(secret), audit.done(core, actor, "registry_secret.put", name))
    return secret


def list_secrets(core: Core) -> Sequence[RegistrySecret]:
    """By registry."""
    return core.store.read(RegistrySecrets())


def drop_secret(core: Core, actor: Actor, registry: str) -> None:
    """Forget them. `not_found` when there are none."""
    name = _registry(registry)
    try:
        core.store.apply(DropRegistrySecret(name), audit.done(core, actor, "registry_secret.delete", name))
    except Conflict as conflict:
        raise RefusedError(Reason.NOT_FOUND, f"there is no secret for {name}") from conflict


def parse_source(text: str) -> OciReference:
    """A reference to a registry. Refuses with `invalid_reference`."""
    reference = parse_oci(text)
    if isinstance(reference, Malformed):
        raise RefusedError(Reason.INVALID_REFERENCE, reference.why, param="source.registry")
    return reference


def open_registry(core: Core, reference: OciReference) -> ImageSource:
    """The reference as a source, with the secret of its registry where there is one."""
    return core.registries.source(reference, credentials_for(core.store, core.vault, reference.domain))


def credentials_for(store: Store, vault: Vault, domain: str) -> Credentials | None:
    """What is kept for a registry, or None."""
    registry = _registry(domain)
    secret = store.read(RegistrySecretOf(registry))
    if secret is None:
        return None
    username, password = json.loads(vault.unseal(secret.sealed, _context(registry)))
    return Credentials(username, password)


def _registry(text: str) -> str:
    name = parse_registry(text)
    if isinstance(name, Malformed):
        raise RefusedError(Reason.INVALID_REFERENCE, name.why, param="registry")
    return name


def _context(registry: str) -> str:
    """What is sealed for one registry opens for no other."""
    return f"registry:{registry}"
