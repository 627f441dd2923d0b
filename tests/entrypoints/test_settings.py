"""What the environment and the command line say of an installation."""

import pytest

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.entrypoints.settings import settings

PLACE = "oci://reg.example:5000/a/house"


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE", "BLOBS", "BLOBS_USERNAME", "BLOBS_PASSWORD", "PLAIN_REGISTRIES"):
        monkeypatch.delenv(f"SANDBAY_{name}", raising=False)


def test_blobs_lie_at_home_unless_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings().blobs is None
    monkeypatch.setenv("SANDBAY_BLOBS", PLACE)
    for each in (settings(), settings(blobs=PLACE)):
        assert each.blobs is not None
        assert (each.blobs.domain, each.blobs.path) == ("reg.example:5000", "a/house/blobs")
    assert str(settings(blobs="oci://other.example/x").blobs).startswith("other.example/x/blobs")


def test_a_detached_process_is_told_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    said = settings(database="sqlite:////x/db", blobs=PLACE)
    for name, value in said.environment.items():
        monkeypatch.setenv(name, value)
    assert settings() == said
    assert settings(blobs="oci://reg.example/blobs").environment["SANDBAY_BLOBS"] == "oci://reg.example/blobs"


def test_who_we_are_there_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDBAY_BLOBS_USERNAME", "pusher")
    assert settings().blobs_login is None
    monkeypatch.setenv("SANDBAY_BLOBS_PASSWORD", "hush")
    known = settings(blobs=PLACE)
    assert known.blobs_login is not None
    assert (known.blobs_login.username, known.blobs_login.password) == ("pusher", "hush")
    assert "hush" not in f"{known}{known.environment}"


@pytest.mark.parametrize(
    "place",
    [
        *(
            "reg.example/house",
            "oci://house",
            "oci://reg.example/House",
            "oci://reg.example/house:1",
            "oci://reg.example",
        ),
        *(
            "oci://u:hush@reg.example/house",
            "oci://",
            "oci://reg.example/",
            "https://reg.example/house",
            "oci:///house",
        ),
        "oci://oci://reg.example/house",
    ],
)
def test_what_is_no_place_for_blobs(place: str) -> None:
    with pytest.raises(RefusedError) as caught:
        settings(blobs=place)
    refusal = caught.value.refusal
    assert (refusal.reason, refusal.param) == (Reason.INVALID_REFERENCE, "blobs")
    assert "hush" not in refusal.message
