"""What would change if …: the installation as it would be, and nothing else of it."""

from dataclasses import replace

import pytest

from sandbay.domain.binding import Binding, Mode
from sandbay.domain.ceiling import AllowList, Standing
from sandbay.domain.ids import ImageId
from sandbay.domain.impact import (
    AllowListWritten,
    Answer,
    Asker,
    AskerKind,
    BindingWritten,
    ChannelMoved,
    Impact,
    Retired,
    Supposition,
)
from sandbay.domain.path import DEPLOYMENT, Path, Subject
from sandbay.domain.reasons import Reason
from sandbay.domain.trail import Policy
from sandbay.flow.impact import Installed, answer_of, impacts, suppose, touches
from sandbay.flow.resolve import resolve
from tests.flow.oracle import Word, World
from tests.flow.worlds import (
    HERE,
    PROJECT,
    WRITTEN,
    catalog_of,
    deployment_of,
    healthy,
    image,
    release,
    request_of,
    some_id,
    variant,
)

WORLD: World = {
    "images": {
        "base": healthy(1),
        "web": image(
            3, {5: release(5, amd64=variant(5, "p")), 6: release(6, amd64=variant(6, "p"))}, stable=5, canary=6
        ),
    },
    "pools": [{"platform": HERE, "provider": "p", "paused": False}],
    "default": "base",
}
WEB = ImageId(some_id("img", 3))
TEAM, OURS, CODER = Subject.of_scope("team:t"), Subject.of_project(PROJECT), Subject.of_agent(PROJECT, "coder")
THERE = Installed(
    catalog_of(WORLD), Standing(bindings={CODER: Binding(CODER, Mode.PREFER, "web", WRITTEN)}, allowed={})
)
IN_PROJECT = Path(PROJECT, "growth")
ASKERS = {
    "project": (Asker(AskerKind.PROJECT, "growth", IN_PROJECT), None),
    "template": (Asker(AskerKind.TEMPLATE, "work", IN_PROJECT), "web:6"),
    "agent": (Asker(AskerKind.AGENT, "coder", replace(IN_PROJECT, agent="coder")), None),
    "scope": (Asker(AskerKind.SCOPE, "team:t", Path(scopes=("team:t",))), None),
}


def answers(it: Installed) -> dict[Asker, Answer]:
    def answer(asker: Asker, template: str | None) -> Answer:
        request = request_of([Word("session", None, None), Word("template", asker.name, template)])
        return answer_of(resolve(request, asker.path, it.standing, Policy(), it.catalog, deployment_of(WORLD)))

    return {asker: answer(asker, template) for asker, template in ASKERS.values()}


AS_IS = {"project": "base:1", "template": "web:6", "agent": "web:5", "scope": "base:1"}
ENFORCED, UNLISTED = Reason.IMAGE_ENFORCED, Reason.IMAGE_NOT_ALLOWED

CASES: list[tuple[Supposition, dict[str, str | Reason]]] = [
    (BindingWritten(OURS, Binding(OURS, Mode.PREFER, "web:6", WRITTEN)), {"project": "web:6"}),
    (
        BindingWritten(OURS, Binding(OURS, Mode.ENFORCE, "web:5", WRITTEN)),
        {"project": "web:5", "template": ENFORCED},
    ),
    (BindingWritten(CODER, None), {"agent": "base:1"}),
    (BindingWritten(TEAM, Binding(TEAM, Mode.PREFER, "wep", WRITTEN)), {"scope": Reason.IMAGE_UNKNOWN}),
    (
        BindingWritten(DEPLOYMENT, Binding(DEPLOYMENT, Mode.ENFORCE, "web", WRITTEN)),
        {"project": "web:5", "scope": "web:5"},
    ),
    (BindingWritten(OURS, Binding(OURS, Mode.PREFER, "base", WRITTEN)), {}),
    (AllowListWritten(OURS, AllowList(names=frozenset({"base"}))), {"template": UNLISTED, "agent": UNLISTED}),
    (AllowListWritten(DEPLOYMENT, AllowList()), {"template": UNLISTED, "agent": UNLISTED}),
    (AllowListWritten(TEAM, AllowList()), {"scope": UNLISTED}),
    (AllowListWritten(TEAM, None), {}),
    (ChannelMoved(WEB, "stable", 6), {"agent": "web:6"}),
    (ChannelMoved(WEB, "canary", 5), {}),
    (ChannelMoved(WEB, "new", 5), {}),
    (Retired(WEB), {"template": Reason.IMAGE_RETIRED, "agent": Reason.IMAGE_RETIRED}),
    (Retired(WEB, 5), {"agent": Reason.RELEASE_RETIRED}),
    (Retired(WEB, 6), {"template": Reason.RELEASE_RETIRED}),
]


@pytest.mark.parametrize("what, changed", CASES, ids=lambda it: type(it).__name__)
def test_whose_answer_changes_from_what_to_what(what: Supposition, changed: dict[str, str | Reason]) -> None:
    before = answers(THERE)
    assert {name: before[asker].image for name, (asker, _) in ASKERS.items()} == AS_IS
    found = impacts(before, answers(suppose(THERE, what)))
    expected = [
        Impact(asker, Answer(AS_IS[name]), Answer(reason=to) if isinstance(to, Reason) else Answer(to))
        for name, (asker, _) in ASKERS.items()
        if (to := changed.get(name)) is not None
    ]
    assert list(found) == expected
    assert all(touches(what, impact.asker) for impact in found)  # who is not asked would not have changed


def test_what_is_supposed_is_not_done() -> None:
    before = answers(THERE)
    for what, _ in CASES:
        suppose(THERE, what)
    assert answers(THERE) == before


def test_only_what_stands_on_a_path_touches_it() -> None:
    row = Binding(CODER, Mode.PREFER, "web", WRITTEN)
    touched = {name: touches(BindingWritten(CODER, row), asker) for name, (asker, _) in ASKERS.items()}
    assert touched == {"project": False, "template": False, "agent": True, "scope": False}
    assert all(touches(AllowListWritten(DEPLOYMENT, None), asker) for asker, _ in ASKERS.values())
    assert all(touches(Retired(WEB), asker) for asker, _ in ASKERS.values())


@pytest.mark.parametrize("what", [ChannelMoved(WEB, "stable", 9), Retired(WEB, 9), Retired(ImageId(some_id("img", 9)))])
def test_what_is_not_there_is_not_supposed(what: Supposition) -> None:
    with pytest.raises(KeyError):
        suppose(THERE, what)
