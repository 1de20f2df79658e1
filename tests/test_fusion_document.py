"""docs/fusion.md: its section is that of the runs that it names."""

import re
from pathlib import Path

from kernelviz import bench as use_cases
from kernelviz.bench import fusion
from kernelviz.text.fusion_markdown import markdown

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "fusion.md").read_text()


def test_the_section_is_made_of_the_runs_that_it_names() -> None:
    ((sources, written),) = re.findall(
        r"<!-- fusion: made by `kernelviz fusion (.*?) --markdown` -->\n(.*?)\n?<!-- /fusion -->", PAGE, re.DOTALL
    )
    bench = use_cases.current()
    paths = [str(path) for source in sources.split() for path in sorted(ROOT.glob(source)) or [source]]
    rows = fusion.rows_of_sources(bench, paths)
    assert rows
    assert written == markdown(rows, fusion.payoffs_of(bench, rows)), (
        f"write it again with `kernelviz fusion {sources} --markdown`"
    )
