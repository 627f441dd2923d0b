"""`sandbay images check`: what a release promises of its tools, and what a real sandbox said."""

from typing import TYPE_CHECKING

from sandbay.cli import connect, options, render
from sandbay.cli.progress import Bar

if TYPE_CHECKING:
    from sandbay.sdk.releases import Release


def check(reference: options.Ref, *, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Look at a release's tools again, in a new sandbox, and show what was seen."""
    with connect.administrator() as admin, Bar(reference, quiet=quiet or as_json, phase="checking tools") as bar:
        release = admin.images.check(reference, progress=bar.update)
    if as_json:
        render.document(release.raw)
    elif quiet:
        render.line(release.contract.state if release.contract else "unverified")
    else:
        render.line(f"{release.image}:{release.number}", release.state)
        show(release)


def show(release: "Release") -> None:
    """What the release promises, and what the newest check saw, for people."""
    contract = release.contract
    if contract is None:
        return
    render.line(f"{'tools':<12}", contract.state)
    if contract.trouble is not None:
        render.line(f"{'':<12}", f"not checked yet: {contract.trouble.message} ({contract.trouble.code})")
    for variant in release.variants:
        if variant.report is None:
            continue
        report = variant.report
        shell = "a shell" if report["shell"] else "no shell"
        render.line(f"{variant.platform:<12}", f"{report['user']} in {report['workdir']}, {shell}, {report['at']}")
        rows = [
            [name, it["version"], it["violation"], it["path"], it["printed"] or None]
            for name, it in report["tools"].items()
        ]
        if rows:
            render.table(["TOOL", "VERSION", "WRONG", "PATH", "PRINTED"], rows)
