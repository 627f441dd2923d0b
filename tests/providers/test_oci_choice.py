"""Which runtime is used on this host, judged by a real sandbox, and what is said of the others."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.adapters.providers.oci import PROVIDER, choice
from sandbay.adapters.providers.oci.cgroups import Layout
from sandbay.adapters.providers.oci.choice import AUTO, RUNTIMES, Choice
from sandbay.adapters.providers.oci.resident import PACKAGED
from sandbay.adapters.providers.oci.settings import OciSettings
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.ports.provider import ProviderPlace
from tests.support.leaks import leftovers

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("real_sandboxes")]


@pytest.fixture
def place() -> Iterator[ProviderPlace]:
    """A home of its own; nothing of any trial is left in the end."""
    home = Path(tempfile.mkdtemp(prefix="sandbay-choice-", dir="/var/tmp"))
    home.chmod(0o711)
    run = Path("/run") / home.name
    yield ProviderPlace(home, run, FolderBlobs(home / "blobs"), "ins_choice")
    assert {path.name for path in home.iterdir()} <= {"blobs", "store", "sandboxes", "snapshots"}
    assert leftovers("ins_choice", [run]) == {}
    shutil.rmtree(home)
    shutil.rmtree(run, ignore_errors=True)


def chosen(place: ProviderPlace, runtime: str) -> Choice:
    asked = ProviderPlace(place.home, place.run, place.blobs, place.installation, runtime=runtime)
    return Choice(asked, OciSettings())


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_is_there_is_judged_by_a_real_sandbox(place: ProviderPlace, runtime: str) -> None:
    if shutil.which(runtime) is None:
        pytest.skip(f"this machine lacks {runtime}")
    why = chosen(place, AUTO).why_not(runtime)
    assert (why is None) is (runtime != "runsc"), why


def test_a_runtime_that_starts_nothing_is_not_taken(place: ProviderPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "RUNTIMES", ("false", "no-such-runtime", "runc"))
    assert chosen(place, "runc").runtime() == "runc"
    for runtime, says in (("false", "did not start"), ("no-such-runtime", "not installed")):
        with pytest.raises(RefusedError) as refused:
            chosen(place, runtime).runtime()
        assert refused.value.refusal.reason is Reason.HOST_UNFIT
        assert runtime in refused.value.refusal.message
        assert says in str(refused.value.refusal.details["why"])


def test_a_name_that_is_none_is_refused(place: ProviderPlace) -> None:
    with pytest.raises(RefusedError) as refused:
        chosen(place, "docker").runtime()
    assert refused.value.refusal.param == "runtime"
    assert all(runtime in refused.value.refusal.message for runtime in RUNTIMES)


@pytest.mark.parametrize(
    "layout, works, spawner, expected",
    [
        (Layout.UNIFIED, True, PACKAGED, "crun"),
        (Layout.UNIFIED, False, PACKAGED, "runc"),
        (Layout.UNIFIED, True, None, "runc"),
        (Layout.HYBRID, True, PACKAGED, "crun"),
        (Layout.HYBRID, False, PACKAGED, "runc"),
        (Layout.HYBRID, True, None, "runc"),
        (Layout.LEGACY, True, PACKAGED, "runc"),
    ],
)
def test_by_itself_it_is_crun_where_that_proves_itself_and_a_spawner_starts_programs(
    place: ProviderPlace,
    monkeypatch: pytest.MonkeyPatch,
    layout: Layout,
    *,
    works: bool,
    spawner: Path | None,
    expected: str,
) -> None:
    monkeypatch.setattr(choice, "_layout", lambda: layout)
    monkeypatch.setattr(Choice, "why_not", lambda *_: None if works else "a limit does not hold")
    assert Choice(chosen(place, AUTO).place, OciSettings(spawner=spawner)).runtime() == expected


def test_the_doctor_says_which_it_is_and_why_no_other(place: ProviderPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = {"crun": "a limit does not hold", "runc": None, "runsc": "it is not installed"}
    monkeypatch.setattr(Choice, "why_not", lambda _, runtime: judged[runtime])
    provider = PROVIDER.open(place)
    try:
        (found,) = [finding for finding in provider.check() if finding.name == "runtimes"]
    finally:
        provider.close()
    assert provider.runtime == "runc"
    assert (found.ok, found.fatal) == (True, False)
    for words in ("runc is used, by auto", "not crun: a limit does not hold", "not runsc: it is not installed"):
        assert words in found.says
    judged |= {"crun": None}
    provider = PROVIDER.open(place)
    try:
        (found,) = [finding for finding in provider.check() if finding.name == "runtimes"]
    finally:
        provider.close()
    assert provider.runtime == "crun"
    for words in ("crun is used, by auto", "runc could be (SANDBAY_RUNTIME=runc)", "not runsc"):
        assert words in found.says
