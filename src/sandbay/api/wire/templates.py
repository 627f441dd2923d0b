"""Environment Templates."""

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from sandbay.api.wire.base import (
    IDLE_TOLD,
    LIFE_TOLD,
    NO_NUL,
    UPGRADE,
    In,
    Listing,
    Out,
    PlatformText,
    Reference,
    RefusalOut,
    Requires,
    Revision,
    Seconds,
    Slug,
    refusal_of,
)
from sandbay.api.wire.commands import Arguments
from sandbay.api.wire.explain import resolved_out
from sandbay.api.wire.inline import FILES_TOLD, InlineFileOut, InlineFiles, files_of, files_out, fitting
from sandbay.api.wire.secrets import SecretRef, Variables, plain_of, secrets_of, variables_out
from sandbay.api.wire.sessions import FrozenImageOut
from sandbay.app.templates import TemplateView
from sandbay.domain.declaration import Network
from sandbay.domain.package import PACKAGES, PackageTool, package_fault
from sandbay.domain.skill import PLUGINS, SKILLS, Plugin, Skill, read_plugin, read_skill
from sandbay.domain.template import SETUP_COMMANDS, SetupCommand
from sandbay.domain.trail import Outcome
from sandbay.flow.resolve import Selected

_LINE = TypeAdapter(Annotated[str, Field(strict=True, min_length=1, max_length=32 * 1024, pattern=NO_NUL)])
_ARGV = TypeAdapter(Annotated[Arguments, Field(strict=True, min_length=1)])


def _command(value: object) -> SetupCommand:
    try:
        if isinstance(value, list):
            return SetupCommand(argv=tuple(_ARGV.validate_python(value)))
        return SetupCommand(None, _LINE.validate_python(value))
    except ValidationError as error:
        message = "a setup command is a shell line, or a list of a program and its arguments"
        raise ValueError(f"{message}: {error.errors()[0]['msg']}") from error


def _package(tool: PackageTool) -> AfterValidator:
    def fits(text: str) -> str:
        fault = package_fault(tool, text)
        if fault is not None:
            raise ValueError(fault.why)
        return text

    return AfterValidator(fits)


def _no_system_packages(_: object) -> None:
    raise ValueError("system packages belong into an image: publish one that has them, and name it here")


SetupCommandIn = Annotated[
    Any,
    BeforeValidator(_command),
    WithJsonSchema({"anyOf": [_LINE.json_schema(), _ARGV.json_schema()]}),
]
Npm = Annotated[str, Field(min_length=1, max_length=512), _package(PackageTool.NPM)]
Python = Annotated[str, Field(min_length=1, max_length=512), _package(PackageTool.PYTHON)]


class PackagesIn(In):
    """Packages beside those of the image; an omitted member keeps what there is, null clears it."""

    system: SkipJsonSchema[Annotated[Any, BeforeValidator(_no_system_packages)]] = None
    npm: Annotated[list[Npm], Field(max_length=PACKAGES)] | None = Field(
        default=None, description="name, name@version, or ./path.tgz in the workspace. Installed for all users."
    )
    python: Annotated[list[Python], Field(max_length=PACKAGES)] | None = Field(
        default=None, description="name, name>=version, or ./path.whl in the workspace. Installed for all users."
    )

    def said(self) -> dict[str, tuple[str, ...]]:
        """The tools that are spoken of."""
        return {tool: tuple(getattr(self, tool) or ()) for tool in self.model_fields_set - {"system"}}


class SkillIn(In):
    """A folder with `SKILL.md`, whose front matter gives `name`, `description` and `requires`."""

    files: InlineFiles = Field(description=FILES_TOLD)

    @model_validator(mode="after")
    def _is_one(self) -> "SkillIn":
        _ = self.skill
        return self

    @cached_property
    def skill(self) -> Skill:
        """As the domain has it."""
        return fitting(read_skill(files_of(self.files)))


class PluginIn(In):
    """A folder with `plugin.json`, which gives `name`."""

    files: InlineFiles = Field(description=FILES_TOLD)

    @model_validator(mode="after")
    def _is_one(self) -> "PluginIn":
        _ = self.plugin
        return self

    @cached_property
    def plugin(self) -> Plugin:
        """As the domain has it."""
        return fitting(read_plugin(files_of(self.files)))


class PreparationIn(In):
    """What a Session is prepared with. In a change an omitted member keeps what there is; null clears it."""

    runtime_image_id: Reference | None = Field(
        default=None, description="An image reference; null leaves the choice to project and deployment."
    )
    platform: PlatformText | None = Field(default=None, description="os/architecture[/variant] of its Sessions.")
    env: Variables | None = Field(default=None, description="Variables of every command, over those of the image.")
    files: InlineFiles | None = Field(default=None, description=f"Files of the workspace. {FILES_TOLD}")
    packages: PackagesIn | None = Field(default=None, description="Packages beside those of the image.")
    skills: Annotated[list[SkillIn], Field(max_length=SKILLS)] | None = Field(
        default=None, description="Laid out as /workspace/.sandbay/skills/NAME."
    )
    plugins: Annotated[list[PluginIn], Field(max_length=PLUGINS)] | None = Field(
        default=None, description="Laid out as /workspace/.sandbay/plugins/NAME."
    )
    setup_commands: Annotated[list[SetupCommandIn], Field(max_length=SETUP_COMMANDS)] | None = Field(
        default=None, description="Run in order, once; the first that does not exit with 0 fails the Session."
    )
    network: Annotated[Network, Field(strict=False)] | None = Field(
        default=None, description="What the sandbox reaches, unless the Session says otherwise; disabled when null."
    )
    setup_network: Annotated[Network, Field(strict=False)] | None = Field(
        default=None,
        description="What it reaches while it is prepared; when null, enabled with packages and else as `network`.",
    )
    requires: Requires | None = Field(
        default=None, description="Tools that the image must have, verified, such as `node>=20` or `git`."
    )
    idle_timeout: Seconds | None = Field(default=None, description=f"{IDLE_TOLD} Unless the Session says otherwise.")
    max_life: Seconds | None = Field(default=None, description=f"{LIFE_TOLD} Unless the Session says otherwise.")

    def said(self) -> Mapping[str, Any]:
        """The members that were sent, as the domain has them."""
        made: dict[str, Any] = {
            "runtime_image_id": self.runtime_image_id,
            "platform": self.platform,
            "env": plain_of(self.env or {}),
            "secret_env": secrets_of(self.env or {}),
            "files": files_of(self.files or []),
            "packages": dict.fromkeys(PackageTool, ()) if self.packages is None else self.packages.said(),
            "skills": tuple(it.skill for it in self.skills or ()),
            "plugins": tuple(it.plugin for it in self.plugins or ()),
            "setup_commands": tuple(self.setup_commands or ()),
            "network": self.network,
            "setup_network": self.setup_network,
            "requires": tuple(self.requires or ()),
            "idle_timeout": self.idle_timeout,
            "max_life": self.max_life,
        }
        sent = self.model_fields_set | ({"secret_env"} if "env" in self.model_fields_set else set())
        return {name: value for name, value in made.items() if name in sent}


class TemplateIn(PreparationIn):
    """A new Template."""

    name: Slug = Field(description="Lower-case letters, digits and -; one of this name in a project.")


class TemplateChange(PreparationIn):
    """What to change."""

    name: Slug = Field(default="", description="Its new name.", validate_default=False)
    expected_revision: Revision | None = Field(default=None, description="Refuse if it has another one by now.")


class PackagesOut(Out):
    """Packages beside those of the image."""

    npm: list[str] = Field(description="Installed with npm.")
    python: list[str] = Field(description="Installed with pip.")


class SkillOut(Out):
    """A folder with instructions."""

    name: str = Field(description="From its front matter.")
    description: str = Field(description="From its front matter.")
    requires: list[str] = Field(description="Tools that it needs.")
    files: list[InlineFileOut] = Field(description="What is in it.")


class PluginOut(Out):
    """A bundle."""

    name: str = Field(description="From its manifest.")
    files: list[InlineFileOut] = Field(description="What is in it.")


class TemplateOut(Out):
    """A project's reusable preparation of Sessions."""

    id: str = Field(description="Its id.")
    name: str = Field(description="Its name.")
    created_at: datetime = Field(description="When it was made.")
    updated_at: datetime = Field(description="When it last changed.")
    revision: int = Field(description="Rises with every change.")
    runtime_image_id: str | None = Field(description="What it says of the image.")
    upgrade_available: str | None = Field(description=UPGRADE)
    image: FrozenImageOut | None = Field(description="What a Session of it would run now.")
    refusal: RefusalOut | None = Field(description="Why it would run nothing now.")
    warnings: list[str] = Field(
        description="`deprecated`: the image or release is; `support_unchecked`: there is no pool yet."
    )
    platform: str | None = Field(description="os/architecture[/variant].")
    env: dict[str, str | SecretRef] = Field(description="Variables of every command.")
    files: list[InlineFileOut] = Field(description="Files of the workspace.")
    packages: PackagesOut = Field(description="Packages beside those of the image.")
    skills: list[SkillOut] = Field(description="Skills.")
    plugins: list[PluginOut] = Field(description="Plugins.")
    setup_commands: list[str | list[str]] = Field(description="Shell lines, or programs with their arguments.")
    network: Network | None = Field(description="What the sandbox reaches.")
    setup_network: Network | None = Field(description="What it reaches while it is prepared.")
    requires: list[str] = Field(description="Tools that the image must have.")
    idle_timeout: int | None = Field(description=IDLE_TOLD)
    max_life: int | None = Field(description=LIFE_TOLD)


class TemplateList(Listing[TemplateOut]):
    """By name; without the bytes of files."""


def template_out(view: TemplateView) -> TemplateOut:
    """From the use case."""
    template, outcome = view.template, view.selection.outcome
    content = template.content
    chosen = outcome if isinstance(outcome, Selected) else None
    return TemplateOut(
        id=template.id,
        name=template.name,
        created_at=template.created_at,
        updated_at=template.updated_at,
        revision=template.revision,
        runtime_image_id=content.runtime_image_id,
        upgrade_available=view.upgrade,
        image=resolved_out(chosen) if chosen else None,
        refusal=None if isinstance(outcome, Selected) else refusal_of(outcome.refusal),
        warnings=[step.said for step in outcome.trail if step.outcome is Outcome.WARNED and step.said],
        platform=content.platform,
        env=variables_out(content.env, content.secret_env),
        files=files_out(content.files),
        packages=PackagesOut(npm=list(content.packages.npm), python=list(content.packages.python)),
        skills=[_skill_out(skill) for skill in content.skills],
        plugins=[PluginOut(name=plugin.name, files=files_out(plugin.files)) for plugin in content.plugins],
        setup_commands=[list(it.argv) if it.argv is not None else it.shell or "" for it in content.setup_commands],
        network=content.network,
        setup_network=content.setup_network,
        requires=list(content.requires),
        idle_timeout=content.idle_timeout,
        max_life=content.max_life,
    )


def _skill_out(skill: Skill) -> SkillOut:
    return SkillOut(
        name=skill.name,
        description=skill.description,
        requires=list(skill.requires),
        files=files_out(skill.files),
    )
