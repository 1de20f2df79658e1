"""docs/fusion.md and docs/model.md: their sections are those of the runs that come with kernelviz."""

import re
import shlex
from pathlib import Path

import pytest

from kernelviz import bench as use_cases
from kernelviz.bench import fusion
from kernelviz.cli import main
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


SECTIONS = re.findall(
    r"<!-- model: made by `kernelviz (.*?)` -->\n(.*?)\n?<!-- /model -->",
    (ROOT / "docs" / "model.md").read_text(),
    re.DOTALL,
)


@pytest.mark.parametrize(("command", "written"), SECTIONS, ids=("prefill", "decode"))
def test_the_sections_of_models_are_printed_by_the_commands_that_they_name(
    command: str, written: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(shlex.split(command)) == 0
    assert capsys.readouterr().out.strip("\n") == written
