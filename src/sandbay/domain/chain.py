"""The audit as lines that hold on to one another: `sandbay audit --export`.

    {"format":"sandbay-audit/1"}
    {"entry":{…},"n":1,"previous":"sha256:…"}     the SHA-256 of the line before, as it stands there, without its end
    {"entry":{…},"n":2,"previous":"sha256:…"}
    {"end":2,"previous":"sha256:…"}               so many entries; without this line it has been cut off

A line that is altered, taken out, put in or moved breaks the chain at that place. Who rewrites all lines after it can
mend the chain, but not the digest of the last line: keep that elsewhere. Entries stand in the order in which they were
written, so a later export begins with the lines of an earlier one.
"""

from collections.abc import Iterable, Iterator, Mapping

from sandbay.domain.canonical import canonical, sha256

FORMAT = "sandbay-audit/1"


def chained(entries: Iterable[Mapping[str, object]]) -> Iterator[bytes]:
    """The lines of an export, each with its end, for entries as JSON has them."""
    line, count = canonical({"format": FORMAT}), 0
    yield line + b"\n"
    for count, entry in enumerate(entries, 1):
        line = canonical({"n": count, "previous": sha256(line), "entry": entry})
        yield line + b"\n"
    yield canonical({"end": count, "previous": sha256(line)}) + b"\n"
