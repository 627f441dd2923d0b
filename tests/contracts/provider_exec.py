"""Provider suite: running programs."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from sandbay.domain.allocation import Presence
from sandbay.domain.command import Command
from sandbay.domain.reasons import Reason
from sandbay.ports.provider import Stream
from tests.contracts.provider_harness import GENEROUS, Offer, ProviderHarness, Ran, Sandbox, needs, refused, start

MIB = 1024 * 1024
EVERY_BYTE = bytes(range(256))


class ExecSuite:
    @pytest.fixture
    def web(self, harness: ProviderHarness) -> Sandbox:
        return start(harness, harness.variants.web)

    @pytest.fixture
    def data(self, harness: ProviderHarness) -> Sandbox:
        return start(harness, harness.variants.data)

    def test_streams_are_apart(self, web: Sandbox) -> None:
        ran = web.sh("echo out; echo err >&2; echo more")
        assert (ran.code, ran.stdout, ran.stderr) == (0, b"out\nmore\n", b"err\n")

    def test_bytes_pass_unchanged(self, web: Sandbox) -> None:
        chunks = [EVERY_BYTE * 300, b"\xff\x00", b"", b"no newline at the end"]
        assert web.run("cat", stdin=chunks).stdout == b"".join(chunks)
        assert web.sh("cat >&2", stdin=chunks).stderr == b"".join(chunks)

    def test_standard_input_is_empty_unless_given(self, web: Sandbox) -> None:
        ran = web.run("cat")
        assert (ran.code, ran.stdout) == (0, b"")

    def test_input_that_nobody_reads_does_not_matter(self, web: Sandbox) -> None:
        assert web.run("true", stdin=[b"x" * 4 * MIB]).code == 0

    @pytest.mark.parametrize(
        "line, code",
        [("exit 0", 0), ("exit 5", 5), ("exit 255", 255), ("exit 127", 127), ("kill -9 $$", 137), ("kill -15 $$", 143)],
    )
    def test_how_a_program_ends(self, web: Sandbox, line: str, code: int) -> None:
        ran = web.sh(line)
        assert (ran.code, ran.exit.timed_out) == (code, False)

    @pytest.mark.parametrize(
        "program, code",
        [
            ("true", 0),
            ("false", 1),
            ("no-such-program", 127),
            ("/bin/no-such-program", 127),
            ("/no/such/folder/program", 127),
            ("/etc/which", 126),
            ("/etc", 126),
            ("/etc/script", 127),
        ],
    )
    def test_what_cannot_be_run(self, web: Sandbox, program: str, code: int) -> None:
        ran = web.run(program)
        assert (ran.code, ran.exit.timed_out, ran.stdout) == (code, False, b"")

    def test_arguments_arrive_as_they_are(self, web: Sandbox) -> None:
        assert web.run("echo", "a b", "", "$HOME", "*", "é", "-n").stdout == "a b  $HOME * é -n\n".encode()

    def test_no_shell_is_involved_unless_asked_for(self, harness: ProviderHarness) -> None:
        sandbox = start(harness, harness.variants.shellless)
        assert sandbox.run("echo", "hi").stdout == b"hi\n"
        with refused(Reason.NO_SHELL):
            sandbox.sh("echo hi")
        assert sandbox.run("echo", "again").code == 0

    def test_the_images_own_command(self, web: Sandbox) -> None:
        assert web.run().stdout == b"E C\n"
        assert web.run("X", image_entrypoint=True).stdout == b"E X\n"
        assert web.run(entrypoint=("echo", "N")).stdout == b"N\n"
        with refused(Reason.NO_COMMAND):
            web.run(entrypoint=())

    @pytest.mark.parametrize("size", [0, 1, MIB - 1, MIB + 1, 8 * MIB])
    def test_nothing_is_lost_at_exit(self, web: Sandbox, size: int) -> None:
        ran = web.sh(f"head -c {size} /dev/zero; echo END; echo END >&2; exit 3")
        assert ran.code == 3
        assert len(ran.stdout) == size + 4
        assert ran.stdout.endswith(b"END\n")
        assert ran.stderr == b"END\n"

    def test_the_last_words_are_heard_every_time(self, web: Sandbox) -> None:
        assert [web.run("echo", str(n)).stdout for n in range(25)] == [f"{n}\n".encode() for n in range(25)]

    def test_time_out(self, web: Sandbox) -> None:
        ran = web.sh("echo begun; sleep 4300; echo never", timeout=0.5)
        assert ran.exit.timed_out
        assert ran.code != 0
        assert ran.stdout == b"begun\n"
        assert web.run("echo", "usable").stdout == b"usable\n"

    def test_cancelling(self, web: Sandbox) -> None:
        cancel = threading.Event()
        ended: list[Ran] = []
        thread = threading.Thread(target=lambda: ended.append(web.run("sleep", "4301", cancel=cancel)))
        thread.start()
        cancel.set()
        thread.join(GENEROUS)
        assert not ended[0].exit.timed_out
        assert ended[0].code != 0
        assert web.run("true").code == 0

    def test_a_listener_that_fails_ends_the_program(self, web: Sandbox) -> None:
        class DeafError(Exception):
            pass

        def emit(_: Stream, __: bytes) -> None:
            raise DeafError

        line = "echo heard; sleep 4302"
        command = Command(shell=line, timeout=GENEROUS)
        with pytest.raises(DeafError):
            web.harness.provider.exec(web.allocation, command, emit=emit)
        assert web.run("true").code == 0

    def test_two_programs_at_once(self, web: Sandbox) -> None:
        second_is_done = threading.Event()

        def late() -> Iterator[bytes]:
            assert second_is_done.wait(GENEROUS)
            yield b"first"

        heard: list[bytes] = []
        first = threading.Thread(target=lambda: heard.append(web.run("cat", stdin=late()).stdout))
        first.start()
        assert web.run("echo", "second").stdout == b"second\n"
        second_is_done.set()
        first.join(GENEROUS)
        assert heard == [b"first"]

    def test_destroying_ends_what_runs(self, web: Sandbox) -> None:
        line, begun, ended = "echo begun; sleep 4303", threading.Event(), []

        def wait() -> None:
            command = Command(shell=line, timeout=GENEROUS)
            ended.append(web.harness.provider.exec(web.allocation, command, emit=lambda _, __: begun.set()))

        thread = threading.Thread(target=wait)
        thread.start()
        assert begun.wait(GENEROUS)
        web.harness.provider.destroy(web.allocation)
        thread.join(GENEROUS)
        assert [exit_.timed_out for exit_ in ended] == [False]
        assert web.harness.provider.presence(web.allocation) is Presence.ABSENT

    def test_environment(self, harness: ProviderHarness) -> None:
        sandbox = start(harness, harness.variants.web, env={"A": "session", "B": "session"})
        env = dict(line.split("=", 1) for line in sandbox.run("env", env={"B": "exec", "C": "x=y é"}).lines)
        expected = {"WEB": "1", "A": "session", "B": "exec", "C": "x=y é", "PATH": "/bin", "HOME": "/root"}
        assert {name: env.get(name) for name in expected} == expected

    @pytest.mark.parametrize(
        "user, uid, gid, home",
        [
            (None, 1000, 1000, "/home/agent"),
            ("root", 0, 0, "/root"),
            ("0", 0, 0, "/root"),
            ("agent", 1000, 1000, "/home/agent"),
            ("1234", 1234, 0, "/"),
            ("1234:5678", 1234, 5678, "/"),
            ("65535:65535", 65535, 65535, "/"),
        ],
    )
    def test_users(self, data: Sandbox, user: str | None, uid: int, gid: int, home: str) -> None:
        assert data.run("id", "-u", user=user).lines == [str(uid)]
        assert data.run("id", "-g", user=user).lines == [str(gid)]
        assert data.run("id", "-G", user=user).lines == [str(gid)]
        assert f"HOME={home}" in data.run("env", user=user).lines

    @pytest.mark.parametrize("user", ["nobody-here", "65536", "-1", "root:nobody-here", "$USER"])
    def test_users_that_are_not_there(self, web: Sandbox, user: str) -> None:
        with refused(Reason.USER_NOT_FOUND):
            web.run("id", "-u", user=user)

    @pytest.mark.parametrize("asked, expected", [({}, "/srv/deep"), ({"workdir": "/tmp"}, "/tmp")])
    def test_working_folder_of_the_image_or_the_request(
        self, data: Sandbox, asked: dict[str, Any], expected: str
    ) -> None:
        assert data.run("pwd", **asked).lines == [expected]

    def test_working_folder_is_the_workspace_when_nobody_says(self, web: Sandbox) -> None:
        assert web.run("pwd").lines == ["/workspace"]

    def test_a_working_folder_that_is_none(self, web: Sandbox) -> None:
        with refused(Reason.INVALID_WORKDIR):
            web.run("pwd", workdir="/etc/which")
        assert web.run("pwd").code == 0

    def test_a_working_folder_that_is_missing_is_made(self, data: Sandbox) -> None:
        assert data.run("pwd", workdir="/new/deep").lines == ["/new/deep"]
        assert data.run("pwd", workdir="below").lines == ["/workspace/below"]
        told = data.harness.provider.files(data.allocation).stat("/new/deep")
        assert (told.uid, told.gid, told.mode) == (0, 0, 0o755)

    def test_the_workspace_belongs_to_the_images_user(self, data: Sandbox) -> None:
        assert data.run("touch", "/workspace/mine").code == 0
        told = data.harness.provider.files(data.allocation).stat("/workspace/mine")
        assert (told.uid, told.gid) == (1000, 1000)

    def test_a_background_child_with_the_pipe_does_not_hang_the_call(self, web: Sandbox) -> None:
        needs(web.harness, Offer.SHELL)
        ran = web.sh("sleep 4304 & echo done")
        assert (ran.code, ran.stdout, ran.exit.timed_out) == (0, b"done\n", False)

    @pytest.mark.parametrize(
        "escape",
        [
            "sleep 4305 & sleep 4305",
            "setsid sleep 4305 & sleep 4305",
            "(setsid sh -c 'sleep 4305 & sleep 4305' &) ; sleep 4305",
            "trap '' TERM HUP INT; sh -c 'trap \"\" TERM; sleep 4305; sleep 4305'",
            "sleep 4305 </dev/null >/dev/null 2>&1 & wait",
        ],
    )
    def test_a_time_out_kills_the_whole_tree(self, web: Sandbox, escape: str) -> None:
        needs(web.harness, Offer.SHELL)
        bystander = web.sh("sleep 4306 & echo on")
        assert bystander.stdout == b"on\n"
        assert web.sh(escape, timeout=1.0).exit.timed_out
        left = [line.strip() for line in web.run("ps", "-o", "args").lines]
        assert "sleep 4305" not in left
        assert "sleep 4306" in left  # of another call, which ended well

    def test_orphans_are_reaped(self, web: Sandbox) -> None:
        needs(web.harness, Offer.SHELL)
        for _ in range(5):
            assert web.sh("for i in 1 2 3 4; do (sleep 0.01 &); done").code == 0
        # Each look is itself a program; the last orphan ends before the tenth look.
        states = [web.sh("sleep 0.1; ps -o stat").lines for _ in range(10)]
        assert not [state for state in states[-1] if state.startswith("Z")]
        assert web.run("ps", "-o", "pid,comm").lines[1].split()[0] == "1"
