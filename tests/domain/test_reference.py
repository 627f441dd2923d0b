"""Both grammars, each as a table and as properties over any text."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sandbay.domain.ids import PREFIXES, ReleaseId, kind_of
from sandbay.domain.reference import (
    ByChannel,
    ByDigest,
    ByNumber,
    ImageReference,
    Malformed,
    OciReference,
    OfDefault,
    OfImage,
    OfRelease,
    is_channel_name,
    is_image_name,
    parse_image,
    parse_oci,
    parse_registry,
)

OCI_TABLE: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "fixtures" / "references.json").read_text(encoding="utf-8")
)
DIGEST = "sha256:" + "ab" * 32
IMAGE = "img_" + "0a" * 10
RELEASE = "rel_" + "9z" * 10
HEX64 = "c" * 64

OURS: list[tuple[str, ImageReference | None]] = [
    ("web", OfImage("web", ByChannel("stable", said=False))),
    ("web:stable", OfImage("web", ByChannel("stable"))),
    ("web:canary", OfImage("web", ByChannel("canary"))),
    ("web:v1.2_rc-3", OfImage("web", ByChannel("v1.2_rc-3"))),
    ("web:7", OfImage("web", ByNumber(7))),
    ("web:999999999", OfImage("web", ByNumber(999999999))),
    (f"web@{DIGEST}", OfImage("web", ByDigest(DIGEST))),
    ("9-lives", OfImage("9-lives", ByChannel("stable", said=False))),
    ("a" * 63, OfImage("a" * 63, ByChannel("stable", said=False))),
    ("web:" + "c" * 63, OfImage("web", ByChannel("c" * 63))),
    (IMAGE, OfImage(IMAGE, ByChannel("stable", said=False))),
    (f"{IMAGE}:7", OfImage(IMAGE, ByNumber(7))),
    (f"{IMAGE}:canary", OfImage(IMAGE, ByChannel("canary"))),
    (f"{IMAGE}@{DIGEST}", OfImage(IMAGE, ByDigest(DIGEST))),
    (RELEASE, OfRelease(ReleaseId(RELEASE))),
    ("@default", OfDefault()),
    ("", None),
    (" web", None),
    ("web ", None),
    ("web\n", None),
    ("web\x00", None),
    ("Web", None),
    ("wéb", None),
    ("we_b", None),
    ("we.b", None),
    ("-web", None),
    ("--help", None),
    ("a" * 64, None),
    ("web:", None),
    ("web:0", None),
    ("web:007", None),
    ("web:+7", None),
    ("web:٧", None),  # noqa: RUF001 — a digit, but not one of ours
    ("web:1234567890", None),
    ("web:7up", None),
    ("web:-x", None),
    ("web:" + "c" * 64, None),
    ("web:a:b", None),
    ("web@", None),
    ("web@latest", None),
    (f"web@sha512:{HEX64}", None),
    (f"web@sha256:{HEX64.upper()}", None),
    (f"web@sha256:{HEX64[1:]}", None),
    (f"web:7@{DIGEST}", None),
    (f"@{DIGEST}", None),
    (":7", None),
    ("@Default", None),
    ("@default:7", None),
    ("@", None),
    (f"{RELEASE}:7", None),
    (f"{RELEASE}@{DIGEST}", None),
    (IMAGE[:-1], None),
    (IMAGE.upper(), None),
    ("ses_" + "0a" * 10, None),
    ("./web", None),
    ("/web", None),
    ("../web", None),
    ("https://web", None),
    ("reg.example/web", None),
    ("web" * 200, None),
]


@pytest.mark.parametrize("row", OCI_TABLE, ids=lambda row: repr(row["input"])[:60])
def test_oci_table(row: dict[str, Any]) -> None:
    parsed = parse_oci(row["input"])
    if not row["ok"]:
        assert isinstance(parsed, Malformed)
        assert parsed.why
        return
    assert parsed == OciReference(row["domain"], row["path"], row["tag"], row["digest"])
    assert parsed.pinned is row["pinned"]


def test_oci_table_is_all_there() -> None:
    assert len(OCI_TABLE) > 40
    assert {row["ok"] for row in OCI_TABLE} == {True, False}


@pytest.mark.parametrize("text, expected", OURS, ids=lambda value: repr(value)[:60] if isinstance(value, str) else "")
def test_our_table(text: str, expected: ImageReference | None) -> None:
    parsed = parse_image(text)
    if expected is None:
        assert isinstance(parsed, Malformed), parsed
        assert parsed.why
    else:
        assert parsed == expected


_PIECE = ["web", "a", "A", "7", "0", "-", "_", ".", "..", "/", "//", ":", "@", "[", "]", "::1", "localhost", "é"]
_PIECE += ["sha256", "docker.io", "index.docker.io", "library", "5000"]
_PIECE += [" ", "\n", "\x00", DIGEST, HEX64, IMAGE, RELEASE, "a" * 64]
_PIECES = st.lists(st.sampled_from(_PIECE), max_size=8).map("".join)
_ANY = st.text(max_size=80) | _PIECES


@given(_ANY)
@example("localhost/app")
@example("index.docker.io/library/index.docker.io")
def test_parsing_never_raises(text: str) -> None:
    assert isinstance(parse_image(text), OfImage | OfRelease | OfDefault | Malformed)
    assert isinstance(parse_oci(text), OciReference | Malformed)


_PART = st.from_regex(r"[a-z0-9]{1,6}(?:(?:\.|_|__|-|--)[a-z0-9]{1,3}){0,2}", fullmatch=True)
_HOST = st.sampled_from(["localhost/", "Reg.Example/", "reg.example:5000/", "[::1]:5000/", "docker.io/", "CAPS/"])
_REPOSITORY = st.lists(_PART, min_size=1, max_size=3).map("/".join)
_POINTER = st.sampled_from(["", ":latest", ":1.2", ":_x", f"@{DIGEST}", f":1@{DIGEST}"])
_HOSTED = st.tuples(_HOST, _REPOSITORY, _POINTER).map("".join)
_BARE = st.tuples(_REPOSITORY, _POINTER).map("".join)  # `a__b.c/d`: a dot makes it a host, and that is no host


@given(_HOSTED | _BARE | _ANY)
def test_canonical_form_means_the_same(text: str) -> None:
    parsed = parse_oci(text)
    if isinstance(parsed, Malformed):
        return
    again = parse_oci(str(parsed))
    # A digest outranks a tag, and no tag is `latest`: that is all that writing it down may change.
    settled = replace(parsed, tag=None) if parsed.pinned else replace(parsed, tag=parsed.tag or "latest")
    assert again == settled
    assert str(again) == str(parsed)


@given(_HOSTED)
def test_well_formed_references_are_read(text: str) -> None:
    assert isinstance(parse_oci(text), OciReference)


@given(st.from_regex(r"[a-z0-9][a-z0-9-]{0,62}", fullmatch=True))
def test_every_name_is_a_name_and_never_an_id(name: str) -> None:
    assert is_image_name(name)
    assert kind_of(name) is None
    assert parse_image(name) == OfImage(name, ByChannel("stable", said=False))


@given(st.text(alphabet="0123456789", min_size=1))
def test_no_channel_is_a_number(digits: str) -> None:
    assert not is_channel_name(digits)


@pytest.mark.parametrize("kind, prefix", PREFIXES.items())
def test_ids_carry_their_kind(kind: str, prefix: str) -> None:
    assert kind_of(prefix + "0" * 20) == kind
    assert not is_image_name(prefix + "0" * 20)
    for bad in (prefix, prefix + "0" * 19, prefix + "0" * 21, prefix + "A" * 20, prefix + "0" * 20 + "\n"):
        assert kind_of(bad) is None


def test_kinds_have_prefixes_of_their_own() -> None:
    assert len(set(PREFIXES.values())) == len(PREFIXES)


@pytest.mark.parametrize(
    "text, name",
    [
        ("docker.io", "docker.io"),
        ("index.docker.io", "docker.io"),
        ("Reg.Example:5000", "reg.example:5000"),
        ("localhost", "localhost"),
        ("[::1]:5000", "[::1]:5000"),
        *((text, None) for text in ("", "a b", "a/b", "https://a", "a:b", "a..b", "-a", "a@b", "x" * 256)),
    ],
)
def test_a_registry_has_one_name(text: str, name: str | None) -> None:
    found = parse_registry(text)
    assert (None if isinstance(found, Malformed) else found) == name


@given(st.from_regex(r"\A[a-zA-Z0-9.:-]{1,40}\Z"))
def test_a_registrys_name_is_the_one_of_the_references_to_it(text: str) -> None:
    reference = parse_oci(f"{text}/x")
    name = parse_registry(text)
    if isinstance(reference, OciReference) and reference.path == "x":
        assert parse_registry(reference.domain) == name
    if not isinstance(name, Malformed):
        assert parse_registry(name) == name
