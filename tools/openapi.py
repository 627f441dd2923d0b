"""./dev openapi: write openapi/core-v1.json from the code; --check only compares."""

import argparse
import sys
from pathlib import Path

from sandbay.api.contract import text

FILE = Path(__file__).resolve().parent.parent / "openapi" / "core-v1.json"


def main() -> int:
    """Write or compare; 1 when the committed file is not what the code says."""
    parser = argparse.ArgumentParser(prog="./dev openapi", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    options = parser.parse_args()
    wanted = text()
    if not options.check:
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text(wanted)
        print(f"Wrote {FILE.relative_to(FILE.parent.parent)}.")
        return 0
    if FILE.exists() and FILE.read_text() == wanted:
        return 0
    print("openapi/core-v1.json is not what the code says: run ./dev openapi and commit it.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
