"""Step 2. Write down what was selected, whole: from here on nothing resolves again."""

from collections.abc import Mapping

from sandbay.domain.catalog import Image
from sandbay.domain.declaration import Network
from sandbay.domain.frozen import FrozenRelease
from sandbay.domain.release import Release, Variant
from sandbay.domain.requirement import Tools
from sandbay.domain.template import FrozenTemplate, Preparation, Template, TemplateMark
from sandbay.domain.trail import DecidedBy, Trail


def freeze(
    image: Image,
    release: Release,
    variant: Variant,
    *,
    reference: str,
    decided_by: DecidedBy,
    trail: Trail,
    generation: int,
    tools: Tools,
) -> FrozenRelease:
    """The unchangeable record. The parts are those of one `Selected`; `generation` is the deployment's."""
    return FrozenRelease(
        image=image.id,
        image_name=image.name,
        reference=reference,
        release=release.id,
        number=release.number,
        platform=variant.platform,
        artifacts=dict(variant.artifacts),
        providers=variant.providers,
        digest=variant.digest,
        index_digest=variant.index_digest,
        source_commit=release.source_commit,
        size=variant.size,
        generation=generation,
        decided_by=decided_by,
        trail=trail,
        tools=dict(tools),
    )


def _but(said: Mapping[str, str], over: Mapping[str, str]) -> Mapping[str, str]:
    """Without the variables that the other one gives in another way."""
    return {name: value for name, value in said.items() if name not in over}


def freeze_template(template: Template | None, asked: Preparation) -> FrozenTemplate:
    """What the Template says and the request says over it. The request's variables and files win by their names."""
    said = template.content if template else Preparation()
    network = asked.network or said.network or Network.DISABLED
    return FrozenTemplate(
        template=TemplateMark(template.id, template.name, template.revision) if template else None,
        env={**_but(said.env, asked.secret_env), **asked.env},
        secret_env={**_but(said.secret_env, asked.env), **asked.secret_env},
        files=tuple({file.path: file for file in (*said.files, *asked.files)}.values()),
        packages=said.packages,
        skills=said.skills,
        plugins=said.plugins,
        setup_commands=said.setup_commands,
        network=network,
        setup_network=said.setup_network or (Network.ENABLED if said.packages else network),
    )
