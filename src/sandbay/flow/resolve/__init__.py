"""Step 1. Turn what the levels say into exactly one variant of one release, or into one named refusal.

    levels    who speaks on the path, in which order, and whose word is taken
    chain     from that word to a release: each check in its order, the first failure is the answer
    blame     which field of the request, or whose standing word, is at fault

`resolve` is handed the catalog, the deployment's declarations and what stands along the path, nothing else. It cannot
see nodes (an import contract forbids it), so "not downloaded yet" can never become "use another one". Nothing falls
through to another candidate.
"""

from sandbay.domain.catalog import CatalogView, ImageState
from sandbay.domain.ceiling import Standing
from sandbay.domain.choosing import Rejected, Request, Selected
from sandbay.domain.deployment import Deployment
from sandbay.domain.errors import Refusal
from sandbay.domain.path import Path
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ReleaseState
from sandbay.domain.trail import DEPRECATED, SUPPORT_UNCHECKED, DecidedBy, Outcome, Policy, Saying, Step, Trail
from sandbay.flow.resolve.blame import blamed, sufficient
from sandbay.flow.resolve.chain import Candidate, Ground
from sandbay.flow.resolve.levels import Taken, heard, take

__all__ = ["Rejected", "Selected", "resolve"]


def resolve(
    request: Request, path: Path, standing: Standing, policy: Policy, catalog: CatalogView, deployment: Deployment
) -> Selected | Rejected:
    """Take the word that counts and follow it down the whole chain.

    `standing` holds what stands for `path.subjects`, `catalog` the images that the words can name. What the request,
    the Template and its skills require is held against what was found, wherever the word came from.
    """
    ground = Ground(path, standing, policy, request.platform, catalog, deployment)
    words = heard(request, ground)
    taken = take(words, ground)
    if taken is None:
        silent = tuple(Step(word.level, Outcome.SILENT, word.subject) for word in words)
        return Rejected(Refusal(Reason.NO_DEFAULT_IMAGE, "nothing names an image and there is no default"), silent)
    by, found = words[taken.place], taken.found
    checked = blamed(found, by) if isinstance(found, Refusal) else sufficient(found, by, request.required)
    if isinstance(checked, Refusal):
        return Rejected(checked, _trail(words, taken, Outcome.REFUSED, checked.reason))
    trail = _trail(words, taken, Outcome.CHOSEN) + _warnings(checked, by, unchecked=not ground.support_known)
    decided = DecidedBy(by.level, by.subject)
    release, variant = checked.held.release, checked.variant
    return Selected(checked.entry, release, variant, checked.tools, taken.reference, decided, trail)


def _trail(words: tuple[Saying, ...], taken: Taken, outcome: Outcome, reason: Reason | None = None) -> Trail:
    """What became of each word. By place: equal words are told apart by nothing else."""

    def became(place: int, word: Saying) -> tuple[Outcome, Reason | None]:
        if place == taken.place:
            return outcome, reason
        if place == taken.held_against:
            return Outcome.CANDIDATE, None
        return (Outcome.SILENT if word.reference is None else Outcome.OVERRULED), None

    def step(place: int, word: Saying) -> Step:
        what, why = became(place, word)
        return Step(word.level, what, word.subject, word.reference, why, word.enforced)

    return tuple(step(place, word) for place, word in enumerate(words))


def _warnings(found: Candidate, by: Saying, *, unchecked: bool) -> Trail:
    deprecated = (found.entry.image.state is ImageState.DEPRECATED) or (
        found.held.status.state is ReleaseState.DEPRECATED
    )
    said = ((deprecated, DEPRECATED), (unchecked, SUPPORT_UNCHECKED))
    return tuple(Step(by.level, Outcome.WARNED, by.subject, what) for holds, what in said if holds)
