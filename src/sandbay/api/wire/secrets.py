"""Projects' secrets: they go in and never come out."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError, WithJsonSchema

from sandbay.api.wire.base import NO_NUL, In, Listing, Out, VariableName, sized
from sandbay.domain.secret import SECRET_NAME, Secret

SECRET_BYTES = 64 * 1024


def _short(value: str) -> str:
    if len(value.encode()) > SECRET_BYTES:
        raise ValueError(f"a secret has at most {SECRET_BYTES} bytes")
    return value


SecretValue = Annotated[str, Field(min_length=1, max_length=SECRET_BYTES, pattern=NO_NUL), AfterValidator(_short)]


class SecretIn(In):
    """What a secret holds."""

    value: SecretValue = Field(description="The value.", json_schema_extra={"writeOnly": True})


class SecretOut(Out):
    """That there is a secret, and nothing of it."""

    name: str = Field(description="Its name.")
    updated_at: datetime = Field(description="When it was put.")


class SecretList(Listing[SecretOut]):
    """By name."""


class SecretRef(In):
    """A secret of the project, by its name: the variable holds its value, as it is when a program starts."""

    secret: Annotated[str, Field(pattern=SECRET_NAME)] = Field(description="The secret's name.")


def _sized(env: dict[str, str | SecretRef]) -> dict[str, str | SecretRef]:
    sized({name: value for name, value in env.items() if isinstance(value, str)})
    return env


_TEXT = TypeAdapter(Annotated[str, Field(strict=True, pattern=NO_NUL)])


def _value(value: object) -> str | SecretRef:
    try:
        return SecretRef.model_validate(value) if isinstance(value, dict) else _TEXT.validate_python(value)
    except ValidationError as error:
        raise ValueError('it is text without NUL, or {"secret": NAME} with the name of a secret') from error


Value = Annotated[
    Any, BeforeValidator(_value), WithJsonSchema({"anyOf": [_TEXT.json_schema(), SecretRef.model_json_schema()]})
]
Variables = Annotated[dict[VariableName, Value], AfterValidator(_sized)]
"""Variables whose values are said, or are secrets of the project."""


def plain_of(env: Mapping[str, str | SecretRef]) -> dict[str, str]:
    """Those whose values are said."""
    return {name: value for name, value in env.items() if isinstance(value, str)}


def secrets_of(env: Mapping[str, str | SecretRef]) -> dict[str, str]:
    """Variable → the secret's name."""
    return {name: value.secret for name, value in env.items() if isinstance(value, SecretRef)}


def variables_out(env: Mapping[str, str], secret_env: Mapping[str, str]) -> dict[str, str | SecretRef]:
    """As they came in, by name."""
    said: dict[str, str | SecretRef] = {**env}
    said.update((name, SecretRef(secret=secret)) for name, secret in secret_env.items())
    return dict(sorted(said.items()))


def secret_out(secret: Secret) -> SecretOut:
    """From the domain."""
    return SecretOut(name=secret.name, updated_at=secret.updated_at)
