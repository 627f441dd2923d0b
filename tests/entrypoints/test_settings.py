"""What the environment and the command line say of an installation."""

from dataclasses import fields
from pathlib import Path

import pytest

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.adapters.image_source.layout import FolderTree, LayoutSource
from sandbay.domain.disk import DiskBudget
from sandbay.domain.errors import RefusedError
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.engine.limits import SETTABLE, Limits
from sandbay.entrypoints.providers import open_provider
from sandbay.entrypoints.settings import Settings, settings
from sandbay.entrypoints.sources import open_archive
from sandbay.ports.image_source import Wanted
from sandbay.ports.provider import Reach
from tests.support.right_answer import FIXTURES
from tests.support.unpacking import needs_unpacking

PLACE = "oci://reg.example:5000/a/house"
ALLOW, NAMES = "SANDBAY_NETWORK_ALLOW", "SANDBAY_NAMESERVERS"


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "DATABASE",
        "BLOBS",
        "BLOBS_USERNAME",
        "BLOBS_PASSWORD",
        "PLAIN_REGISTRIES",
        "IMAGE_LIMITS",
        "NETWORK_ALLOW",
        "NAMESERVERS",
        "RUNTIME",
        "STORE_BUDGET",
        "STORE_MARKS",
    ):
        monkeypatch.delenv(f"SANDBAY_{name}", raising=False)


def test_by_itself_sandboxes_reach_nothing_more() -> None:
    assert settings().reach == Reach()


def test_lists_of_addresses_and_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALLOW, " 10.20.0.0/16,192.168.1.5 ,, 169.254.169.254/32")
    monkeypatch.setenv(NAMES, "10.0.0.2,192.0.2.53")
    assert settings().reach == Reach(
        ("10.20.0.0/16", "192.168.1.5/32", "169.254.169.254/32"), ("10.0.0.2", "192.0.2.53")
    )


@pytest.mark.parametrize(
    "name, value, says",
    [
        (ALLOW, "10.0.0.1/8", "host bits"),
        (ALLOW, "0.0.0.0/0", "nothing would be denied"),
        (ALLOW, "10.0.0.0/8,8.0.0.0/7", "8.0.0.0/7"),
        (ALLOW, "intranet", "intranet"),
        (ALLOW, "fd00::/8", "fd00::"),
        (ALLOW, "10.0.0.0/8 }; flush ruleset", "flush"),
        (NAMES, "127.0.0.53", "loopback"),
        (NAMES, "224.0.0.251", "224.0.0.251"),
        (NAMES, "0.0.0.0", "0.0.0.0"),  # noqa: S104
        (NAMES, "10.0.0.0/8", "10.0.0.0/8"),
        (NAMES, "::1", "::1"),
    ],
)
def test_what_is_no_address_is_refused_by_the_name_of_its_setting(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(RefusedError) as caught:
        settings()
    refusal = caught.value.refusal
    assert (refusal.reason, refusal.param) == (Reason.INVALID_BODY, name)
    assert says in refusal.message


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


BUDGET, MARKS = "SANDBAY_STORE_BUDGET", "SANDBAY_STORE_MARKS"


@pytest.mark.parametrize(
    "size, marks, budget",
    [
        ("", "", DiskBudget()),
        ("80%", "90,75", DiskBudget()),
        ("40GiB", "", DiskBudget(bytes=40 * 1024**3)),
        (" 1.5TiB ", "80 , 70", DiskBudget(bytes=3 * 1024**4 // 2, high=0.8, low=0.7)),
        ("1048576", "100,1", DiskBudget(bytes=1024**2, high=1.0, low=0.01)),
        ("12.5%", "50,50", DiskBudget(share=0.125, high=0.5, low=0.5)),
    ],
)
def test_what_images_may_take_of_the_disk(
    monkeypatch: pytest.MonkeyPatch, size: str, marks: str, budget: DiskBudget
) -> None:
    monkeypatch.setenv(BUDGET, size)
    monkeypatch.setenv(MARKS, marks)
    assert settings().store_budget == budget


@pytest.mark.parametrize(
    "name, value",
    [
        *((BUDGET, text) for text in ("0", "-1GiB", "40GB", "101%", "0%", "much", "40 GiB 80%", "1e9")),
        *((MARKS, text) for text in ("75,90", "90", "90,75,60", "101,50", "90,0", "high,low", "0.9,0.7")),
    ],
)
def test_what_is_no_budget_is_refused_by_its_setting(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(RefusedError) as caught:
        settings()
    assert (caught.value.refusal.reason, caught.value.refusal.param) == (Reason.INVALID_BODY, name)


LIMITS = "SANDBAY_IMAGE_LIMITS"


def test_bounds_on_an_image(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings().image_limits == {}
    monkeypatch.setenv(LIMITS, " unpacked_bytes=200GiB , layers=500,")
    assert settings().image_limits == {"unpacked_bytes": 200 * 1024**3, "layers": 500}
    every = {field.name for field in fields(Limits)}
    assert every >= SETTABLE


@pytest.mark.parametrize(
    "value",
    ["layers", "layers=", "layers=0", "layers=-1", "layers=501", "layers=x", "id_range=1", "x=1", "entries=1G"],
)
def test_what_is_no_bound_is_refused_by_its_setting(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(LIMITS, f"entries=5,{value}")
    with pytest.raises(RefusedError) as caught:
        settings()
    assert (caught.value.refusal.reason, caught.value.refusal.param) == (Reason.INVALID_BODY, LIMITS)
    assert "unpacked_bytes" in caught.value.refusal.message


@needs_unpacking
def test_bounds_count_where_images_are_read_and_where_they_are_unpacked(tmp_path: Path) -> None:
    home, run = tmp_path / "home", tmp_path / "run"
    home.mkdir()
    blobs = FolderBlobs(tmp_path / "blobs")
    source = LayoutSource(lambda: FolderTree(FIXTURES / "d16-bomb" / "layout"))
    (bomb,) = source.read(Wanted([Platform("linux", "amd64")]), blobs, lambda _: None)
    where = Settings(home, run, image_limits={"unpacked_bytes": 1 << 20})
    provider = open_provider(where, "oci", blobs, "ins_00000000000000000000")
    with pytest.raises(RefusedError) as caught:
        provider.prepare(bomb, lambda _: None)
    assert caught.value.refusal.details["bound"] == 1 << 20
    archive = FIXTURES / "g01-archive" / "archive.tar"
    with pytest.raises(RefusedError) as caught:
        open_archive(archive, Limits(layers=1)).read(Wanted([Platform("linux", "amd64")]), blobs, lambda _: None)
    assert caught.value.refusal.details == {"limit": "layers", "value": 2, "bound": 1}
