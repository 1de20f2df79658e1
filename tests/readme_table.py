"""Write the table of ops in README.md anew: `python tests/readme_table.py`."""

from __future__ import annotations

import re
from pathlib import Path

from kernelviz.cli.ops import markdown
from kernelviz.ops import catalogue

README = Path(__file__).parents[1] / "README.md"
TABLE = re.compile(r"(<!-- ops: .*? -->\n)(.*?)(\n<!-- /ops -->)", re.DOTALL)


def with_table(readme: str) -> str:
    """The README with the table of the ops that there are now."""
    return TABLE.sub(lambda found: f"{found[1]}{markdown(catalogue())}{found[3]}", readme)


if __name__ == "__main__":
    README.write_text(with_table(README.read_text()))
