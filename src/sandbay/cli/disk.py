"""`sandbay images df`: what the images take on each node, what they share, and what may go."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sandbay.cli import connect, listing, options, render

if TYPE_CHECKING:
    from sandbay.sdk.disk import ImageOnDisk, NodeDisk, ReleaseOnDisk

_HEAD = ["RELEASE", "BYTES", "SHARED", "UNIQUE", "LAST USED", "MAY GO"]


def df(*, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Show the bytes of images on each node: shared with others, their own, and what could go.

    With -q only what could go, the bytes that are its own first.
    """
    with connect.administrator() as admin:
        found = admin.disk()
    if as_json:
        render.document({"items": [disk.raw for disk in found]})
    elif quiet:
        for disk in found:
            for image, it in _all(disk):
                if it.kept is None:
                    render.line(it.unique, f"{image.image}:{it.release}", disk.node)
    else:
        for disk in found:
            _show(disk)


def _show(disk: "NodeDisk") -> None:
    if not disk.known:
        render.line(f"{disk.node}: does not tell what its images take; it is away, or a daemon keeps them")
        return
    budget, high, low = (render.size(it) for it in (disk.budget, disk.high, disk.low))
    render.line(f"{disk.node}: {render.size(disk.used)} of {budget}, {render.size(disk.free)} free on the disk.")
    render.line(f"Above {high} the longest unused go, until {low} are left.")
    rows = [row for image in disk.images for row in _rows(image)]
    if rows:
        render.table(_HEAD, rows)
    if disk.leftover:
        render.line(f"{render.size(disk.leftover)} are no release's: layers of a prepare that has not ended.")
    for it in disk.waiting:
        render.line(f"{it.image}:{it.release} waits for room: it will take about {render.size(it.bytes)}")


def _all(disk: "NodeDisk") -> "Iterator[tuple[ImageOnDisk, ReleaseOnDisk]]":
    return ((image, it) for image in disk.images for it in image.releases)


def _rows(image: "ImageOnDisk") -> Iterator[Sequence[object]]:
    """One line for each release, and before several of them one for the image."""
    if len(image.releases) > 1:
        yield [image.image, *map(render.size, (image.bytes, image.shared, image.unique)), "", ""]
    for it in image.releases:
        may_go = "next" if it.goes_next else "yes" if it.kept is None else f"no: {it.why}"
        sizes = map(render.size, (it.bytes, it.shared, it.unique))
        yield [f"{image.image}:{it.release}", *sizes, listing.times(it.last_used), may_go]
