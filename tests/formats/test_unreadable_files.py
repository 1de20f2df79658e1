"""Whoever writes a file that is larger than what kernelviz reads of its format is told: by the command, in Python, on pages."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import sample_runs as samples
from streamlit.testing.v1 import AppTest

from kernelviz import formats
from kernelviz.api import Report
from kernelviz.cli import main

RUN = samples.run(samples.run().results[:5])
LIMIT_BYTES = 1_000


@pytest.fixture
def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    low = {n: replace(one, most_bytes=LIMIT_BYTES) if n == "nvbench" else one for n, one in formats.imports().items()}
    monkeypatch.setattr(formats, "imports", lambda: low)


def test_a_warning_names_the_size_the_limit_and_the_remedy() -> None:
    assert formats.describe_unreadable("json", formats.MAX_BYTES) == ""
    assert formats.describe_unreadable("json", 331_000_000) == (
        "the file has 331 MB, and kernelviz reads kernelviz JSON of at most 168 MB: it cannot be imported again. Export fewer "
        "variants or sizes, or Parquet, which is several times smaller"
    )
    assert "Parquet" not in formats.describe_unreadable("gbench", 331_000_000)
    assert formats.describe_unreadable("md", 331_000_000) == ""


def test_command_and_python_warn(low_limit: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "run.json"
    source.write_bytes(formats.encode(RUN))
    assert main(["export", str(source), "-o", str(tmp_path / "again.nvbench.json")]) == 0
    assert (tmp_path / "again.nvbench.json").exists()
    said = " ".join(capsys.readouterr().err.split())
    assert "it cannot be imported again. Export fewer variants or sizes" in said
    assert "--variants" in said
    with pytest.warns(UserWarning, match="it cannot be imported again"):
        Report.of(RUN).save(tmp_path / "report.nvbench.json")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Report.of(RUN).save(tmp_path / "report.csv")


def _page() -> None:
    from functools import partial

    from kernelviz.formats import describe_unreadable
    from kernelviz.ui.shared import download_button

    download_button.button(
        lambda: b"x" * 2_000, "run.json", "application/json", choice=1, key="save", icon=":material/save:",
        warning=partial(describe_unreadable, "nvbench"),
    )  # fmt: skip


def test_a_page_warns_below_its_button(low_limit: None) -> None:
    page = AppTest.from_function(_page).run()
    assert not page.warning
    page = page.button(key="save").click().run()
    assert not page.exception
    assert ["it cannot be imported again" in one.value for one in page.warning] == [True]
