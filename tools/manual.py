"""./dev manual: write the reference in docs/*/sandbox-deployment.md from the contract; --check only compares.

What stands above the mark in a page is written by hand. Sentences come from the contract, which is English;
docs/zh/reference.json holds them in Chinese, and one without a translation is a problem, not a gap in the page.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_ROUTES = "/core/v1/sandbox"
_MARK = "<!-- Below this line ./dev manual writes from openapi/core-v1.json. -->\n"
_BAR = "\\|"  # inside a table
# What every route can answer is told once, above the mark.
_EVERYWHERE = {"401", "403", "500", "503"}

Schema = Mapping[str, Any]
Translate = Callable[[str], str]


def page(contract: Schema, translate: Translate) -> str:
    """Return the reference: every route of the deployment, then every shape that they take and answer."""
    routes = {path: value for path, value in contract["paths"].items() if path.startswith(_ROUTES)}
    writer = _Writer(contract["components"]["schemas"], translate)
    return "\n\n".join(
        [
            f"## {translate('Reference')}",
            *(
                writer.route(method.upper(), path, operation)
                for path, operations in routes.items()
                for method, operation in operations.items()
            ),
            f"## {translate('Shapes')}",
            *(writer.shape(name) for name in writer.reachable(routes)),
            "",
        ]
    )


class _Writer:
    """Writes sections in one language."""

    def __init__(self, schemas: Schema, translate: Translate) -> None:
        self._schemas = schemas
        self._say = translate

    def reachable(self, routes: Schema) -> list[str]:
        """Return the names of the shapes with fields that the routes refer to, directly or inside another."""
        waiting, seen = _references(routes), set[str]()
        while waiting:
            name = waiting.pop()
            seen.add(name)
            waiting += [inner for inner in _references(self._schemas[name]) if inner not in seen]
        return sorted(name for name in seen if "properties" in self._schemas[name])

    def route(self, method: str, path: str, operation: Schema) -> str:
        """Return the section of one operation."""
        asked = [parameter for parameter in operation.get("parameters", ()) if parameter["in"] != "path"]
        rows = [(parameter["name"], self._type(parameter["schema"]), _sentence(parameter)) for parameter in asked]
        return "\n\n".join(
            [
                f"### `{method} {path}`",
                self._say(_sentence(operation)),
                *([self._table("parameter", rows)] if rows else []),
                " ".join([*self._takes(operation), self._answers(operation), *self._refusals(operation)]),
            ]
        )

    def shape(self, name: str) -> str:
        """Return the section of one shape."""
        schema = self._schemas[name]
        required = schema.get("required", ()) if name.endswith("In") else ()
        rows = [
            (field, self._type(value) + (f", {self._say('required')}" if field in required else ""), _sentence(value))
            for field, value in schema["properties"].items()
        ]
        return "\n\n".join([f"### `{name}`", self._say(_sentence(schema)), self._table("field", rows)])

    def _table(self, first: str, rows: list[tuple[str, str, str]]) -> str:
        head = f"| {self._say(first)} | {self._say('type')} | {self._say('meaning')} |\n| --- | --- | --- |"
        lines = (f"| `{name}` | {kind} | {self._say(text).replace('|', _BAR)} |" for name, kind, text in rows)
        return "\n".join([head, *lines])

    def _takes(self, operation: Schema) -> Iterator[str]:
        if body := operation.get("requestBody"):
            yield self._say("Takes {}.").format(self._content(body) or self._say("the bytes"))

    def _answers(self, operation: Schema) -> str:
        answers = {status: answer for status, answer in operation["responses"].items() if status.startswith("2")}
        told = ", ".join(f"{status} {self._content(answer)}".strip() for status, answer in answers.items())
        return self._say("Answers {}.").format(told)

    def _refusals(self, operation: Schema) -> Iterator[str]:
        told = {
            status: answer["description"]
            for status, answer in operation["responses"].items()
            if status[0] in "45" and status not in _EVERYWHERE
        }
        if told:
            yield self._say("Says no with {}.").format("; ".join(f"{status} {codes}" for status, codes in told.items()))

    def _content(self, body: Schema) -> str:
        """Link what a request or an answer carries."""
        kinds = body.get("content", {})
        names = dict.fromkeys(_references(kinds))
        if not names and "text/event-stream" in kinds:
            return self._say("a stream")
        return " ".join(self._link(name) for name in names)

    def _type(self, schema: Schema) -> str:
        """Return the words for what a field holds."""
        if "$ref" in schema:
            return self._link(_references(schema)[0])
        if "enum" in schema or "const" in schema:
            return f" {_BAR} ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
        for several in ("anyOf", "oneOf", "allOf"):
            if several in schema:
                return f" {self._say('or')} ".join(dict.fromkeys(self._type(one) for one in schema[several]))
        return self._plain(schema)

    def _plain(self, schema: Schema) -> str:
        inner = schema.get("additionalProperties")
        if schema.get("type") == "array":
            return f"{self._say('list of')} {self._type(schema.get('items', {}))}"
        if schema.get("type") == "object" and isinstance(inner, dict):
            return f"{self._say('map to')} {self._type(inner)}"
        return self._say("time" if schema.get("format") == "date-time" else schema.get("type", "anything"))

    def _link(self, name: str) -> str:
        schema = self._schemas[name]
        return f"[`{name}`](#{name.lower()})" if "properties" in schema else self._type(schema)


def _references(piece: Any) -> list[str]:
    """Return the shapes that a piece of the contract refers to, in order."""
    return [found.rpartition("/")[2] for found in re.findall(r'"\$ref": "([^"]+)"', json.dumps(piece))]


def _sentence(piece: Schema) -> str:
    """Return what the contract says of something, on one line."""
    return " ".join(piece.get("description", "").split())


def _in_chinese(missing: set[str]) -> Translate:
    """Return the look-up of translations; what has none is added to `missing`."""
    known: dict[str, str] = json.loads((ROOT / "docs" / "zh" / "reference.json").read_text())

    def translate(text: str) -> str:
        if text and text not in known:
            missing.add(text)
        return known.get(text, text)

    return translate


def main(arguments: Sequence[str]) -> int:
    """Write or compare; 1 when a sentence has no translation, or a page is not what the contract says."""
    parser = argparse.ArgumentParser(prog="./dev manual", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    options = parser.parse_args(arguments)
    contract = json.loads((ROOT / "openapi" / "core-v1.json").read_text())
    missing = set[str]()
    found = []
    by_hand = []
    languages: dict[str, Translate] = {"en": str, "zh": _in_chinese(missing)}
    for language, translate in languages.items():
        file = ROOT / "docs" / language / "sandbox-deployment.md"
        before, mark, old = file.read_text().partition(_MARK)
        by_hand.append([len(level) for level in re.findall(r"(?m)^(#+) ", before)])
        new = page(contract, translate)
        if not options.check:
            file.write_text(before + _MARK + new)
        elif not mark or old != new:
            found.append(f"{file.relative_to(ROOT)} is not what the contract says: run ./dev manual and commit it.")
    found += [f"docs/zh/reference.json lacks: {json.dumps(text)}" for text in sorted(missing)]
    if by_hand[0] != by_hand[1]:
        found.append("the pages of docs/en and docs/zh differ in their headings above the mark.")
    sys.stdout.writelines(f"{problem}\n" for problem in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
