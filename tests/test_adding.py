"""docs/adding.md, followed to the letter in a copy of the repository."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import sample_runs as samples

from kernelviz.formats import encode

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "adding.md").read_text()
Blocks = list[tuple[str, str]]


def _blocks(text: str) -> Blocks:
    return re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL)


BLOCKS = _blocks(TEXT)
SECTIONS = {title: _blocks(text) for title, text in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", TEXT, re.M | re.DOTALL)}
COMMANDS = [line for kind, body in BLOCKS if kind == "console" for line in body.splitlines()]
STARTED = [line for line in COMMANDS if line.startswith(("kernelviz ", "python "))]

# Every command closes its bench. Here it stays open until the last one, so that commands with the same plug-ins share a worker,
# and each figure of a case is measured for 20 ms.
DRIVER = """
import contextlib, io, json, runpy, shlex, sys
from kernelviz.bench import Bench, current
from kernelviz.cli import main, run

close, Bench.close = Bench.close, lambda bench: None
chosen = run.chosen_method
run.chosen_method = lambda budget_s, *others, **named: chosen(0.02, *others, **named)
printed = {}
for command in json.load(sys.stdin):
    words, out = shlex.split(command), io.StringIO()
    with contextlib.redirect_stdout(out):
        if words[0] == "kernelviz":
            code = main(words[1:])
        elif words[1] == "-c":
            exec(words[2], {})
            code = 0
        else:
            runpy.run_path(words[1], run_name="__main__")
            code = 0
    printed[command] = (code, out.getvalue())
close(current())
json.dump(printed, sys.stdout)
"""
FOUND = """
import sys
sys.path[:0] = [f"{sys.argv[1]}/tests", f"{sys.argv[1]}/tests/plots", "tests/ops"]
import sample_runs as samples
from charts import charts, drawn
from sizes import ODD
import kernelviz.plots
assert kernelviz.__file__.startswith(sys.argv[2]), kernelviz.__file__
chart = charts()["preparation_by_variant"]
for runs in ((), (samples.run([]),), (samples.mixed(),)):
    for figure in drawn(chart, runs):
        assert figure.data or figure.layout.annotations[0].text
assert ODD["negate"][-1] == {"n": 4099}
from kernelviz.api import Report
assert list(Report.of(samples.mixed()).to_frame())[-1] == "blocks"
from kernelviz.core.backends import BACKENDS
from kernelviz.hardware.toolchain import no_package
assert no_package(BACKENDS["tilelang"]).data["package"] == "TileLang"
from kernelviz.ops import op_named
digests = [v.source_digest() for v in op_named("negate").variants]
assert len(set(digests)) == 3
from kernelviz.workloads.catalog import workloads
assert "saving" in workloads()
assert "torch" not in sys.modules

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
    for name in ("kernelviz", "pages", "tests/ops/sizes"):
        # With what is compiled, which is as valid there; a name with another dot is a file that is being written.
        shutil.copytree(ROOT / name, where / name, ignore=shutil.ignore_patterns("*.pyc.*"))
    for name in ("app.py", "README.md", "docs/ops.md", "docs/workloads.md", "tests/readme_table.py"):
        (where / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, where / name)
    for kind, body in BLOCKS:
        if kind == "python":
            path = where / _file(body)
            assert not path.exists(), f"the document overwrites {path}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body.split("\n", 1)[1])
        elif kind == "diff":
            _apply(where, body)
    (where / "run.json").write_bytes(encode(samples.mixed()))
    (where / "times.txt").write_text("# stopwatch\nmine\t1024\t2.5e-6\nmine\t2048\t4e-6\n")
    return where


def _file(body: str) -> str:
    return body.splitlines()[0].removeprefix("# ")


def _apply(where: Path, body: str) -> None:
    lines = body.splitlines()[1:]
    before, after = (
        "\n".join(line[1:] for line in lines if line[:1] in marks) for marks in ((" ", ""), (" ", "", "+"))
    )
    path = where / _file(body)
    text = path.read_text()
    assert text.count(before) == 1, f"{before!r} is not in {path} once"
    path.write_text(text.replace(before, after))


def _run(copy: Path, *arguments: str, given: str = "", **environment: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(copy), "KERNELVIZ_HOME": str(copy / "home"), **environment}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=copy,
        env=env,
        input=given,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def printed(copy: Path) -> dict[str, tuple[int, str]]:
    """What each command of the document printed, and its exit code. All run in one process, each case for a short time."""
    found: dict[str, tuple[int, str]] = json.loads(_run(copy, "-c", DRIVER, given=json.dumps(STARTED)))
    return found


@pytest.mark.xdist_group("adding")
@pytest.mark.parametrize("command", STARTED)
def test_a_command_of_the_document_works(printed: dict[str, tuple[int, str]], command: str) -> None:
    code, shown = printed[command]
    assert code == 0, shown
    expected = {
        "kernelviz run add --with": "in_two_halves",
        "kernelviz run negate --sweep": "torch_multiply",
        "kernelviz run negate --size": "torch_subtract",
        "kernelviz ops": "negate",
        "kernelviz workloads run saving": "torch_save *",
        "kernelviz export": "variant\tsizes\ttime_s",
        "kernelviz import": "stopwatch",
        "python -c": "1",
        "python tests/readme_table.py": "",
    }
    (words,) = [words for start, words in expected.items() if command.startswith(start)]
    assert words in shown


@pytest.mark.xdist_group("adding")
def test_the_tables_of_ops_have_the_new_op(copy: Path, printed: dict[str, tuple[int, str]]) -> None:
    assert printed
    for page, new_lines in (("README.md", 0), ("docs/ops.md", 1)):
        lines = (copy / page).read_text().splitlines()
        assert sum("`negate`" in line for line in lines) == 1
        assert len(lines) == len((ROOT / page).read_text().splitlines()) + new_lines


@pytest.mark.xdist_group("adding")
def test_the_tables_of_workloads_have_the_new_workload(copy: Path, printed: dict[str, tuple[int, str]]) -> None:
    assert printed
    assert "### Saving weights (`saving`)" in (copy / "docs" / "workloads.md").read_text().splitlines()


@pytest.mark.xdist_group("adding")
def test_what_was_added_is_found_by_the_tests_and_seen_in_the_app(copy: Path) -> None:
    served = [c for c in COMMANDS if "streamlit" in c]
    assert len(served) == 1
    plugins = served[0].split("KERNELVIZ_PLUGINS=")[1].split()[0]
    assert "Runs kept here" in _run(copy, "-c", FOUND, str(ROOT), str(copy), KERNELVIZ_PLUGINS=plugins)


def test_each_example_touches_as_many_files_as_the_table_says() -> None:
    rows = dict(re.findall(r"^\| (An? .*?) \| (.*?) \|$", TEXT, re.M))
    assert rows.keys() == SECTIONS.keys()
    for title, told in rows.items():
        files = {_file(body) for kind, body in SECTIONS[title] if kind in ("python", "diff")}
        sizes = {file for file in files if file.startswith("tests/ops/sizes/")}
        assert (len(sizes) == 1) == ("test sizes" in told)
        counted = {str(Path(file).parent) for file in files} if "folder" in told else files - sizes
        assert len(counted) == int(told[0]), title


def test_a_variant_takes_less_than_fifteen_lines() -> None:
    functions = re.split(r"\n\n\n(?=@variant)", next(b for k, b in BLOCKS if k == "python"))[1:]
    assert functions
    assert all(len(f.strip().splitlines()) < 15 for f in functions)


def test_the_examples_are_typed_and_tidy(copy: Path) -> None:
    files = [str(copy / _file(body)) for kind, body in BLOCKS if kind == "python"][1:]
    config = ("--config", str(ROOT / "pyproject.toml"))
    _run(copy, "-m", "ruff", "check", *config, *files)
    _run(copy, "-m", "ruff", "format", "--check", *config, *files)
