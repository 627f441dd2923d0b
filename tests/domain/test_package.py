"""Packages are names with versions, never anything else that npm and pip would take in their place."""

import pytest

from sandbay.domain.package import Packages, PackageTool, package_fault

FINE = {
    PackageTool.NPM: [
        *("left-pad", "a", "typescript@5.4.2", "x@^1.2", "x@~1", "x@>=1 <2", "x@1 || 2", "x@latest", "x@*", "@scope/x"),
        *("@scope/x@1.0.0-rc.1+b", "./x.tgz", "./dir/x-1.0.0.tar.gz", "/workspace/x.tgz", "x_y", "x.js"),
    ],
    PackageTool.PYTHON: [
        *("requests", "Requests", "a", "zope.interface", "x[y]", "x[y,z-1]", "x [ y , z ] >=1", "x==1.0", "x>=1,<2"),
        *("x ~= 1.4", "x!=1.5.*", "x===1.0+local", "x==1!2.0", "./x.whl", "/workspace/w/x-1.0-py3-none-any.whl"),
        *("./x.tar.gz", "./x.zip"),
    ],
}
NEITHER = [
    *(
        "",
        " ",
        "-",
        "-g",
        "--registry",
        "-r x",
        "x -r y",
        "x --index-url y",
        "x\n-r y",
        "x\0",
        "x;rm",
        "x;python_version>'3'",
    ),
    *(
        "http://h/x",
        "https://h/x.tgz",
        "x@http://h/x",
        "x @ http://h/x",
        "x@file:x",
        "file:x",
        "git+ssh://h/x",
        "h:x/y",
    ),
    *("user/repo", "user/repo#main", "x@user/repo", "x@npm:y", "../x.tgz", "./../x.tgz", "./x", "/x.tgz", "/etc/x.whl"),
    *(
        "/workspace/../x.tgz",
        "./x.tgz --y",
        "~/x.tgz",
        "x@",
        "x[",
        "x>=",
        "x" * 600,
        "@/x",
        "@x",
        "$x",
        "`x`",
        "x|y",
        "x,y",
    ),
]
OTHERS = {
    PackageTool.NPM: ["X", "x>=1", "./x.whl", "_x", ".x", "x[y]"],
    PackageTool.PYTHON: ["@s/x", "x@1", "./x.tgz", "x-", ".x"],
}


@pytest.mark.parametrize("tool,text", [(tool, text) for tool, texts in FINE.items() for text in texts])
def test_a_package(tool: PackageTool, text: str) -> None:
    assert package_fault(tool, text) is None


@pytest.mark.parametrize("tool,text", [(t, text) for t in PackageTool for text in NEITHER + OTHERS[t]])
def test_no_package(tool: PackageTool, text: str) -> None:
    assert package_fault(tool, text) is not None


def test_packages_by_tool() -> None:
    both = Packages(npm=("a",), python=("b", "c"))
    assert (both.of(PackageTool.NPM), both.of(PackageTool.PYTHON)) == (("a",), ("b", "c"))
    assert [bool(it) for it in (both, Packages(npm=("a",)), Packages(python=("a",)), Packages())] == [
        True,
        True,
        True,
        False,
    ]
