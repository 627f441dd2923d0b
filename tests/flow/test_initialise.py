"""The steps of an initialisation: which, in which order, and that nothing said in a Template becomes an option."""

from dataclasses import replace

from sandbay.domain.command import Command
from sandbay.domain.inline import InlineFile
from sandbay.domain.package import Packages
from sandbay.domain.skill import Plugin, Skill
from sandbay.domain.template import FrozenTemplate, Preparation, SetupCommand
from sandbay.flow.freeze import freeze_template
from sandbay.flow.initialise import LayOut, Run, initialise

FILE = InlineFile("x", "", 0)
NOTHING = freeze_template(None, Preparation())
FULL = replace(
    NOTHING,
    files=(FILE,),
    skills=(Skill("cook", "Cooks.", (), (FILE,)),),
    plugins=(Plugin("plug", (FILE,)),),
    packages=Packages(npm=("a", "b@1"), python=("c>=1",)),
    setup_commands=(SetupCommand(("say", "a b")), SetupCommand(None, "echo  $HOME\n")),
)


def commands(kept: FrozenTemplate) -> list[Command]:
    return [step.command for step in initialise(kept) if isinstance(step, Run)]


def test_nothing_to_do_is_no_step() -> None:
    assert initialise(NOTHING) == ()
    assert initialise(replace(NOTHING, env={"A": "1"})) == ()


def test_the_order_and_what_people_are_told() -> None:
    told = ["3 files", "npm install a b@1", "pip install c>=1", "say 'a b'", "echo $HOME"]
    assert [step.doing for step in initialise(FULL)] == told


def test_where_things_lie() -> None:
    laid = initialise(FULL)[0]
    assert isinstance(laid, LayOut)
    assert [file.path for file in laid.files] == ["x", ".sandbay/skills/cook/x", ".sandbay/plugins/plug/x"]


def test_packages_come_after_all_options_and_are_for_everybody() -> None:
    npm, pip, *_ = commands(FULL)
    assert npm.argv == ("npm", "install", "--global", "--no-fund", "--no-audit", "--", "a", "b@1")
    assert pip.argv == ("pip", "install", "--no-input", "--", "c>=1")
    assert {(it.user, it.workdir) for it in (npm, pip)} == {("0", "/workspace")}
    assert [step.tool for step in initialise(FULL) if isinstance(step, Run)] == ["npm", "pip", None, None]


def test_the_templates_variables_win_over_the_installers_own() -> None:
    npm, pip, *_ = commands(replace(FULL, env={"NPM_CONFIG_PREFIX": "/opt", "PIP_BREAK_SYSTEM_PACKAGES": "0"}))
    assert "NPM_CONFIG_PREFIX" not in npm.env
    assert "PIP_BREAK_SYSTEM_PACKAGES" not in pip.env
    assert [commands(FULL)[0].env["NPM_CONFIG_PREFIX"], commands(FULL)[1].env["PIP_BREAK_SYSTEM_PACKAGES"]] == [
        "/usr/local",
        "1",
    ]


def test_setup_commands_are_as_they_were_said() -> None:
    argv, shell = commands(FULL)[2:]
    assert (argv.argv, argv.shell, argv.user, argv.workdir) == (("say", "a b"), None, None, "/workspace")
    assert (shell.argv, shell.shell, shell.user) == (None, "echo  $HOME\n", None)


def test_what_people_are_told_is_one_short_line() -> None:
    (step,) = initialise(replace(NOTHING, setup_commands=(SetupCommand(None, "echo 1\n" * 100),)))
    assert len(step.doing) == 200
    assert step.doing.isprintable()
