"""What is pinned tells of the newer release; what follows a channel has nothing to tell."""

import pytest

from sandbay.flow.upgrade import upgrade_available
from tests.flow.oracle import World
from tests.flow.worlds import HERE, catalog_of, healthy, image, release, sha, some_id, variant

WEB = some_id("img", 3)


def _web(stable: int | None) -> World:
    releases = {number: release(number, amd64=variant(number, "p", index=number + 50)) for number in (4, 5, 9)}
    web = image(3, releases, "active", canary=9, **({} if stable is None else {"stable": stable}))
    return {
        "images": {"base": healthy(2), "web": web},
        "pools": [{"platform": HERE, "provider": "p", "paused": False}],
        "default": "web",
    }


PINNED = ["web:5", f"{WEB}:5", some_id("rel", 5), f"web@{sha(5)}", f"web@{sha(55)}", f"{WEB}@{sha(5)}"]
FREE = ["web", WEB, "web:stable", "web:canary", "@default"]
NOT_THERE = ["web:6", "none:5", some_id("rel", 6), f"web@{sha(6)}", f"base@{sha(5)}", "", "web:", "-"]


@pytest.mark.parametrize("stable, newer", [(9, "web:9"), (5, None), (4, None), (None, None)])
@pytest.mark.parametrize("text", PINNED)
def test_pinned(text: str, stable: int | None, newer: str | None) -> None:
    assert upgrade_available(text, catalog_of(_web(stable))) == newer


@pytest.mark.parametrize("text", [*FREE, *NOT_THERE])
def test_what_is_not_pinned_or_not_there(text: str) -> None:
    assert upgrade_available(text, catalog_of(_web(9))) is None
