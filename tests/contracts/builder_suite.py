"""The contract of the port `builder`, executable: subclass it and give the fixture `builder`.

What its Containerfiles use is what every builder can do: COPY of a file, `RUN exit N`, `RUN sleep N`.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.adapters.image_source.layout import FolderTree, LayoutSource
from sandbay.domain.canonical import sha256
from sandbay.domain.containerfile import Containerfile, read_containerfile
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import PublishId
from sandbay.domain.platform import Platform
from sandbay.domain.publish import Bootstrap
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Variant
from sandbay.engine.context import ArchiveContext
from sandbay.ports.blobs import Blobs
from sandbay.ports.builder import Builder, BuildOrder
from sandbay.ports.image_source import Wanted
from tests.support.contexts import packed
from tests.support.oci_layout import BUSYBOX_CONFIG, HOST_PLATFORM, Layout, busybox_layers
from tests.support.tar_entries import file

PLATFORM = Platform.parse(HOST_PLATFORM)
PUBLISH = PublishId("pub_00000000000000000000")
NOBODY = threading.Event()


class Bench:
    """A builder with a blob store and a base in it: two layers, the upper one has /which."""

    def __init__(self, root: Path, builder: Builder) -> None:
        self.root, self.builder = root, builder
        self.blobs: Blobs = FolderBlobs(root / "blobs")
        layout = Layout(root / "base")
        layout.image([*busybox_layers(), [file("which", b"base")]], {**BUSYBOX_CONFIG, "OnBuild": ["RUN exit 9"]})
        self.base = self.take(LayoutSource(lambda: FolderTree(root / "base")))
        self.said: list[str] = []

    def take(self, source: LayoutSource) -> Variant:
        assert PLATFORM is not None
        (variant,) = source.read(Wanted([PLATFORM]), self.blobs, lambda _: None)
        return variant

    def build(
        self,
        *lines: str,
        files: Mapping[str, str] | None = None,
        cancel: threading.Event = NOBODY,
        rebuild: bool = False,
        bases: Mapping[str, Variant | Bootstrap] | None = None,
    ) -> Variant:
        """Build a Containerfile; `image:base` is the base."""
        context = self.root / "context.tar"
        context.write_bytes(packed({"which": "built", **(files or {})}))
        read = read_containerfile("\n".join(lines).encode(), {})
        assert isinstance(read, Containerfile), read
        assert PLATFORM is not None
        with closing(ArchiveContext(context)) as opened:
            order = BuildOrder(
                publish=PUBLISH,
                key=sha256("\n".join(lines).encode()),
                platform=PLATFORM,
                context=opened,
                containerfile=read,
                bases=bases or dict.fromkeys(read.images, self.base),
                blobs=self.blobs,
                rebuild=rebuild,
            )
            with self.builder.build(order, self.said.append, cancel) as source:
                (variant,) = source.read(Wanted([PLATFORM]), self.blobs, lambda _: None)
                return variant

    def refused(self, *lines: str, cancel: threading.Event = NOBODY) -> RefusedError:
        with pytest.raises(RefusedError) as caught:
            self.build(*lines, cancel=cancel)
        return caught.value


class BuilderSuite:
    @pytest.fixture
    def bench(self, tmp_path: Path, builder: Builder) -> Bench:
        return Bench(tmp_path / "bench", builder)

    @pytest.fixture(autouse=True)
    def _leaves_nothing(self, leftovers: Callable[[], object]) -> Iterator[None]:
        yield
        assert not leftovers()

    def test_the_bases_layers_lie_under_the_new_ones_as_they_are(self, bench: Bench) -> None:
        built = bench.build("FROM image:base", "COPY which /new")
        assert built.layers[:-1] == bench.base.layers
        assert built.layers[-1] not in bench.base.layers
        assert built.platform == PLATFORM

    def test_an_image_may_begin_from_scratch(self, bench: Bench) -> None:
        built = bench.build("FROM scratch", "COPY which /which")
        assert len(built.layers) == 1

    def test_the_same_inputs_give_the_same_bytes(self, bench: Bench) -> None:
        lines = ("FROM image:base", "COPY which /new")
        assert bench.build(*lines).digest == bench.build(*lines, rebuild=True).digest

    def test_other_content_gives_another_image(self, bench: Bench) -> None:
        lines = ("FROM scratch", "COPY which /which")
        first = bench.build(*lines, files={"which": "first"})
        assert bench.build(*lines, files={"which": "second"}, rebuild=True).digest != first.digest

    def test_the_last_stage_decides_what_the_image_stands_on(self, bench: Bench) -> None:
        built = bench.build("FROM scratch AS other", "COPY which /other", "FROM image:base", "COPY which /new")
        assert built.layers[:-1] == bench.base.layers

    def test_a_step_that_fails_is_named_with_its_code_and_last_words(self, bench: Bench) -> None:
        refusal = bench.refused("FROM image:base", "COPY which /new", "RUN exit 7", "COPY which /newer").refusal
        assert refusal.reason is Reason.BUILD_FAILED
        assert "RUN exit 7" in str(refusal.details["step"])
        assert refusal.details["exit_code"] == 7
        assert refusal.details["output"]
        assert any("RUN exit 7" in text for text in bench.said)

    def test_a_build_that_is_cancelled_ends(self, bench: Bench) -> None:
        cancel = threading.Event()
        timer = threading.Timer(1, cancel.set)
        timer.start()
        refusal = bench.refused("FROM image:base", "RUN sleep 600", cancel=cancel).refusal
        timer.join()
        assert refusal.reason is Reason.CANCELLED

    def test_the_version_is_part_of_the_inputs(self, builder: Builder) -> None:
        assert builder.version
