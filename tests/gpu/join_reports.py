"""Join the reports of parts of the GPU suite that ran at different times on one kind of card.

    python tests/gpu/join_reports.py gpu-reports/*.json                          into the card's report in docs/
    python tests/gpu/join_reports.py gpu-reports/*.json --figures docs/gpu-figures.json

Ends with 1 when a test failed or a part is incomplete, with 2 when the reports do not belong together.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from part_report import JoinError, PartReport, join, report_file, suite, write, write_figures
from parts import PARTS, TOTAL_LIMIT_S


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", type=Path, metavar="PART.json")
    parser.add_argument(
        "--report", type=Path, help="the file to write (default: docs/gpu-report.json, or docs/gpu-report-CARD.json)"
    )
    parser.add_argument("--figures", type=Path, help="put the figures into this file, too")
    asked = parser.parse_args(arguments)
    try:
        joined = join({str(file): PartReport.read(file) for file in asked.reports})
        file = asked.report or report_file(joined.environment["device"])
        write(joined, file, suite())
        if asked.figures is not None:
            write_figures(joined, asked.figures)
    except JoinError as error:
        print(f"join_reports: {error}", file=sys.stderr)  # noqa: T201
        return 2
    bad = False
    for name in PARTS:
        part = joined.parts.get(name)
        if part is None:
            print(f"{name}: not among these reports")  # noqa: T201
            continue
        counts = Counter(test["outcome"] for test in part["tests"].values())
        early = "" if part["ended"] else ", ended early"
        print(f"{name}: {dict(counts)}, {part['seconds']:.0f} s{early}")  # noqa: T201
        bad = bad or bool(counts["failed"] + counts["unfinished"]) or not part["ended"]
    total_s = sum(part["seconds"] for part in joined.parts.values())
    limit = f"all parts: at most {TOTAL_LIMIT_S} s"
    print(f"{len(joined.parts)} of {len(PARTS)} parts, {total_s:.0f} s ({limit}); written to {file}")  # noqa: T201
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
