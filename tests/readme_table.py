"""Write the tables of ops in docs/ops.md and of their families in README.md anew: `python tests/readme_table.py`."""

from __future__ import annotations

import re
from pathlib import Path

from kernelviz.cli.ops import by_family, markdown
from kernelviz.ops import catalogue

ROOT = Path(__file__).parents[1]
MARKED = re.compile(r"(<!-- (ops|families): .*? -->\n)(.*?)(<!-- /\2 -->)", re.DOTALL)


def families() -> str:
    """One line for each family of ops, with the names of its ops."""
    lines = [
        f"| {family} | {', '.join(f'`{op.name}`' for op in ops)} |" for family, ops in by_family(catalogue()).items()
    ]
    return "\n".join(("| family | ops |", "|---|---|", *lines))


def with_tables(text: str) -> str:
    """A document with the tables of the ops that there are now."""
    made = {"ops": lambda: markdown(catalogue()), "families": families}
    return MARKED.sub(lambda found: f"{found[1]}{made[found[2]]()}\n{found[4]}", text)


if __name__ == "__main__":
    for page in (ROOT / "README.md", ROOT / "docs" / "ops.md"):
        page.write_text(with_tables(page.read_text()))
