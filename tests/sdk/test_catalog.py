"""The catalog's calls, and the upload of a layout byte for byte."""

import io
import itertools
import os
import pathlib
import tarfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sandbay.sdk import Progress
from sandbay.sdk.archive import ArchiveFile, split_archive_tag
from sandbay.sdk.errors import ContentError, PlacementError, SandbayError, UnknownReferenceError
from sandbay.sdk.layout import LayoutTar, split_tag
from sandbay.sdk.references import parse
from tests.support.scripted_http import DIGEST, Answer, Asked, page, refusal, scripted

Connect = Callable[[str], Any]
IMAGES = "/core/v1/sandbox/images"
HASH = "b" * 64


@pytest.fixture
def layout(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "layout"
    (folder / "blobs" / "sha256").mkdir(parents=True)
    (folder / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
    (folder / "index.json").write_text("{}")
    (folder / "blobs" / "sha256" / HASH).write_bytes(os.urandom(3_000_001))
    (folder / "blobs" / "sha256" / ("c" * 64)).write_bytes(b"")
    (folder / "blobs" / "sha256" / ("d" * 64)).write_bytes(b"x" * 512)
    (folder / "README").write_text("no part of a layout")
    return folder


def test_a_layout_is_one_tar_of_what_belongs_to_it(layout: pathlib.Path) -> None:
    tar = LayoutTar(layout)
    data = b"".join(tar)
    assert len(data) == tar.size
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        members = archive.getmembers()
        content = {member.name: archive.extractfile(member).read() for member in members}  # type: ignore[union-attr]
    blobs = [f"blobs/sha256/{name * 64}" for name in "bcd"]
    assert list(content) == ["oci-layout", "index.json", *blobs]
    assert all(body == (layout / name).read_bytes() for name, body in content.items())
    assert {(member.uid, member.gid, member.mtime, member.mode, member.type) for member in members} == {
        (0, 0, 0, 0o644, tarfile.REGTYPE)
    }
    assert b"".join(tar) == data


def test_a_large_layout_is_never_held(layout: pathlib.Path) -> None:
    with (layout / "blobs" / "sha256" / ("e" * 64)).open("wb") as huge:
        huge.truncate(10 << 30)
    tar = LayoutTar(layout)
    assert tar.size > 10 << 30
    pieces = iter(tar)
    assert max(len(next(pieces)) for _ in range(50)) <= 1 << 20


@pytest.mark.parametrize("name", ["oci-layout", "index.json", f"blobs/sha256/{HASH}", "blobs/sha256", "blobs"])
def test_links_are_refused(layout: pathlib.Path, tmp_path: pathlib.Path, name: str) -> None:
    (layout / name).rename(tmp_path / "moved")
    (layout / name).symlink_to(tmp_path / "moved")
    with pytest.raises(ContentError) as caught:
        LayoutTar(layout)
    assert caught.value.code == "unsafe_link"


def test_a_file_that_becomes_a_link_meanwhile_is_refused(layout: pathlib.Path, tmp_path: pathlib.Path) -> None:
    tar = LayoutTar(layout)
    (layout / "index.json").rename(tmp_path / "moved")
    (layout / "index.json").symlink_to(tmp_path / "moved")
    with pytest.raises(ContentError) as caught:
        b"".join(tar)
    assert caught.value.code == "unsafe_link"


@pytest.mark.parametrize("change", [b"", b"longer than it was"])
def test_a_file_that_changes_meanwhile_is_refused(layout: pathlib.Path, change: bytes) -> None:
    tar = LayoutTar(layout)
    (layout / "index.json").write_bytes(change)
    with pytest.raises(ContentError) as caught:
        b"".join(tar)
    assert caught.value.code == "malformed_layout"


@pytest.mark.parametrize("name", ["oci-layout", "index.json", "blobs"])
def test_a_folder_that_is_no_layout_is_refused(layout: pathlib.Path, tmp_path: pathlib.Path, name: str) -> None:
    (layout / name).rename(tmp_path / "elsewhere")
    with pytest.raises(ContentError) as caught:
        LayoutTar(layout)
    assert caught.value.code == "malformed_layout"


def test_special_files_are_refused_not_waited_for(layout: pathlib.Path) -> None:
    os.mkfifo(layout / "blobs" / "sha256" / ("f" * 64))
    with pytest.raises(ContentError):
        LayoutTar(layout)


def test_a_tag_behind_a_folder(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a:b").mkdir()
    assert split_tag(f"{tmp_path}/a:b") == (f"{tmp_path}/a:b", None)
    assert split_tag(f"{tmp_path}/a:b:1.0") == (f"{tmp_path}/a:b", "1.0")
    assert split_tag("dir") == ("dir", None)
    assert split_tag("/x:y/dir") == ("/x:y/dir", None)


def image(**more: Any) -> dict[str, Any]:
    channels = {"stable": {"release": 3, "revision": 1}}
    return {
        "id": "img_1",
        "name": "web",
        "state": "active",
        "revision": 4,
        "channels": channels,
        "releases": [1, 3],
        **more,
    }


def release(number: int = 3, state: str = "pending", **more: Any) -> dict[str, Any]:
    variant = {"platform": "linux/amd64", "digest": DIGEST, "index_digest": None, "providers": ["oci"], "size": 10}
    return {"id": f"rel_{number}", "image": "img_1", "number": number, "state": state, "variants": [variant], **more}


def catalog(**answers: Answer) -> Callable[[Asked], Answer]:
    """Answers by what is asked, `POST /images` written as `POST_images`; all else is not found."""
    table = {name.replace("__", "/").replace("_", " ", 1): answer for name, answer in answers.items()}

    def script(asked: Asked) -> Answer:
        what = f"{asked.method} {asked.path.removeprefix('/core/v1/sandbox/')}"
        return table.get(what, refusal(404, "not_found", "not_found_error"))

    return script


def test_the_tag_of_an_archive_may_hold_colons_and_a_file_may_too(tmp_path: pathlib.Path) -> None:
    for name in ("a.tar", "b:1"):
        (tmp_path / name).write_bytes(b"")
    cases = {
        "a.tar": ("a.tar", None),
        "a.tar:1": ("a.tar", "1"),
        "a.tar:reg.example:5000/fx/a:1": ("a.tar", "reg.example:5000/fx/a:1"),
        "b:1": ("b:1", None),
        "b:1:2": ("b:1", "2"),
        "c:1": ("c:1", None),
    }
    for text, (file, tag) in cases.items():
        assert split_archive_tag(f"{tmp_path}/{text}") == (f"{tmp_path}/{file}", tag)


def test_an_archive_that_changes_while_it_is_read_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(b"12345")
    body = ArchiveFile(path)
    assert (b"".join(body), body.size) == (b"12345", 5)
    for changed in (b"1234", b"123456"):
        path.write_bytes(changed)
        with pytest.raises(ContentError, match="changed"):
            b"".join(body)
    for nothing in (tmp_path, tmp_path / "none"):
        with pytest.raises(ContentError):
            ArchiveFile(nothing)


@pytest.mark.parametrize("existing", [Answer(201, image()), refusal(409, "name_taken", "conflict_error")])
def test_register_uploads_makes_the_image_and_asks_for_a_release(
    sdk: Any, connect: Connect, layout: pathlib.Path, existing: Answer
) -> None:
    script = catalog(
        POST_uploads=Answer(201, {"id": "upl_1", "digest": DIGEST, "size": 1, "expires_at": "2026-01-01T00:00:00Z"}),
        POST_images=existing,
        POST_images__web__releases=Answer(201, release()),
    )
    seen: list[Progress] = []
    with scripted(script) as server:
        made = sdk.AdminClient(transport=connect(server.url)).images.register_layout(
            "web", layout, tag="1.0", platforms=["linux/amd64"], promote="stable", progress=seen.append
        )
        assert made.number == 3
        upload, _, register = server.asked
        assert upload.body == b"".join(LayoutTar(layout))
        assert upload.headers["content-type"] == "application/octet-stream"
        assert int(upload.headers["content-length"]) == len(upload.body)
        assert register.json == {
            "source": {"upload": "upl_1", "tag": "1.0"},
            "platforms": ["linux/amd64"],
            "promote": "stable",
        }
    assert seen[-2:] == [Progress("uploading", len(upload.body), len(upload.body)), Progress("verifying")]


def test_a_folder_that_is_no_layout_makes_no_image(sdk: Any, connect: Connect, tmp_path: pathlib.Path) -> None:
    with scripted(catalog()) as server:
        with pytest.raises(ContentError):
            sdk.AdminClient(transport=connect(server.url)).images.register_layout("web", tmp_path)
        assert server.asked == []


def test_waiting_for_a_release(sdk: Any, connect: Connect) -> None:
    states = iter([release(), release(), release(state="active")])
    line = {"node": "n1", "state": "pulling", "bytes_done": 3, "bytes_total": 9, "release": 3}

    def script(asked: Asked) -> Answer:
        return page(line) if asked.path.endswith("/readiness") else Answer(body=next(states))

    seen: list[Progress] = []
    with scripted(script) as server:
        images = sdk.AdminClient(transport=connect(server.url)).images
        assert images.wait_active("web", 3, progress=seen.append).state == "active"
    assert seen == [Progress("pulling", 3, 9)] * 2


@pytest.mark.parametrize("retry_at, code", [(None, "image_prepare_failed"), ("2030-01-01T00:00:00Z", "wait_expired")])
def test_only_nodes_that_gave_up_end_the_wait(sdk: Any, connect: Connect, retry_at: str | None, code: str) -> None:
    fault = {"code": "start_failed", "message": "no", "details": {}}
    line = {"node": "n1", "state": "failed", "release": 3, "fault": fault, "retry_at": retry_at}
    other = {"node": "n2", "state": "ready", "release": 2}

    def script(asked: Asked) -> Answer:
        return page(line, other) if asked.path.endswith("/readiness") else Answer(body=release())

    with scripted(script) as server:
        images = sdk.AdminClient(transport=connect(server.url)).images
        with pytest.raises(PlacementError) as caught:
            images.wait_active("web", 3, timeout=3)
        assert caught.value.code == code


def test_a_rejected_release_raises_its_fault(sdk: Any, connect: Connect) -> None:
    """Whenever it is rejected: a node's failure and the release's come in one change, between any two requests."""
    fault = {"code": "digest_mismatch", "message": "blob", "details": {"digest": DIGEST}}
    failed = {"node": "n1", "state": "failed", "bytes_done": 0, "bytes_total": 0, "release": 3, "fault": fault}
    for rejected_after in range(3):
        asked_so_far = itertools.count()

        def script(asked: Asked, after: int = rejected_after, count: Iterator[int] = asked_so_far) -> Answer:
            rejected = next(count) >= after
            if asked.path.endswith("/readiness"):
                return page(failed) if rejected else page()
            return Answer(body=release(state="rejected", fault=fault) if rejected else release())

        with scripted(script) as server, pytest.raises(ContentError) as caught:
            sdk.AdminClient(transport=connect(server.url)).images.wait_active("web", 3)
        assert caught.value.details == {"digest": DIGEST}


def test_waiting_for_a_release_ends(sdk: Any, connect: Connect) -> None:
    def script(asked: Asked) -> Answer:
        return page() if asked.path.endswith("/readiness") else Answer(body=release())

    with scripted(script) as server:
        images = sdk.AdminClient(transport=connect(server.url)).images
        with pytest.raises(PlacementError) as caught:
            images.wait_active("web", 3, timeout=5)
        assert caught.value.code == "wait_expired"


def test_promote_retire_evict_preload(sdk: Any, connect: Connect) -> None:
    script = catalog(
        PUT_images__web__channels__canary=Answer(body={"release": 7, "revision": 2}),
        PUT_images__web__channels__stable=Answer(body={"release": 3, "revision": 2}),
        GET_images__web=Answer(body=image()),
        GET_images__web__releases__3=Answer(body=release()),
        GET_images__web__releases=page(release(1), release(3)),
        PATCH_images__web=Answer(body=image()),
        PATCH_images__web__releases__7=Answer(body=release(7)),
        POST_images__web__verify=Answer(
            body={"image": "web", "seen": "whole", "blobs": [], "nodes": [{"seen": "whole"}]}
        ),
        POST_images__web__evict=Answer(body={"evicted": [{"node": "n", "release": 3}], "kept": []}),
        POST_images__web__preload=Answer(202, {}),
    )
    with scripted(script) as server:
        images = sdk.AdminClient(transport=connect(server.url)).images
        assert images.promote("web:7", to="canary").release == 7
        assert server.asked[-1].json == {"release": 7}
        assert images.promote("web:stable").release == 3
        assert server.asked[-1].json == {"release": 3}
        images.retire("web")
        assert server.asked[-1].json == {"state": "retired", "expected_revision": 4}
        images.retire("web:7")
        assert server.asked[-1].json == {"state": "retired"}
        assert images.verify("web:3", node="n").nodes == ({"seen": "whole"},)
        assert images.evict("web", node="n").evicted == ({"node": "n", "release": 3},)
        assert server.asked[-1].json == {"node": "n"}
        images.preload("web:7")
        assert server.asked[-1].json == {"reference": "web:7"}
        assert images.release(f"web@{DIGEST}").number == 1
        with pytest.raises(UnknownReferenceError):
            images.release(f"web@{DIGEST}0")
        with pytest.raises(UnknownReferenceError):
            images.release("web:nightly")


def test_a_channel_goes_back_and_tells_where_it_was(sdk: Any, connect: Connect) -> None:
    moves = [
        {"revision": 2, "before": 1, "release": 3, "at": "2026-01-02T03:04:05Z", "principal": "ann", "why": "faster"},
        {"revision": 1, "before": None, "release": 1, "at": "2026-01-01T03:04:05Z", "principal": "system", "why": ""},
    ]
    script = catalog(
        POST_images__web__channels__stable__rollback=Answer(body={"release": 1, "revision": 3, "previous": 3}),
        GET_images__web__channels__canary__history=page(*moves),
    )
    with scripted(script) as server:
        images = sdk.AdminClient(transport=connect(server.url)).images
        back = images.rollback("web", why="slower")
        assert (back.release, back.previous) == (1, 3)
        assert server.asked[-1].json == {"why": "slower"}
        told = images.history("web", channel="canary")
        assert [(it.revision, it.before, it.release, it.principal) for it in told] == [
            (2, 1, 3, "ann"),
            (1, None, 1, "system"),
        ]
        assert len(images.history("web", channel="canary", limit=1)) == 1


def promotion(outcome: str | None, **changes: Any) -> dict[str, Any]:
    node = {"node": "n1", "online": True, "state": "pulling", "bytes_done": 30, "bytes_total": 100, "failure": None}
    progress = {"ready": 1, "needed": 2, "nodes": [node, {**node, "bytes_done": 50}]}
    made = {"id": "prm_1", "image": "web", "channel": "stable", "release": 7, "before": 3, "nodes": None}
    moments = {"deadline": "2026-01-01T00:00:00Z", "created_at": "2026-01-01T00:00:00Z"}
    return {**made, **moments, "outcome": outcome, "failure": None, "progress": progress, **changes}


def test_a_promotion_that_waits_for_nodes_is_followed(sdk: Any, connect: Connect) -> None:
    moments = [promotion(None), promotion("settled", progress=None)]
    others = catalog(
        POST_images__web__promotions=Answer(201, promotion(None)),
        POST_images__web__promotions__prm_1__abort=Answer(body=promotion("aborted", ended_by="ann")),
        GET_images__web__promotions=page(promotion("settled", progress=None)),
    )

    def script(asked: Asked) -> Answer:
        return Answer(body=moments.pop(0)) if asked.path.endswith("/prm_1") else others(asked)

    told: list[Any] = []
    with scripted(script) as server:
        images = sdk.AdminClient(transport=connect(server.url)).images
        begun = images.promote_when_ready("web:7", nodes=2, deadline=9, why="faster")
        body = {"release": 7, "channel": "stable", "nodes": 2, "deadline_seconds": 9, "why": "faster"}
        assert server.asked[-1].json == body
        assert images.wait_settled(begun, progress=told.append).outcome == "settled"
        assert [(it.phase, it.bytes_done, it.bytes_total) for it in told] == [("ready on 1 of 2 nodes", 80, 200)]
        assert images.abort_promotion(begun).outcome == "aborted"
        assert [it.outcome for it in images.promotions("web")] == ["settled"]


@pytest.mark.parametrize(
    "ended, code",
    [
        (promotion("failed", failure={"code": "wait_expired", "message": "over", "details": {}}), "wait_expired"),
        (promotion("aborted", ended_by="ann"), "cancelled"),
    ],
)
def test_a_promotion_that_did_not_settle_says_why(sdk: Any, connect: Connect, ended: Any, code: str) -> None:
    script = catalog(
        POST_images__web__promotions=Answer(201, promotion(None)),
        GET_images__web__promotions__prm_1=Answer(body=ended),
    )
    with scripted(script) as server:
        images = sdk.AdminClient(transport=connect(server.url)).images
        with pytest.raises(SandbayError) as caught:
            images.wait_settled(images.promote_when_ready("web:7"))
        assert caught.value.code == code


def test_promote_wants_to_know_which_release(sdk: Any, connect: Connect) -> None:
    with scripted(catalog()) as server:
        with pytest.raises(UnknownReferenceError) as caught:
            sdk.AdminClient(transport=connect(server.url)).images.promote("web")
        assert caught.value.code == "invalid_reference"
        assert server.asked == []


@pytest.mark.parametrize("text", ["", ":", "web:", "@", "web@", "a/b", "we\nb", ":7"])
def test_what_is_no_reference(text: str) -> None:
    with pytest.raises(UnknownReferenceError) as caught:
        parse(text)
    assert caught.value.code == "invalid_reference"


def test_newer_members_do_not_break_an_older_client(sdk: Any, connect: Connect) -> None:
    with scripted(catalog(GET_images__web=Answer(body=image(tools=[{"name": "node"}])))) as server:
        found = sdk.AdminClient(transport=connect(server.url)).images.get("web")
        assert found.channels["stable"].release == 3
        assert found.raw["tools"] == [{"name": "node"}]
