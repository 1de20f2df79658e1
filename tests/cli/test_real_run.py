"""The command line as a user has it: a real worker on the CPU, its own database, real processes for signals and `launch`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lasting_bench import LastingBench, lasting_bench

from kernelviz import bench as use_cases
from kernelviz.cli import main
from kernelviz.core.result import Failure, Timing
from kernelviz.formats import decode
from kernelviz.hardware.discovery import discover

pytestmark = pytest.mark.xdist_group("device")
COMMAND = [sys.executable, "-m", "kernelviz"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Use a separate store and separate lock files, so that no other run is changed or waited for."""
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    return os.environ | {
        "KERNELVIZ_HOME": str(tmp_path / "home"),
        "KERNELVIZ_RUNTIME_DIR": str(runtime),
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "CUDA_VISIBLE_DEVICES": "",
    }


def _kernelviz(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], env=environment, capture_output=True, text=True, timeout=240, check=False
    )


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LastingBench]:
    # Another set of plug-ins brings another worker: the tests that give none come first.
    made = lasting_bench(tmp_path_factory.mktemp("real_run"))
    yield made
    made.end()


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(bench: LastingBench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command in this process, with the worker of the one before. Returns its exit code, stdout and stderr."""
    monkeypatch.setattr(use_cases, "current", lambda: bench)
    return lambda *arguments: (main(arguments), *capsys.readouterr())


def test_a_sweep_on_the_cpu_prints_one_valid_document(command: Command) -> None:
    sweep = ["run", "add", "--sweep", "n=2^10..2^18", "--variants", "torch_eager", "--budget-s", "0.02"]
    code, out, err = command(*sweep, "--device", "cpu", "--json")
    assert code == 0, err
    run = decode(out)
    assert run.status == "finished"
    assert [r.problem.sizes["n"] for r in run.results] == [2**p for p in range(10, 19)]
    for result in run.results:
        assert isinstance(result.outcome, Timing)
        assert result.outcome.device_cold_s is not None
        assert result.outcome.device_cold_s.estimate > 0
        assert result.accuracy is not None
        assert result.accuracy.passed
    assert err.count("/9 add fp32") == 9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "addd"], "did you mean 'add'?"),
        (["run", "add", "--with", "no_such.py"], "no_such.py"),
        (["run", "add", "--size", "n=2^44", "--device", "cpu"], "GiB"),
        (["run", "add", "--variants", "triton_block", "--size", "n=64", "--device", "cpu"], "needs CUDA"),
    ],
)
def test_what_cannot_be_tried_is_exit_2(command: Command, arguments: list[str], message: str) -> None:
    code, out, err = command(*arguments)
    assert code == 2, out + err
    assert message in out + err
    assert "Traceback" not in err


def test_ones_own_kernel_beside_the_others(command: Command, tmp_path: Path) -> None:
    own = tmp_path / "mine.py"
    own.write_text(
        "import torch\n"
        "from kernelviz.ops import variant\n\n"
        "@variant(op='add', backend='torch')\n"
        "def mine(x, y):\n"
        "    '''The sum, by subtraction of the negative.'''\n"
        "    out = torch.empty_like(x)\n"
        "    return lambda: torch.sub(x, y, alpha=-1, out=out)\n\n"
        "@variant(op='add', backend='torch')\n"
        "def mistaken(x, y):\n"
        "    '''The difference.'''\n"
        "    out = torch.empty_like(x)\n"
        "    return lambda: torch.sub(x, y, out=out)\n"
    )
    arguments = ["run", "add", "--size", "n=4096", "--with", str(own), "--variants", "torch_eager,mine,mistaken"]
    code, out, err = command(*arguments, "--device", "cpu", "--budget-s", "0.02", "--json")
    assert code == 1, err
    outcomes = {r.variant: r.outcome for r in decode(out).results}
    assert isinstance(outcomes["torch_eager"], Timing)
    assert isinstance(outcomes["mine"], Timing)
    assert isinstance(outcomes["mistaken"], Failure)
    assert outcomes["mistaken"].stage == "wrong"


def test_ctrl_c_ends_the_run_and_keeps_its_results(environment: dict[str, str], tmp_path: Path) -> None:
    saved = tmp_path / "run.json"
    arguments = ["run", "add", "--sweep", "n=1024..65536:1024", "--variants", "torch_eager", "--device", "cpu"]
    running = subprocess.Popen(
        # A shell's jobs in the background ignore this signal, and so would what they start.
        ["env", "--default-signal=INT", *COMMAND, *arguments, "--save", str(saved)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert running.stderr is not None
        for line in running.stderr:
            if "/64 add fp32" in line:
                break
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 1, err
    assert "cancelling after the current block" in err
    run = decode(saved.read_bytes())
    assert run.status == "cancelled"
    assert isinstance(run.results[0].outcome, Timing)
    assert isinstance(run.results[-1].outcome, Failure)
    assert run.results[-1].outcome.stage == "cancelled"
    assert f"run {run.id}" in out


def test_launch_calls_one_variant_with_no_tracer(environment: dict[str, str]) -> None:
    arguments = ["launch", "add", "--variants", "torch_eager", "--size", "n=4096", "--device", "cpu", "-n", "3"]
    done = _kernelviz(environment, *arguments)
    assert done.returncode == 0, done.stderr
    assert "called 3 times: add fp32 n=2^12, torch_eager" in done.stderr


def test_device_is_the_one_that_is_measured(environment: dict[str, str]) -> None:
    done = _kernelviz(environment, "device", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [d["uuid"] for d in told["devices"]] == [discover()[-1].uuid]
    assert told["database"].startswith(environment["KERNELVIZ_HOME"])
