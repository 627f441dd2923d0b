"""Who speaks on the path, in which order, and whose word is taken.

What is enforced speaks first, broadest first; otherwise preferences speak, narrowest first. A wish of whoever asks is
never silently overruled by what is enforced: it is the same release, or the answer is no.
"""

from dataclasses import dataclass

from sandbay.domain.binding import Mode
from sandbay.domain.ceiling import Override
from sandbay.domain.choosing import Request
from sandbay.domain.errors import Refusal
from sandbay.domain.path import DEPLOYMENT, Subject
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import DEFAULT
from sandbay.domain.trail import EXPLICIT, Level, Saying, whose
from sandbay.flow.resolve.blame import told_binding
from sandbay.flow.resolve.chain import Candidate, Ground, find, follow, is_bare_name, means


@dataclass(frozen=True)
class Taken:
    """The word that was taken or is at fault, and what came of it.

    `held_against`: of a wish and an enforced word, the other one. Places are those among all words, narrow to broad.
    """

    place: int
    reference: str
    found: Candidate | Refusal
    held_against: int | None = None


def heard(request: Request, ground: Ground) -> tuple[Saying, ...]:
    """Every word on the path, silent ones too, in the order of preference: narrow to broad, as the policy has it.

    A path without a scope or agent has no such level. Where the deployment enforces nothing, only its default speaks.
    """
    subjects = (it for it in reversed(ground.path.subjects) if it != DEPLOYMENT or it in ground.standing.bindings)
    default = None if ground.deployment.default_image is None else DEFAULT
    words = (*request.wishes, *(_standing(it, ground) for it in subjects), Saying(Level.DEPLOYMENT, None, default))
    return tuple(sorted(words, key=lambda word: ground.policy.precedence.index(word.level)))


def _standing(subject: Subject, ground: Ground) -> Saying:
    told, binding = ground.path.told(subject), ground.standing.bindings.get(subject)
    if binding is None:
        return Saying(subject.level, told)
    return Saying(subject.level, told, binding.reference, binding.mode is Mode.ENFORCE)


def take(words: tuple[Saying, ...], ground: Ground) -> Taken | None:
    """Whose word counts, followed down the chain. None when nobody says anything."""
    spoken = [(place, word, word.reference) for place, word in enumerate(words) if word.reference is not None]
    wishes = [it for it in spoken if it[1].level in EXPLICIT]
    own = next((it for it in wishes if it[1].level is Level.SESSION), None)
    denied = _denied(ground) if own else None
    if own and denied:
        return Taken(own[0], own[2], denied)
    enforced = next((it for it in reversed(spoken) if it[1].enforced), None)
    if enforced and wishes:
        return _held_against(enforced, wishes[0], ground)
    chosen = enforced or next(iter(spoken), None)
    return None if chosen is None else Taken(chosen[0], chosen[2], follow(chosen[2], ground))


def _denied(ground: Ground) -> Refusal | None:
    """Whether a level lets no Session request name an image, the right one included."""
    for subject in ground.path.subjects if ground.policy.ceilings else ():
        if ground.standing.overrides.get(subject) is Override.DENY:
            where = {"level": subject.level.value, "subject": ground.path.told(subject)}
            message = f"{ground.path.called(subject)} lets no Session name its image; leave runtime_image_id out"
            return Refusal(Reason.OVERRIDE_DENIED, message, None, {"override": where})
    return None


_Spoken = tuple[int, Saying, str]
"""A word that is not silent: its place, itself, its reference."""


def _held_against(enforced: _Spoken, wish: _Spoken, ground: Ground) -> Taken:
    """The wish passes when it means the very release that is enforced; a bare name leaves open which release of it."""
    place, binding, reference = enforced
    wish_place, _, wished = wish
    meant = find(reference, ground)
    if isinstance(meant, Refusal):
        return Taken(place, reference, meant)
    also = find(wished, ground)
    if not isinstance(also, Refusal) and also.held.release.id == meant.held.release.id:
        found, own = follow(reference, ground), follow(wished, ground)
        if isinstance(found, Candidate) and isinstance(own, Refusal):
            return Taken(wish_place, wished, own, place)  # a digest of another platform's variant of that release
        return Taken(place, reference, found, wish_place)
    if is_bare_name(reference) and means(wished, meant.entry, ground):
        return Taken(wish_place, wished, follow(wished, ground), place)
    message = f"{whose(binding.level, binding.subject)} enforces {reference}"
    refusal = Refusal(Reason.IMAGE_ENFORCED, message, None, {"binding": told_binding(binding)})
    return Taken(wish_place, wished, refusal, place)
