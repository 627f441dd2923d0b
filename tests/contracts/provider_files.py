"""Provider suite: the files of a running sandbox."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbay.domain.reasons import Reason
from sandbay.ports.provider import FileKind, Files
from tests.contracts.provider_harness import Offer, ProviderHarness, Sandbox, needs, refused, start

BYTES = bytes(range(256))


class FilesSuite:
    @pytest.fixture
    def agent(self, harness: ProviderHarness) -> Sandbox:
        return start(harness, harness.variants.data)

    @pytest.fixture
    def files(self, agent: Sandbox) -> Files:
        return agent.harness.provider.files(agent.allocation)

    @pytest.mark.parametrize("size", [0, 1, 3 * 1024 * 1024 + 1])
    def test_what_is_written_is_read(self, agent: Sandbox, files: Files, size: int) -> None:
        content = (BYTES * (size // 256 + 1))[:size]
        files.write("a/b/file", (content[at : at + 65536] for at in range(0, size, 65536)))
        assert files.read("/workspace/a/b/file").read() == content
        assert agent.run("cat", "/workspace/a/b/file").stdout == content

    def test_what_a_program_writes_is_seen(self, agent: Sandbox, files: Files) -> None:
        assert agent.run("touch", "/workspace/made").code == 0
        assert [entry.name for entry in files.list(".")] == ["made"]

    def test_new_things_belong_to_the_images_user(self, files: Files) -> None:
        files.write("deep/file", [b"12345"])
        files.write("program", [b"x"], mode=0o755)
        files.make_folder("made/too")
        for path in ("deep", "deep/file", "made", "made/too"):
            told = files.stat(path)
            assert (told.uid, told.gid) == (1000, 1000)
        file, folder = files.stat("deep/file"), files.stat("deep")
        assert (file.kind, file.size, file.mode, file.target) == (FileKind.FILE, 5, 0o644, None)
        assert (folder.kind, folder.name) == (FileKind.DIRECTORY, "deep")
        assert files.stat("program").mode == 0o755

    def test_the_images_own_files_keep_their_owner(self, files: Files) -> None:
        told = files.stat("/etc/which")
        assert (told.uid, told.gid, told.size) == (0, 0, 4)

    def test_a_replaced_file_keeps_its_mode(self, files: Files) -> None:
        files.write("x", [b"1"], mode=0o700)
        files.write("x", [b"22"])
        assert (files.stat("x").mode, files.stat("x").size) == (0o700, 2)

    def test_lists_are_in_order_and_whole(self, files: Files) -> None:
        for name in ("b", "a", "é", "B", ".hidden", "with space"):
            files.write(f"list/{name}", [b""])
        assert [entry.name for entry in files.list("list")] == sorted([".hidden", "B", "a", "b", "with space", "é"])
        files.make_folder("empty")
        assert list(files.list("empty")) == []

    def test_a_write_that_breaks_leaves_the_old_file_and_nothing_else(self, files: Files) -> None:
        class BrokenError(Exception):
            pass

        def breaks() -> Iterator[bytes]:
            yield b"new"
            raise BrokenError

        files.write("d/file", [b"old"])
        with pytest.raises(BrokenError):
            files.write("d/file", breaks())
        assert files.read("d/file").read() == b"old"
        assert [entry.name for entry in files.list("d")] == ["file"]

    def test_moving(self, files: Files) -> None:
        files.write("from/x", [b"x"])
        files.move("from/x", "to/new/y")
        assert files.read("to/new/y").read() == b"x"
        assert list(files.list("from")) == []
        files.move("to", "elsewhere")
        assert files.read("elsewhere/new/y").read() == b"x"

    def test_removing(self, files: Files) -> None:
        files.write("tree/a/b", [b""])
        files.write("tree/c", [b""])
        files.write("kept", [b"kept"])
        files.remove("tree/c")
        files.remove("tree")
        assert [entry.name for entry in files.list(".")] == ["kept"]

    @pytest.mark.parametrize("path", ["missing", "missing/below", "/missing", "/etc/missing"])
    def test_what_is_not_there(self, files: Files, path: str) -> None:
        for use in (files.stat, files.list, files.read, files.remove):
            with refused(Reason.PATH_NOT_FOUND):
                use(path)
        with refused(Reason.PATH_NOT_FOUND):
            files.move(path, "x")

    def test_paths_that_cannot_be_used(self, files: Files) -> None:
        files.make_folder("folder")
        files.write("file", [b""])
        for use in (
            lambda: files.list("file"),
            lambda: files.read("folder"),
            lambda: files.write("folder", [b""]),
            lambda: files.stat("nul\0byte"),
            lambda: files.write("file/below", [b""]),
            lambda: files.remove("/"),
            lambda: files.remove(".."),
            lambda: files.remove("/workspace"),
        ):
            with refused(Reason.PATH_INVALID):
                use()
        assert {entry.name for entry in files.list(".")} == {"folder", "file"}

    def test_links_are_told_and_removed_as_links(self, agent: Sandbox, files: Files) -> None:
        files.write("target", [b"kept"])
        assert agent.run("ln", "-s", "target", "/workspace/link").code == 0
        told = files.stat("link")
        assert (told.kind, told.target) == (FileKind.SYMLINK, "target")
        assert files.read("link").read() == b"kept"
        files.remove("link")
        assert files.read("target").read() == b"kept"

    def test_a_write_replaces_a_link_and_follows_none(self, agent: Sandbox, files: Files) -> None:
        files.write("target", [b"kept"])
        assert agent.run("ln", "-s", "target", "/workspace/link").code == 0
        files.write("link", [b"new"])
        assert files.read("target").read() == b"kept"
        assert files.stat("link").kind is FileKind.FILE

    @pytest.mark.parametrize("climb", ["../../../../../../..", "/../../.."])
    def test_climbing_ends_at_the_sandboxs_root(self, files: Files, climb: str) -> None:
        assert files.read(f"{climb}/etc/which").read() == b"data"

    def test_links_that_lead_out_stay_inside(self, agent: Sandbox, files: Files, tmp_path: Path) -> None:
        canary = tmp_path / "canary"
        canary.write_bytes(b"host")
        up = "../" * 20
        targets = (str(tmp_path), up + str(tmp_path).lstrip("/"), f"/proc/1/root{tmp_path}")
        for number, target in enumerate(targets):
            assert agent.run("ln", "-s", target, f"/workspace/out{number}").code == 0
            with pytest.raises(Exception, match=r"^path_(not_found|invalid): "):
                files.read(f"out{number}/canary")
            with pytest.raises(Exception, match=r"^path_(not_found|invalid): "):
                files.remove(f"out{number}/canary")
            with pytest.raises(Exception, match=r"^path_(not_found|invalid): "):
                files.list(f"out{number}")
        assert canary.read_bytes() == b"host"
        assert [path.name for path in tmp_path.iterdir() if path.name != "canary"] == []

    def test_absolute_links_mean_the_sandboxs_files(self, agent: Sandbox, files: Files) -> None:
        assert agent.run("ln", "-s", "/etc/which", "/workspace/which").code == 0
        assert files.read("which").read() == b"data"

    def test_what_is_no_regular_file_is_not_opened(self, agent: Sandbox, files: Files) -> None:
        needs(agent.harness, Offer.SHELL)
        assert agent.run("mkfifo", "/workspace/pipe").code == 0
        assert files.stat("pipe").kind is FileKind.OTHER
        for path in ("pipe", "/dev/null", "/dev/zero"):
            with refused(Reason.PATH_INVALID):
                files.read(path)
