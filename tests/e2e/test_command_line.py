"""The command line as its users know it: codes, streams, files, limits, and errors that say what to do."""

import json
import subprocess
from pathlib import Path

import pytest

from sandbay.adapters.providers.oci.network_rules import net_name
from sandbay.domain.reasons import Reason
from tests.e2e.installation import Installation
from tests.support import neighbours as near
from tests.support import reasons

pytestmark = pytest.mark.real


@pytest.mark.parametrize(
    "argv, code, out",
    [
        (["true"], 0, ""),
        (["sh", "-c", "echo out; exit 7"], 7, "out\n"),
        (["sh", "-c", "kill -9 $$"], 137, ""),
        (["nosuch"], 127, ""),
        (["/etc"], 126, ""),
        (["echo", "--help", "-x", "a b"], 0, "--help -x a b\n"),
    ],
)
def test_run_answers_as_the_command_did(house: Installation, argv: list[str], code: int, out: str) -> None:
    done = house.cli("run", "plain", "--", *argv)
    assert (done.code, done.out) == (code, out), done


def test_streams_stay_apart_and_binary(house: Installation) -> None:
    done = house.cli("run", "plain", "-i", "--", "sh", "-c", "cat; echo err >&2", stdin=b"in\n")
    assert (done.code, done.out, done.err) == (0, "in\n", "err\n")


@pytest.mark.produces(Reason.TIMED_OUT)
def test_a_time_out_is_told_by_name(house: Installation) -> None:
    done = house.cli("run", "plain", "--timeout", "1", "--json", "--", "sh", "-c", "echo begun; sleep 60")
    reasons.note(done.err)
    assert (done.code, done.refusal["code"]) == (125, "timed_out")
    assert "begun" in done.out


def test_environment_user_and_folder(house: Installation) -> None:
    show = ("--", "sh", "-c", "echo $A $(id -u) $PWD $HOME")
    done = house.ok("run", "plain", "--env", "A=1", "--user", "agent", "--workdir", "/tmp", *show)
    assert done.out == "1 1000 /tmp /home/agent\n"
    assert house.ok("run", "plain", *show).out == "0 /workspace /root\n".replace("0", " 0", 1).lstrip()


def test_root_inside_is_not_root_outside(house: Installation) -> None:
    session = house.ok("sessions", "create", "--image", "plain", "--json").data["id"]
    pid = house.ok("sessions", "get", session, "--json").data["host_pid"]
    uids = next(x for x in Path(f"/proc/{pid}/status").read_text().splitlines() if x.startswith("Uid:")).split()
    assert int(uids[1]) >= 65536
    house.ok("sessions", "rm", session)


def test_files_go_in_and_come_out(house: Installation, tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "deep" / "file").write_bytes(bytes(range(256)) * 100)
    session = house.ok("sessions", "create", "--image", "plain", "--json").data["id"]
    house.ok("sessions", "cp", str(tmp_path / "in"), f"{session}:copied")
    house.ok("sessions", "exec", session, "--shell", "cd copied/deep && cat file file > twice")
    house.ok("sessions", "cp", f"{session}:copied/deep", str(tmp_path / "out"))
    assert (tmp_path / "out" / "twice").read_bytes() == bytes(range(256)) * 200
    done = house.cli("sessions", "cp", f"{session}:/no/such", str(tmp_path / "x"), "--json")
    assert (done.code, done.refusal["code"]) == (125, "path_not_found")
    house.ok("sessions", "rm", session)
    done = house.cli("sessions", "exec", session, "--json", "--", "true")
    assert (done.code, done.refusal["code"]) == (125, "already_ended")


def test_memory_and_pids_are_limited(house: Installation) -> None:
    """A sandbox of the pool's size is killed for more memory, and cannot fork more than its pids."""
    greedy = "x=0123456789abcdef; while true; do x=$x$x; done"
    done = house.cli("run", "plain", "--timeout", "50", "--", "sh", "-c", greedy)
    assert done.code == 137, done
    done = house.cli(
        "run", "plain", "--timeout", "50", "--", "sh", "-c", "for i in $(seq 400); do sleep 9 & done; wait"
    )
    assert "can't fork" in done.err


def test_a_network_is_there_when_asked_for_and_leads_outside_only(house: Installation) -> None:
    """With neighbours that answer this machine itself: the one outside is reached, the private one is not."""
    (finding,) = [each for each in house.ok("doctor", "--json").data if each["name"] == "network"]
    if not finding["ok"]:
        pytest.skip(finding["says"])
    with near.neighbours():
        for address, network, heard in (
            (near.PUBLIC, "enabled", "here\n"),
            (near.PRIVATE[0], "enabled", ""),
            (near.PUBLIC, "disabled", ""),
        ):
            assert near.answers(address)
            line = f"nc -w 2 {address} {near.PORT} </dev/null"
            assert house.cli("run", "plain", "--network", network, "--", "sh", "-c", line).out == heard


def test_packet_rules_that_somebody_flushed_are_put_back_by_the_node(house: Installation) -> None:
    (finding,) = [each for each in house.ok("doctor", "--json").data if each["name"] == "network"]
    if not finding["ok"]:
        pytest.skip(finding["says"])
    session = house.ok("sessions", "create", "--image", "plain", "--network", "enabled", "--json").data["id"]
    house.eventually(lambda: house.ok("sessions", "get", session, "--json").data["status"] == "running")
    table = f"table inet {net_name(f'{house.label} {house.node_home}')}"
    assert table in _tables()
    subprocess.run(["nft", f"delete {table}"], check=True)
    house.eventually(lambda: table in _tables())
    house.eventually(lambda: "packet rules of sandboxes were gone" in (house.home / "log" / "sandbay.log").read_text())
    house.ok("sessions", "rm", session)
    house.eventually(lambda: table not in _tables())


def _tables() -> list[str]:
    return subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize(
    "arguments, code, param",
    [
        (["run", "plain", "--network", "restricted", "--", "true"], "network_unsupported", "network"),
        (["run", "plain", "--network", "wide", "--", "true"], "invalid_body", "network"),
        (["run", "plain", "--platform", "windows", "--", "true"], "invalid_body", "platform"),
        (["run", "plain", "--user", "nobody-here", "--", "true"], "user_not_found", "user"),
        (["run", "plain", "--workdir", "/which", "--", "true"], "invalid_workdir", "workdir"),
        (["sessions", "get", "ses_00000000000000000000"], "not_found", None),
        (["sessions", "exec", "nonsense", "--", "true"], "not_found", None),
        (["images", "inspect", "nosuch"], "image_unknown", None),
        (["images", "promote", "plain:9"], "release_unknown", None),
        (["images", "retire", "plain"], "in_use", "state"),
    ],
)
def test_bad_input_gets_a_reason_and_its_parameter(
    house: Installation, arguments: list[str], code: str, param: str | None
) -> None:
    at = arguments.index("--") if "--" in arguments else len(arguments)
    done = house.cli(*arguments[:at], "--json", *arguments[at:])
    assert (done.code, done.out) == (125, ""), done
    assert (done.refusal["code"], done.refusal["param"]) == (code, param)
    plain = house.cli(*arguments)
    assert "Traceback" not in plain.err
    assert f"({code})" in plain.err.splitlines()[0]
    assert len(plain.err.splitlines()) == 2, "one line what, one line what to do"


def test_wrong_usage_is_2(house: Installation) -> None:
    assert house.cli("run").code == 2
    assert house.cli("images", "register", "x").code == 2
    assert house.cli("nosuch").code == 2


def test_an_installation_that_is_down_says_how_to_start(house: Installation) -> None:
    done = house.cli(
        "run", "plain", "--", "true", env={"SANDBAY_URL": "http://127.0.0.1:9", "SANDBAY_API_KEY": "sbp_x"}
    )
    assert done.code == 125
    assert "sandbay up --detach" in done.err


def test_doctor_and_the_second_up(house: Installation) -> None:
    findings = house.ok("doctor", "--json").data
    assert all(f["ok"] for f in findings if f["fatal"])
    again = house.ok("up", "--port", str(house.port), "--detach", "--json").data
    assert (again["pid"], again["started"]) == (house.pid, False)


def test_keys_and_principals(house: Installation) -> None:
    """Who did it stands in the audit; the context file is for its owner only, and the key is in no log."""
    session = house.ok("sessions", "create", "--image", "plain", "--json").data["id"]
    house.ok("sessions", "rm", session)
    context = house.home / "context.json"
    assert context.stat().st_mode & 0o777 == 0o600
    secrets = [v for k, v in json.loads(context.read_text()).items() if k.endswith("key")]
    log = (house.home / "log" / "sandbay.log").read_text()
    database = (house.home / "sandbay.db").read_bytes() + (house.home / "sandbay.db-wal").read_bytes()
    assert len(secrets) == 2
    assert not any(secret in log or secret.encode() in database for secret in secrets)
    entries = house.get("/core/v1/audit", subject=session)["items"]
    assert {e["principal"] for e in entries if e["action"] == "session.create"} == {"local user"}
