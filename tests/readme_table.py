"""Write the tables of ops in docs/ops.md, of their families in README.md, and of workloads in docs/workloads.md anew:
`python tests/readme_table.py`."""

from __future__ import annotations

import re
from pathlib import Path

from kernelviz.cli.ops import by_family, markdown
from kernelviz.core.workload import Workload
from kernelviz.ops import catalogue
from kernelviz.workloads import catalog

ROOT = Path(__file__).parents[1]
MARKED = re.compile(r"(<!-- (ops|families|workloads): .*? -->\n)(.*?)(<!-- /\2 -->)", re.DOTALL)


def families() -> str:
    """One line for each family of ops, with the names of its ops."""
    lines = [
        f"| {family} | {', '.join(f'`{op.name}`' for op in ops)} |" for family, ops in by_family(catalogue()).items()
    ]
    return "\n".join(("| family | ops |", "|---|---|", *lines))


WHEN = {"always": "", "cpu": "On a processor: ", "cuda": "On a GPU: "}
BETTER = {"lower": "less", "higher": "more", "neither": "–"}
UNITS = {"number": "–", "x": "factor"}
"""Units of figures that have no symbol; the others are written as they are on the wire."""


def workloads() -> str:
    """A section for each workload: what it is, its variants, its figures with unit and method, and what it cannot say."""
    return "\n\n".join(_workload(one.workload) for one in catalog.workloads().values())


def _workload(workload: Workload) -> str:
    variants = [f"| `{v.name}` | {v.caption} | {v.idea} | {', '.join(v.needs) or '–'} |" for v in workload.variants]
    figures = [
        f"| {f.title}{' (headline)' if f.headline else ''} | `{f.name}` | {UNITS.get(f.unit, f.unit)} | {BETTER[f.better]} | "
        f"{f.origin} | {f.help} |"
        for f in workload.figures
    ]
    presets = [f"- `{p.name}` ({', '.join(p.device_kinds)}): {p.title}" for p in workload.presets]
    return "\n".join(
        (
            f"### {workload.title} (`{workload.name}`)\n\n{workload.summary}\n",
            f"The baseline is `{workload.baseline}`. Presets:\n",
            *presets,
            "\n| variant | what it is | idea | needs |\n|---|---|---|---|",
            *variants,
            "\n| figure | name | unit | better | origin | what it is |\n|---|---|---|---|---|---|",
            *figures,
            "\nWhat it cannot say:\n",
            *(f"- {WHEN[limit.when]}{limit.text}" for limit in workload.limits),
        )
    )


def with_tables(text: str) -> str:
    """A document with the tables of the ops that there are now."""
    made = {"ops": lambda: markdown(catalogue()), "families": families, "workloads": workloads}
    return MARKED.sub(lambda found: f"{found[1]}{made[found[2]]()}\n{found[4]}", text)


if __name__ == "__main__":
    for page in (ROOT / "README.md", *(ROOT / "docs" / name for name in ("ops.md", "workloads.md"))):
        page.write_text(with_tables(page.read_text()))
