"""What the four Sessions do: the work that each image is there for. What they do it with is in `templates/`."""

from dataclasses import dataclass
from pathlib import Path

from tools.machine import ROOT

_HERE = ROOT / "tools" / "quickstart"


@dataclass(frozen=True, slots=True)
class Work:
    """One image's work, in a sandbox that the Template of the same name prepares.

    `line` is run by the sandbox's shell. `fetch` is a file that it makes, relative to the workspace: it is copied
    to this machine.
    """

    image: str
    task: str
    line: str
    fetch: str | None = None

    @property
    def folder(self) -> Path:
        """The image's own: image.toml, Containerfile."""
        return ROOT / "images" / self.image

    @property
    def template(self) -> Path:
        """The Template's folder: template.toml, files."""
        return _HERE / "templates" / self.image


REVIEW = Work(
    "review",
    "What does this change do, and who calls what it changes?",
    "git diff -U0 | rg '^[-+]' && echo && echo 'Called from:' && rg -n 'total\\(' order.js",
)
WEB = Work(
    "web",
    "Build a project with pnpm, without a network, and run what was built.",
    "pnpm install --silent && pnpm --silent run build && node dist/main.mjs",
)
DESIGN = Work(
    "design",
    "Render a diagram, put a margin around it, and hand the picture out.",
    "dot -Tpng -Gdpi=120 request.dot -o plain.png"
    " && convert plain.png -bordercolor white -border 24 request.png"
    " && identify -format '%f: %m, %w by %h\\n' request.png",
    fetch="request.png",
)
COMMERCIAL = Work(
    "commercial",
    "Enrich a list of leads, and ask where the money is.",
    "python3 enrich.py && sqlite3 -header -column leads.db"
    " 'SELECT region, count(*) AS leads, sum(value) AS value FROM lead GROUP BY region ORDER BY value DESC'",
)

WORKS = (REVIEW, WEB, DESIGN, COMMERCIAL)
SECOND_REVIEW = _HERE / "review-2"
"""The folder of a second release of `review`."""
