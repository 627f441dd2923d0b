"""Which installation a client talks to, and that no key goes astray."""

import json
import pathlib

import pytest

from sandbay.sdk import context
from sandbay.sdk.errors import NoContextError

FILE = {"url": "http://127.0.0.1:1", "api_key": "sbp_file", "admin_key": "sba_file"}


def write(folder: pathlib.Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "context.json").write_text(text)


@pytest.fixture
def env(tmp_path: pathlib.Path) -> dict[str, str]:
    return {"SANDBAY_HOME": str(tmp_path / "home"), "HOME": str(tmp_path / "user")}


def test_the_installations_file_comes_before_the_users(tmp_path: pathlib.Path, env: dict[str, str]) -> None:
    write(tmp_path / "user/.config/sandbay", json.dumps({**FILE, "url": "http://127.0.0.1:2"}))
    assert context.find(env).url == "http://127.0.0.1:2"
    write(tmp_path / "home", json.dumps(FILE))
    found = context.find(env)
    assert (found.url, found.api_key, found.admin_key) == tuple(FILE.values())


def test_a_login_goes_before_the_hosts_own_installation_and_after_a_named_one(
    tmp_path: pathlib.Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "DEFAULT_HOME", str(tmp_path / "default"))
    del env["SANDBAY_HOME"]
    write(tmp_path / "default", json.dumps(FILE))
    assert context.find(env).url == FILE["url"]
    write(tmp_path / "user/.config/sandbay", json.dumps({**FILE, "url": "http://127.0.0.1:2"}))
    assert context.find(env).url == "http://127.0.0.1:2"
    write(tmp_path / "named", json.dumps({**FILE, "url": "http://127.0.0.1:3"}))
    assert context.find({**env, "SANDBAY_HOME": str(tmp_path / "named")}).url == "http://127.0.0.1:3"


def test_each_variable_wins_over_the_file(tmp_path: pathlib.Path, env: dict[str, str]) -> None:
    write(tmp_path / "home", json.dumps(FILE))
    found = context.find({**env, "SANDBAY_API_KEY": "sbp_env"})
    assert (found.url, found.api_key, found.admin_key) == (FILE["url"], "sbp_env", "sba_file")


def test_a_files_keys_never_go_to_another_address(tmp_path: pathlib.Path, env: dict[str, str]) -> None:
    write(tmp_path / "home", json.dumps(FILE))
    found = context.find({**env, "SANDBAY_URL": "http://127.0.0.1:3"})
    assert (found.api_key, found.admin_key) == (None, None)
    same = context.find({**env, "SANDBAY_URL": FILE["url"] + "/"})
    assert (same.api_key, same.admin_key) == ("sbp_file", "sba_file")


def test_nothing_known_is_said(env: dict[str, str]) -> None:
    with pytest.raises(NoContextError) as caught:
        context.find(env)
    assert caught.value.code == "no_context"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"api_key": "x"}', '{"url": 5}'])
def test_a_damaged_file_is_no_absent_one(tmp_path: pathlib.Path, env: dict[str, str], text: str) -> None:
    write(tmp_path / "home", text)
    write(tmp_path / "user/.config/sandbay", json.dumps(FILE))
    with pytest.raises(NoContextError) as caught:
        context.find(env)
    assert caught.value.code == "invalid_context"


def test_keys_are_not_shown_by_accident() -> None:
    assert "sbp" not in repr(context.Context("http://h", "sbp_1", "sba_1"))


def test_a_missing_key_names_its_variable() -> None:
    with pytest.raises(NoContextError) as caught:
        context.Context("http://h").administrator_key()
    assert caught.value.details == {"variable": "SANDBAY_ADMIN_KEY"}


def test_a_key_that_no_header_can_carry_is_refused() -> None:
    with pytest.raises(NoContextError):
        context.Context("http://h", "sbp_\n").project_key()
