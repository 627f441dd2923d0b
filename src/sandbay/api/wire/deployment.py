"""The deployment."""

from typing import Annotated

from pydantic import Field, field_validator

from sandbay.api.wire.base import In, Labels, Out, PlatformText, Reference, Revision, Slug
from sandbay.domain.deployment import Deployment, Pool, PoolAdmission, SandboxSize
from sandbay.domain.platform import Platform

CPUS, MEMORY, PIDS = 1024, 2**50, 4_194_304
"""More than any host has."""


class SizeIn(In):
    """What one sandbox of a pool may use."""

    cpus: Annotated[float, Field(gt=0, le=CPUS, description="Processors.")] = 1.0
    memory: Annotated[int, Field(ge=16 * 1024 * 1024, le=MEMORY, description="Bytes.")] = 1024**3
    pids: Annotated[int, Field(ge=8, le=PIDS, description="Processes and threads.")] = 256


class PoolIn(In):
    """A pool; an omitted member has its default."""

    name: Slug = Field(description="Unique in the deployment.")
    provider: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9-]+$")] = Field(
        description="The kind of provider that runs its sandboxes."
    )
    platform: PlatformText = Field(description="os/architecture[/variant].")
    size: SizeIn = Field(default=SizeIn(), description="The size of each sandbox.")
    admission: Annotated[PoolAdmission, Field(strict=False)] = Field(
        default=PoolAdmission.OPEN, description="Whether it takes new Sessions."
    )
    node_selector: Labels = Field(default={}, description="Labels that a node of the pool must have.")

    def pool(self) -> Pool:
        """As the domain has it."""
        return Pool(
            self.name,
            self.provider,
            platform_of(self.platform),
            SandboxSize(self.size.cpus, self.size.memory, self.size.pids),
            self.admission,
            dict(self.node_selector),
        )


class DeploymentIn(In):
    """The whole deployment, as it should be."""

    expected_generation: Revision = Field(description="The generation that this replaces.")
    default_image: Reference | None = Field(description="The default image's name, or null for none.")
    default_platform: PlatformText = Field(description="The platform of Sessions that name none.")
    pools: Annotated[list[PoolIn], Field(max_length=100)] = Field(description="In the order in which they are tried.")

    @field_validator("pools")
    @classmethod
    def _distinct(cls, pools: list[PoolIn]) -> list[PoolIn]:
        if len({pool.name for pool in pools}) < len(pools):
            raise ValueError("two pools have the same name")
        return pools


def platform_of(text: str) -> Platform:
    """Of a text that has been checked."""
    platform = Platform.parse(text)
    if platform is None:
        raise ValueError(f"{text} was not checked")
    return platform


class SizeOut(Out):
    """What one sandbox may use."""

    cpus: float = Field(description="Processors.")
    memory: int = Field(description="Bytes.")
    pids: int = Field(description="Processes and threads.")


class PoolOut(Out):
    """A pool."""

    name: str = Field(description="Unique in the deployment.")
    provider: str = Field(description="The kind of provider.")
    platform: str = Field(description="os/architecture[/variant].")
    size: SizeOut = Field(description="The size of each sandbox.")
    admission: PoolAdmission = Field(description="Whether it takes new Sessions.")
    node_selector: dict[str, str] = Field(description="Labels that a node of the pool must have.")


class DeploymentOut(Out):
    """Where sandboxes run."""

    generation: int = Field(description="Rises with every change.")
    default_image: str | None = Field(description="The default image's name.")
    default_platform: str = Field(description="The platform of Sessions that name none.")
    pools: list[PoolOut] = Field(description="In the order in which they are tried.")


def size_out(size: SandboxSize) -> SizeOut:
    """From the domain."""
    return SizeOut(cpus=size.cpus, memory=size.memory, pids=size.pids)


def _pool_out(pool: Pool) -> PoolOut:
    return PoolOut(
        name=pool.name,
        provider=pool.provider,
        platform=str(pool.platform),
        size=size_out(pool.size),
        admission=pool.admission,
        node_selector=dict(pool.node_selector),
    )


def deployment_out(deployment: Deployment, default_image: str | None) -> DeploymentOut:
    """From the domain; `default_image` is the name behind the id."""
    return DeploymentOut(
        generation=deployment.generation,
        default_image=default_image,
        default_platform=str(deployment.default_platform),
        pools=[_pool_out(pool) for pool in deployment.pools],
    )
