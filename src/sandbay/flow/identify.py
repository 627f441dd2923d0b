"""Before step 1, at registration. From what bytes tell and people state: one identity, and who can run it.

Where two say different things of one artifact it is not one distribution. A provider can run a variant when it finds
there every artifact that it declares, in its form and known as it wants to know it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sandbay.domain.declaration import ArtifactRule, Declaration
from sandbay.domain.errors import Refusal
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Artifact, Known, Variant

Declarations = Mapping[str, Declaration]
"""Those of the installed providers, by kind."""

_SHOWN = 140


def identify(
    variant: Variant, stated: Iterable[Mapping[str, str]], declarations: Declarations, asked: Iterable[str] | None
) -> Variant | Refusal:
    """The variant with the artifacts that are stated of it, and the providers that can run it.

    `asked` names the kinds that must be able to, None means all that are. Refuses with `not_one_distribution`, and
    with `release_incomplete` where a kind that was asked for, or every kind, lacks something (`param` says what).
    """
    artifacts = dict(variant.artifacts)
    for name, value in ((name, value) for said in stated for name, value in said.items()):
        known = artifacts.setdefault(name, Artifact(value, Known.STATED))
        if known.value != value:
            return _not_one(name, known, value)
        rules = [d.artifacts[name] for d in declarations.values() if name in d.artifacts]
        if rules and not any(rule.fits(value) for rule in rules):
            return _incomplete(f"artifacts.{name}", "the value has not the declared form", patterns=_patterns(rules))
    whole = replace(variant, artifacts=artifacts)
    kinds = sorted(declarations) if asked is None else list(asked)
    gaps = {kind: _gap(whole, declarations[kind]) for kind in kinds}
    fits = tuple(kind for kind in kinds if gaps[kind] is None)
    if fits and (asked is None or len(fits) == len(kinds)):
        return replace(whole, providers=fits)
    kind, (param, why) = next(((kind, gap) for kind, gap in gaps.items() if gap is not None), ("", ("providers", "")))
    return _incomplete(param, f"{kind} cannot run it: {why}", provider=kind)


def undeclared(names: Iterable[str], declarations: Declarations) -> Refusal | None:
    """The refusal for an artifact that no installed provider knows, if there is one among the names."""
    declared = sorted({name for declaration in declarations.values() for name in declaration.artifacts})
    unknown = next((name for name in names if name not in declared), None)
    if unknown is None:
        return None
    return _incomplete(f"artifacts.{unknown[:_SHOWN]}", "no provider here knows this artifact", declared=declared)


def _gap(variant: Variant, declaration: Declaration) -> tuple[str, str] | None:
    """What keeps a provider from running a variant, and why. A foreign platform is no gap: a pool may come."""
    found = [(name, rule, variant.artifacts.get(name)) for name, rule in declaration.artifacts.items()]
    for name, rule, artifact in found:
        if artifact is None:
            return f"artifacts.{name}", f"{name} is missing"
        if not rule.fits(artifact.value):
            return f"artifacts.{name}", f"{name} has not the declared form"
    for name, rule, artifact in found:
        if artifact is not None and rule.known is Known.COMPUTED is not artifact.known:
            return f"artifacts.{name}", f"{name} has to be computed from bytes, and there is no source of them"
    if not any(rule.known is Known.COMPUTED for _, rule, _ in found):
        return None  # it never sees our bytes
    if len(variant.layers) > declaration.max_layers:
        return "layers", f"it has {len(variant.layers)} layers, and {declaration.max_layers} is the most"
    foreign = sorted({layer.format for layer in variant.layers} - declaration.layer_formats)
    if foreign:
        return "layers", f"its layers are packed as {', '.join(foreign)}"
    return None


def _not_one(name: str, known: Artifact, value: str) -> Refusal:
    message = f"{name} is {known.known} as one value and stated as another: they are not of one distribution"
    details = {"artifact": name, known.known.value: known.value[:_SHOWN], "other": value[:_SHOWN]}
    return Refusal(Reason.NOT_ONE_DISTRIBUTION, message, f"artifacts.{name}", details)


def _incomplete(param: str, message: str, **facts: object) -> Refusal:
    return Refusal(Reason.RELEASE_INCOMPLETE, message, param, facts)


def _patterns(rules: Iterable[ArtifactRule]) -> list[str]:
    return sorted({rule.pattern for rule in rules})
