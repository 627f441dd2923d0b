"""The contract of the port `image_source`, executable: subclass it and say how a layout becomes your source."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Variant
from sandbay.ports.blobs import Blobs
from sandbay.ports.image_source import Copied, ImageSource, Wanted
from tests.contracts.blobs_suite import read
from tests.support.oci_layout import Layer, Layout
from tests.support.tar_entries import file

AMD64 = Platform("linux", "amd64")
ARM64 = Platform("linux", "arm64")
FIXTURES = Path(__file__).parents[1] / "fixtures" / "images"

REFUSED = {
    "d01-layer-bytes-changed": Reason.DIGEST_MISMATCH,
    "d02-layer-cut": Reason.SIZE_MISMATCH,
    "d03-layer-longer": Reason.SIZE_MISMATCH,
    "d05-config-changed": Reason.DIGEST_MISMATCH,
    "d06-manifest-changed": Reason.DIGEST_MISMATCH,
    "d07-blob-missing": Reason.BLOB_MISSING,
    "e03-wrong-platform-only": Reason.PLATFORM_MISMATCH,
    "e04-wrong-platform-single": Reason.PLATFORM_MISMATCH,
    "e09-index-loop": Reason.LIMIT_EXCEEDED,
    "e12-media-type-differs": Reason.MALFORMED_MANIFEST,
    "e17-foreign-layer": Reason.UNSUPPORTED_MEDIA_TYPE,
    "e18-artifact": Reason.NOT_AN_IMAGE,
    "e23-sha512": Reason.UNSUPPORTED_DIGEST,
    "e24-digest-is-a-path": Reason.INVALID_DIGEST,
    "e27-two-images": Reason.AMBIGUOUS_ARCHIVE,
    "e28-tag-moved": Reason.AMBIGUOUS_ARCHIVE,
    "e30-schema1": Reason.UNSUPPORTED_MEDIA_TYPE,
}
# What is wrong with these is inside a layer, or nothing is.
TAKEN = [
    "d08-diff-id-wrong",
    "d10-gzip-cut-inside",
    "d11-tar-garbage-inside",
    "d13-tar-cut-in-data",
    "d14-tar-no-end-blocks",
    "d16-bomb",
    "e01-attestation-first",
    "e06-same-platform-twice",
    "e08-nested-index",
    "e11-no-media-type",
    "e13-zstd",
    "e15-uncompressed",
    "e20-empty-layers",
    "e21-no-layers",
]


def told_rightly(seen: Sequence[Copied], variants: Sequence[Variant]) -> None:
    """Progress begins before the first byte, rises, and ends with everything."""
    done = [it.bytes_done for it in seen]
    assert (done[0], done) == (0, sorted(done))
    assert done[-1] == seen[-1].bytes_total > 0
    layers = {layer.digest for variant in variants for layer in variant.layers}
    assert {(it.bytes_total, it.layers) for it in seen} == {(done[-1], len(layers))}


class ImageSourceSuite:
    """Subclasses give the fixture `blobs`, too: an empty store."""

    def source(self, layout: Path, scratch: Path) -> ImageSource:
        raise NotImplementedError

    def take(
        self,
        layout: Path,
        blobs: Blobs,
        scratch: Path,
        *,
        tag: str | None = None,
        platforms: Sequence[Platform] = (AMD64,),
    ) -> tuple[Variant, ...]:
        seen: list[Copied] = []
        variants = self.source(layout, scratch).read(Wanted(platforms, tag), blobs, seen.append)
        told_rightly(seen, variants)
        for variant in variants:
            assert variant.providers == ()
            for digest in (*variant.artifacts.values(),):
                assert blobs.has(digest.value)
            assert [len(read(blobs, layer.digest)) for layer in variant.layers] == [x.size for x in variant.layers]
        return variants

    def refused(self, layout: Path, blobs: Blobs, scratch: Path, tag: str | None = None) -> Refusal:
        with pytest.raises(RefusedError) as caught:
            self.take(layout, blobs, scratch, tag=tag)
        return caught.value.refusal

    @pytest.mark.parametrize("name, reason", REFUSED.items())
    def test_each_awkward_image_has_its_reason(self, name: str, reason: Reason, blobs: Blobs, tmp_path: Path) -> None:
        layout = FIXTURES / name / "layout"
        assert self.refused(layout, blobs, tmp_path).reason is reason

    @pytest.mark.parametrize("name", TAKEN)
    def test_what_is_fit_to_read_is_taken(self, name: str, blobs: Blobs, tmp_path: Path) -> None:
        (variant,) = self.take(FIXTURES / name / "layout", blobs, tmp_path)
        assert variant.platform == AMD64

    def test_the_same_verdict_with_a_warm_store(self, blobs: Blobs, tmp_path: Path) -> None:
        good = FIXTURES / "e01-attestation-first" / "layout"
        self.take(good, blobs, tmp_path)
        for name in ("d01-layer-bytes-changed", "d02-layer-cut", "d05-config-changed", "d07-blob-missing"):
            assert self.refused(FIXTURES / name / "layout", blobs, tmp_path / name).reason is REFUSED[name]
        self.take(good, blobs, tmp_path)

    def test_attestations_are_neither_offered_nor_copied(self, blobs: Blobs, tmp_path: Path) -> None:
        (variant,) = self.take(FIXTURES / "e01-attestation-first" / "layout", blobs, tmp_path)
        assert not blobs.has("sha256:6c3bb41b20feed2f936dbb00619537716e7ddc00899892790109b765f7905d7e")
        assert variant.index_digest == "sha256:b9ec3519665002cf4e08f19b1217dc6386b03c5cec327423eda04cc095774a0b"
        assert len({variant.digest, variant.index_digest, variant.artifacts["image_id"].value}) == 3

    def test_a_platform_that_is_not_there_says_what_is(self, blobs: Blobs, tmp_path: Path) -> None:
        refusal = self.refused(FIXTURES / "e03-wrong-platform-only" / "layout", blobs, tmp_path)
        assert refusal.details == {"offered": ["linux/arm64", "linux/s390x"], "wanted": ["linux/amd64"]}
        refusal = self.refused(FIXTURES / "e04-wrong-platform-single" / "layout", blobs, tmp_path)
        assert refusal.details["offered"] == ["linux/arm64"]

    def test_the_first_entry_of_a_platform_is_the_one(self, blobs: Blobs, tmp_path: Path) -> None:
        layout = Layout(tmp_path / "twice")
        first = layout.image([[file("which", b"1")]], platform="linux/amd64", listed=False)
        second = layout.image([[file("which", b"2")]], platform="linux/amd64", listed=False)
        index = layout.index([first, second], ref="latest")
        (variant,) = self.take(layout.path, blobs, tmp_path)
        assert (variant.digest, variant.index_digest) == (first.manifest_digest, index)
        assert not blobs.has(second.manifest_digest)

    def test_a_tag_chooses_and_no_image_is_implied(self, blobs: Blobs, tmp_path: Path) -> None:
        layout = Layout(tmp_path / "two")
        images = {
            tag: layout.image([[file("which", tag.encode())]], platform="linux/amd64", ref=tag)
            for tag in ("one", "two")
        }
        assert self.refused(layout.path, blobs, tmp_path).details == {"choices": ["one", "two"]}
        unknown = self.refused(layout.path, blobs, tmp_path, tag="three")
        assert (unknown.reason, unknown.details) == (Reason.AMBIGUOUS_ARCHIVE, {"choices": ["one", "two"]})
        for tag, image in images.items():
            (variant,) = self.take(layout.path, blobs, tmp_path / tag, tag=tag)
            assert variant.digest == image.manifest_digest

    def test_two_unnamed_images_are_two(self, blobs: Blobs, tmp_path: Path) -> None:
        layout = Layout(tmp_path / "two")
        images = [layout.image([[file("which", text)]], platform="linux/amd64") for text in ("1", "2")]
        refusal = self.refused(layout.path, blobs, tmp_path)
        assert refusal.reason is Reason.AMBIGUOUS_ARCHIVE
        assert refusal.details == {"choices": sorted(image.manifest_digest for image in images)}

    def test_one_image_under_two_names_is_one(self, blobs: Blobs, tmp_path: Path) -> None:
        layout = Layout(tmp_path / "named")
        image = None
        for ref in ("1", "latest"):
            image = layout.image([[file("x", b"x")]], platform="linux/amd64", ref=ref)
        (variant,) = self.take(layout.path, blobs, tmp_path)
        assert image
        assert variant.digest == image.manifest_digest

    @pytest.mark.parametrize("in_an_index", [True, False])
    def test_all_wanted_platforms_and_no_other(self, blobs: Blobs, tmp_path: Path, *, in_an_index: bool) -> None:
        layout = Layout(tmp_path / "many")
        images = {
            text: layout.image([[file("arch", text)]], platform=text, listed=not in_an_index)
            for text in ("linux/amd64", "linux/arm64/v8", "linux/s390x")
        }
        if in_an_index:
            layout.index(list(images.values()))
        variants = self.take(layout.path, blobs, tmp_path, platforms=(ARM64, AMD64, ARM64))
        assert [(v.platform, v.digest) for v in variants] == [
            (ARM64, images["linux/arm64/v8"].manifest_digest),
            (AMD64, images["linux/amd64"].manifest_digest),
        ]
        assert not blobs.has(images["linux/s390x"].manifest_digest)

    def test_an_index_is_not_believed_about_the_platform(self, blobs: Blobs, tmp_path: Path) -> None:
        layout = Layout(tmp_path / "liar")
        layout.image([[file("x")]], platform="linux/amd64", change_config={"architecture": "s390x"})
        refusal = self.refused(layout.path, blobs, tmp_path)
        assert refusal.reason is Reason.PLATFORM_MISMATCH
        assert refusal.details["offered"] == ["linux/s390x"]

    def test_one_layer_with_two_sizes_is_a_wrong_size(self, blobs: Blobs, tmp_path: Path) -> None:
        layout = Layout(tmp_path / "sizes")
        layer = layout.layer([file("x", b"x")])
        lie = Layer(layer.digest, layer.diff_id, layer.size + 1, layer.media_type)
        for order in ([layer, lie], [lie, layer]):
            layout.image(order, platform="linux/amd64", ref="sizes" + str(order.index(lie)))
        for tag in ("sizes0", "sizes1"):
            assert self.refused(layout.path, blobs, tmp_path / tag, tag=tag).reason is Reason.SIZE_MISMATCH

    def test_the_config_is_told(self, blobs: Blobs, tmp_path: Path) -> None:
        layout = Layout(tmp_path / "config")
        config = {"Entrypoint": ["/e"], "Cmd": None, "Env": ["A=1=2"], "User": "u", "WorkingDir": "/w"}
        layout.image([], {**config, "StopSignal": "SIGINT"}, platform="linux/amd64")
        (variant,) = self.take(layout.path, blobs, tmp_path)
        told = variant.config
        assert (told.entrypoint, told.cmd, told.env) == (("/e",), None, ("A=1=2",))
        assert (told.user, told.workdir, told.stop_signal) == ("u", "/w", "SIGINT")

    def test_another_layout_version_is_refused(self, blobs: Blobs, tmp_path: Path) -> None:
        refusal = self.refused(FIXTURES / "e26-layout-version" / "layout", blobs, tmp_path)
        assert refusal.reason is Reason.MALFORMED_LAYOUT
