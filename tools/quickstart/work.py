"""What the four Sessions do: for each image a Template that prepares a sandbox, and the work that it is there for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Work:
    """`template` is the body of an Environment Template, `line` is run by the sandbox's shell.

    `fetch` is a file that the work makes, relative to the workspace: it is copied to this machine.
    """

    image: str
    task: str
    template: Mapping[str, Any]
    line: str
    fetch: str | None = None


def _files(**content: str) -> list[dict[str, str]]:
    return [{"path": path, "content": text.lstrip("\n")} for path, text in content.items()]


REVIEW = Work(
    image="review",
    task="What does this change do, and who calls what it changes?",
    template={
        "runtime_image_id": "review",
        "requires": ["git>=2.30", "rg"],
        "env": {"GIT_AUTHOR_NAME": "tour", "GIT_AUTHOR_EMAIL": "tour@example.invalid"}
        | {"GIT_COMMITTER_NAME": "tour", "GIT_COMMITTER_EMAIL": "tour@example.invalid"},
        "files": _files(
            **{
                "cart.js": "export const total = (prices) => prices.reduce((sum, price) => sum + price, 0);\n",
                "order.js": """
import { total } from "./cart.js";

export const invoice = (order) => `${order.customer} owes ${total(order.prices)}`;
""",
            }
        ),
        "setup_commands": [
            "git init -q -b main && git add . && git commit -qm 'Orders have a total'",
            "sed -i 's/(prices)/(prices, tax)/; s/, 0)/, 0) * (1 + tax)/' cart.js",
        ],
    },
    line="git diff -U0 | rg '^[-+]' && echo && echo 'Who calls it:' && rg -n 'total\\(' order.js",
)

WEB = Work(
    image="web",
    task="Build a project with pnpm, without a network, and run what was built.",
    template={
        "runtime_image_id": "web",
        "requires": ["node>=18", "pnpm>=10"],
        "files": _files(
            **{
                "package.json": """
{"name": "greeting", "version": "1.0.0", "private": true, "scripts": {"build": "node build.mjs"}}
""",
                "words.json": '["Many images,", "one", "installation."]\n',
                "build.mjs": """
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const words = JSON.parse(readFileSync("words.json"));
mkdirSync("dist", { recursive: true });
writeFileSync("dist/main.mjs", `console.log(${JSON.stringify(words.join(" "))});\\n`);
console.log(`dist/main.mjs from ${words.length} words, by node ${process.version}`);
""",
            }
        ),
    },
    line="pnpm install --silent && pnpm --silent run build && node dist/main.mjs",
)

DESIGN = Work(
    image="design",
    task="Render a diagram, put a margin around it, and hand the picture out.",
    template={
        "runtime_image_id": "design",
        "requires": ["dot", "convert"],
        "files": _files(
            **{
                "request.dot": """
digraph request {
    rankdir=LR
    node [shape=box, style=rounded, fontname="DejaVu Sans"]
    edge [fontname="DejaVu Sans", fontsize=11]
    create [label="create Session", style="rounded,filled", fillcolor="#dbe9ff"]
    create -> resolve [label="which image?"]
    resolve -> freeze [label="one release"]
    freeze -> place [label="for its whole life"]
    place -> run [label="a node that has exactly that"]
    resolve -> refused [label="or a named reason", style=dashed]
}
""",
            }
        ),
    },
    line=(
        "dot -Tpng -Gdpi=120 request.dot -o plain.png"
        " && convert plain.png -bordercolor white -border 24 request.png"
        " && identify -format '%f: %m, %w by %h\\n' request.png"
    ),
    fetch="request.png",
)

COMMERCIAL = Work(
    image="commercial",
    task="Enrich a list of leads and ask where the money is.",
    # It names no image: this one is what the project prefers.
    template={
        "requires": ["python3>=3.11", "sqlite3"],
        "files": _files(
            **{
                "leads.csv": """
company,country,seats
Aalto Oy,FI,40
Brot & Co,DE,250
Chaussures,FR,90
Dongfang,CN,400
Edo Works,JP,120
""",
                "enrich.py": """
import csv
import sqlite3

REGION = {"FI": "Europe", "DE": "Europe", "FR": "Europe", "CN": "Asia", "JP": "Asia"}
PRICE = 12

with open("leads.csv", newline="") as file, sqlite3.connect("leads.db") as leads:
    leads.execute("CREATE TABLE lead (company, region, value)")
    for row in csv.DictReader(file):
        lead = (row["company"], REGION[row["country"]], int(row["seats"]) * PRICE)
        leads.execute("INSERT INTO lead VALUES (?, ?, ?)", lead)
""",
            }
        ),
    },
    line=(
        "python3 enrich.py && sqlite3 -header -column leads.db"
        " 'SELECT region, count(*) AS leads, sum(value) AS value FROM lead GROUP BY region ORDER BY value DESC'"
    ),
)

WORKS = (REVIEW, WEB, DESIGN, COMMERCIAL)
PREFERRED = COMMERCIAL.image
