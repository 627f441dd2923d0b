"""What is run, with which environment, as whom: tables and a property over hostile bytes."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sandbay.domain.command import (
    DEFAULT_PATH,
    ID_LIMIT,
    WORKSPACE,
    Command,
    User,
    argv_of,
    environment,
    find_user,
    workdir_of,
)
from sandbay.domain.errors import Refusal
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ImageConfig

BOTH = ImageConfig(entrypoint=("/bin/probe", "E1"), cmd=("C1", "C 2", ""))
CMD_ONLY = ImageConfig(cmd=("/bin/probe", "only"))
ENTRY_ONLY = ImageConfig(entrypoint=("/bin/probe", "E1"))
NOTHING = ImageConfig()
CLEARED = ImageConfig(entrypoint=(), cmd=())

ARGV: list[tuple[ImageConfig, dict[str, Any], tuple[str, ...] | None]] = [
    # the image's own command
    (BOTH, {}, ("/bin/probe", "E1", "C1", "C 2", "")),
    (CMD_ONLY, {}, ("/bin/probe", "only")),
    (ENTRY_ONLY, {}, ("/bin/probe", "E1")),
    (NOTHING, {}, None),
    (CLEARED, {}, None),
    (BOTH, {"image_entrypoint": True}, ("/bin/probe", "E1", "C1", "C 2", "")),
    # argv in place of cmd (`run`)
    (BOTH, {"argv": ("X",), "image_entrypoint": True}, ("/bin/probe", "E1", "X")),
    (BOTH, {"argv": (), "image_entrypoint": True}, ("/bin/probe", "E1")),
    (CMD_ONLY, {"argv": ("/bin/x", "y"), "image_entrypoint": True}, ("/bin/x", "y")),
    (CMD_ONLY, {"argv": (), "image_entrypoint": True}, None),
    (NOTHING, {"argv": ("/bin/x",), "image_entrypoint": True}, ("/bin/x",)),
    # argv is all (`exec`)
    (BOTH, {"argv": ("X", "")}, ("X", "")),
    (NOTHING, {"argv": ("/bin/probe",)}, ("/bin/probe",)),
    (BOTH, {"argv": ()}, None),
    (BOTH, {"argv": ("",)}, None),
    (BOTH, {"argv": ("", "x")}, None),
    # another entrypoint drops the image's cmd; an empty one clears
    (BOTH, {"entrypoint": ("/bin/probe", "N")}, ("/bin/probe", "N")),
    (BOTH, {"entrypoint": ("/bin/probe", "N"), "argv": ("X",)}, ("/bin/probe", "N", "X")),
    (BOTH, {"entrypoint": ("/bin/probe",), "argv": ("X",), "image_entrypoint": True}, ("/bin/probe", "X")),
    (BOTH, {"entrypoint": (), "argv": ("X",)}, ("X",)),
    (BOTH, {"entrypoint": ()}, None),
    (BOTH, {"entrypoint": ("",)}, None),
    # a shell line is handed to the shell and nothing else
    (BOTH, {"shell": "echo $A; false"}, ("/bin/sh", "-c", "echo $A; false")),
    (NOTHING, {"shell": ""}, ("/bin/sh", "-c", "")),
    (BOTH, {"shell": "x", "image_entrypoint": True}, ("/bin/sh", "-c", "x")),
]


@pytest.mark.parametrize("config, asked, expected", ARGV)
def test_argv(config: ImageConfig, asked: dict[str, Any], expected: tuple[str, ...] | None) -> None:
    got = argv_of(config, Command(**asked))
    if expected is None:
        assert isinstance(got, Refusal)
        assert got.reason is Reason.NO_COMMAND
    else:
        assert got == expected


ROOT, AGENT = User(0, 0, (), "/root", "root"), User(1000, 1001, (), "/home/agent", "agent")


def test_environment_of_an_awkward_image() -> None:
    config = ImageConfig(env=("A=1", "A=2", "EQ=a=b=c", "NL=x\ny", "U=é🐍", "EMPTY=", "NOEQ", "=nameless", ""))
    assert environment(config, AGENT) == {
        "A": "2",
        "EQ": "a=b=c",
        "NL": "x\ny",
        "U": "é🐍",
        "EMPTY": "",
        "PATH": DEFAULT_PATH,
        "HOME": "/home/agent",
    }


def test_environment_last_one_wins() -> None:
    config = ImageConfig(env=("A=image", "B=image", "C=image", "PATH=/image"))
    env = environment(config, ROOT, {"B": "session", "C": "session"}, {"C": "exec", "HOME": "/h"})
    assert env == {"A": "image", "B": "session", "C": "exec", "PATH": "/image", "HOME": "/h"}


@pytest.mark.parametrize("entry", ["PATH=", "HOME="])
def test_an_empty_value_of_the_image_is_kept(entry: str) -> None:
    assert environment(ImageConfig(env=(entry,)), AGENT)[entry[:-1]] == ""


@pytest.mark.parametrize(
    "image, asked, expected",
    [("", None, WORKSPACE), ("/srv", None, "/srv"), ("/srv", "/x", "/x"), ("", "/x", "/x"), ("/srv", "", "/srv")],
)
def test_workdir(image: str, asked: str | None, expected: str) -> None:
    assert workdir_of(ImageConfig(workdir=image), Command(workdir=asked)) == expected


PASSWD = b"""root:x:0:0:root:/root:/bin/sh
agent:x:1000:1001:An Agent,,,:/home/agent:/bin/sh
nohome:x:1002:1002:::/bin/sh
top:x:65535:65535::/:
toobig:x:65536:100::/:
biggroup:x:1003:65536::/:
words:x:one:two::/:
short:x:1004
agent:x:0:0:second entry:/root:/bin/sh
"""
GROUP = b"""root:x:0:
agent:x:1001:
staff:x:2000:root,agent
audio:x:2001:other,agent,more
again:x:2000:agent
own:x:1001:agent
toobig:x:65536:agent
words:x:many:agent
short:x
almost:x:2002:agents
"""

USERS: list[tuple[str, User | None]] = [
    ("", User(0, 0, (2000,), "/root", "root")),
    ("root", User(0, 0, (2000,), "/root", "root")),
    ("0", User(0, 0, (2000,), "/root", "root")),
    ("agent", User(1000, 1001, (2000, 2001), "/home/agent", "agent")),
    ("1000", User(1000, 1001, (2000, 2001), "/home/agent", "agent")),
    ("agent:", User(1000, 1001, (2000, 2001), "/home/agent", "agent")),
    ("agent:staff", User(1000, 2000, (), "/home/agent", "agent")),
    ("agent:0", User(1000, 0, (), "/home/agent", "agent")),
    ("agent:4000", User(1000, 4000, (), "/home/agent", "agent")),
    (":staff", User(0, 2000, (), "/root", "root")),
    ("nohome", User(1002, 1002, (), "/", "nohome")),
    ("1234", User(1234, 0)),
    ("1234:5678", User(1234, 5678)),
    ("1234:staff", User(1234, 2000)),
    ("top", User(65535, 65535, (), "/", "top")),
    ("65535:65535", User(65535, 65535, (), "/", "top")),
    ("missing", None),
    ("$USER", None),
    ("agent:missing", None),
    ("missing:staff", None),
    ("agent:staff:x", None),
    ("Agent", None),
    ("65536", None),
    ("0:65536", None),
    ("4294967296", None),
    ("-1", None),
    ("+1", None),
    ("1e3", None),
    ("٣", None),
    ("9" * 5000, None),
    ("toobig", None),
    ("biggroup", None),
    ("1003", None),
    ("words", None),
    ("short", None),
    ("agent:toobig", None),
    ("agent:words", None),
    ("agent:short", None),
]


@pytest.mark.parametrize("spec, expected", USERS, ids=[spec[:20] for spec, _ in USERS])
def test_users(spec: str, expected: User | None) -> None:
    _check(find_user(spec, PASSWD, GROUP), expected)


@pytest.mark.parametrize(
    "spec, expected",
    [
        ("", User(0, 0)),
        ("0", User(0, 0)),
        ("root", ROOT),
        ("root:root", None),
        ("0:0", User(0, 0)),
        ("1234:5678", User(1234, 5678)),
        ("agent", None),
    ],
)
def test_users_without_files(spec: str, expected: User | None) -> None:
    _check(find_user(spec, b"", b""), expected)


def test_root_in_the_file_is_not_overruled_by_the_fallback() -> None:
    _check(find_user("root", b"root:x:99999:0::/:\n", b""), None)


@pytest.mark.parametrize("separator", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\r"])
def test_only_a_newline_ends_an_entry(separator: str) -> None:
    passwd = f"agent:x:1000:1000:{separator}other:x:0:0:z:/home/agent:/bin/sh\n".encode()
    _check(find_user("other", passwd, b""), None)


def _check(got: User | Refusal, expected: User | None) -> None:
    if expected is None:
        assert isinstance(got, Refusal), got
        assert got.reason is Reason.USER_NOT_FOUND
        assert got.param == "user"
    else:
        assert got == expected


_FIELD = st.sampled_from([b"root", b"a", b"x", b"0", b"70000", b"1", b"", b"\xff", b"\x00"])
_LINES = st.lists(st.lists(_FIELD, max_size=9).map(b":".join)).map(b"\n".join)
_SPECS = st.sampled_from(["", "root", "0", "a", "a:a", "1:a", ":", "\udcff", "a:\x00"]) | st.text(max_size=12)


@given(_SPECS, _LINES | st.binary(max_size=200), _LINES | st.binary(max_size=200))
@example("a", b"\xff\xfe:x:1:1:::\na:x:1:1::\xff:", b"\xff:x:1:a")
def test_hostile_files_never_raise_and_never_leave_the_range(spec: str, passwd: bytes, group: bytes) -> None:
    got = find_user(spec, passwd, group)
    if isinstance(got, User):
        assert all(0 <= number < ID_LIMIT for number in (got.uid, got.gid, *got.groups))
        assert got.gid not in got.groups
        assert len(set(got.groups)) == len(got.groups)
        assert got.home
    else:
        assert got.reason is Reason.USER_NOT_FOUND
