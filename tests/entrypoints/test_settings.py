"""What an installation is told by its environment."""

import pytest

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.entrypoints.settings import settings
from sandbay.ports.provider import Reach

ALLOW, NAMES = "SANDBAY_NETWORK_ALLOW", "SANDBAY_NAMESERVERS"


def test_by_itself_sandboxes_reach_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (ALLOW, NAMES):
        monkeypatch.delenv(name, raising=False)
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
