"""A builder that runs nothing: COPY copies, `RUN exit N` fails, `RUN sleep` lasts until it is cancelled."""

import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbay.adapters.image_source.layout import FolderTree, LayoutSource
from sandbay.domain.errors import RefusedError
from sandbay.domain.publish import Bootstrap
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Variant
from sandbay.ports.builder import BuildOrder, Context, Say
from sandbay.ports.image_source import ImageSource
from tests.support.oci_layout import Layer, Layout
from tests.support.tar_entries import Entry, file

_PAUSE = 0.005


class MemoryBuilder:
    """`folder` holds layouts while they are handed out. `built` counts builds that came to an end."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.built = 0
        self.at_once = 0
        self.most_at_once = 0
        self.gate = threading.Event()
        self.gate.set()
        self._lock = threading.Lock()

    @property
    def version(self) -> str:
        return "memory-1"

    @contextmanager
    def build(self, order: BuildOrder, say: Say, cancel: threading.Event) -> Iterator[ImageSource]:
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        try:
            self._wait(self.gate, cancel)
            yield self._image(order, folder / "layout", say, cancel)
        finally:
            shutil.rmtree(folder)
            with self._lock:
                self.at_once -= 1

    def _image(self, order: BuildOrder, place: Path, say: Say, cancel: threading.Event) -> ImageSource:
        layout = Layout(place)
        entries = self._entries(order, say, cancel)
        base = order.containerfile.base
        below = [] if base is None else self._below(order, order.bases[base], layout)
        layout.image([*below, entries], platform=str(order.platform))
        self.built += 1
        return LayoutSource(lambda: FolderTree(place))

    def _entries(self, order: BuildOrder, say: Say, cancel: threading.Event) -> list[Entry]:
        entries: dict[str, Entry] = {}
        for step in order.containerfile.steps:
            say(f"STEP {step}\n")
            word, _, rest = step.partition(" ")
            match (word, *rest.split()):
                case ("COPY", source, target):
                    content = _content(order.context, source)
                    entries[target] = file(target.lstrip("/"), content)
                case ("RUN", "exit", code):
                    say("this is what the step said\n")
                    details = {"step": step, "exit_code": int(code), "output": ["this is what the step said"]}
                    raise RefusedError(Reason.BUILD_FAILED, f"the step {step!r} failed", details=details)
                case ("RUN", "sleep", *_):
                    self._wait(threading.Event(), cancel)
                case _:
                    pass
        return list(entries.values())

    def _below(self, order: BuildOrder, base: Variant | Bootstrap, layout: Layout) -> list[Layer]:
        if isinstance(base, Bootstrap):
            return [layout.layer([file("etc/distribution", base.distribution.encode())])]
        below = []
        for layer in base.layers:
            with order.blobs.open(layer.digest) as blob:
                layout.blob(blob.read())
            below.append(Layer(layer.digest, layer.diff_id, layer.size, layer.media_type))
        return below

    def _wait(self, event: threading.Event, cancel: threading.Event) -> None:
        while not event.wait(_PAUSE):
            if cancel.is_set():
                raise RefusedError(Reason.CANCELLED, "the publish was cancelled")


def _content(context: Context, path: str) -> bytes:
    data = context.read(path, 1 << 20)
    assert data is not None, f"COPY: there is no {path}"
    return data
