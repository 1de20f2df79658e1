"""docs/adding.md, followed to the letter in a copy of the repository."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import sample_runs as samples

from kernelviz.formats import encode

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "adding.md").read_text()
BLOCKS = [(kind, body) for kind, body in re.findall(r"```(\w+)\n(.*?)```", TEXT, re.DOTALL)]
COMMANDS = [line for kind, body in BLOCKS if kind == "console" for line in body.splitlines()]

PAGE = """
import os, sys
from pathlib import Path
import kernelviz
from streamlit.testing.v1 import AppTest
from kernelviz.ui.shared.site import pages_folder
test = AppTest.from_file(Path(kernelviz.__file__).parent / "ui" / "server" / "main.py", default_timeout=60)
test.query_params["op"] = "add"
test.run()
assert not test.exception, test.exception
options = test.button_group(key="variants").options
assert any(o.endswith("in two halves") for o in options), options  # behind its marker
test.query_params.clear()
test.switch_page(str(pages_folder() / "count.py")).run()
assert not test.exception, test.exception
print("pages shown:", [m.label for m in test.metric])
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository's sources with every example of the document written into them."""
    where = tmp_path_factory.mktemp("adding")
    for name in ("kernelviz", "pages"):
        shutil.copytree(ROOT / name, where / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "app.py", where)
    for kind, body in BLOCKS:
        if kind == "python":
            path = where / body.splitlines()[0].removeprefix("# ")
            assert not path.exists(), f"the document overwrites {path}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body.split("\n", 1)[1])
        elif kind == "diff":
            _apply(where, body)
    (where / "run.json").write_bytes(encode(samples.mixed()))
    return where


def _apply(where: Path, body: str) -> None:
    first, before, after = body.splitlines()
    path = where / first.removeprefix("# ")
    text = path.read_text()
    assert text.count(before[1:]) == 1, f"{before!r} is not in {path} once"
    path.write_text(text.replace(before[1:], f"{before[1:]}\n{after[1:]}"))


def _run(copy: Path, arguments: list[str], **environment: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(copy), "KERNELVIZ_HOME": str(copy / "home"), **environment}
    done = subprocess.run(arguments, cwd=copy, env=env, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith(("kernelviz ", "python "))])
def test_a_command_of_the_document_works(copy: Path, command: str) -> None:
    words = shlex.split(command)
    start = [sys.executable, "-m", "kernelviz"] if words[0] == "kernelviz" else [sys.executable]
    printed = _run(copy, [*start, *words[1:]])
    expected = {"in_two_halves": "--with", "torch_multiply": "negate", "variant\tsizes\ttime_s": "tsv"}
    for words_expected, mark in expected.items():
        assert mark not in command or words_expected in printed


def test_the_variant_and_the_page_are_seen_in_the_app(copy: Path) -> None:
    served = [c for c in COMMANDS if "streamlit" in c]
    assert len(served) == 1
    plugins = served[0].split("KERNELVIZ_PLUGINS=")[1].split()[0]
    assert "Runs kept here" in _run(copy, [sys.executable, "-c", PAGE], KERNELVIZ_PLUGINS=plugins)


def test_a_variant_takes_less_than_fifteen_lines() -> None:
    functions = re.split(r"\n\n\n(?=@variant)", next(b for k, b in BLOCKS if k == "python"))[1:]
    assert functions
    assert all(len(f.strip().splitlines()) < 15 for f in functions)


def test_the_examples_are_typed_and_tidy(copy: Path) -> None:
    files = [copy / b.splitlines()[0].removeprefix("# ") for k, b in BLOCKS if k == "python"][1:]
    _run(copy, [sys.executable, "-m", "ruff", "check", "--config", str(ROOT / "pyproject.toml"), *map(str, files)])
