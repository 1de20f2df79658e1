"""Every command in README.md and docs/ works, and its output has what the comment beside it promises."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import msgspec
import pytest
import rehearsed_bench as rehearsed
import sample_figures as figures
import sample_runs as samples

from kernelviz import bench as use_cases
from kernelviz.cli import main
from kernelviz.core.problem import Case
from kernelviz.core.result import Result, Timing
from kernelviz.core.run import Device
from kernelviz.formats import decode

ROOT = Path(__file__).parents[1]
ELSEWHERE = {"adding.md": "tests/test_adding.py runs each of its commands"}


def _commands() -> dict[str, str]:
    """The lines of every console block that call kernelviz, with the comment beside each."""
    found = {}
    for file in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        if file.name in ELSEWHERE:
            continue
        for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", file.read_text(), re.MULTILINE | re.DOTALL):
            for line in block.splitlines() if language in ("", "console") else ():
                command, _, comment = line.partition(" #")
                if command.startswith("kernelviz "):
                    found[command.strip()] = comment.strip(" #")
    return found


COMMANDS = _commands()
PROMISES: dict[str, tuple[str, ...]] = {
    "kernelviz ops": ("rmsnorm", "triton_persistent", r"on cuda:0", "✓"),
    "kernelviz run rmsnorm": ("1,024", "16,384", "triton_persistent"),
    "kernelviz run add --sweep": (),  # a document, decoded below
    "kernelviz run matmul --clock sustained": (
        "Energy per call", r"\b21\.\d+ mJ", "Device cold", "Device warm",
        "call eager, call by graph, loop: not measured under sustained load",
    ),
    "kernelviz run add --size n=100000000 --naive": (r"naive: .* for the first call \(.*× our device cold\)", "Binding"),
    "kernelviz checklist h200-add": ("Launch cost", "✓ 1 kernel", "✕ ", "Passed from 80 %"),
    "kernelviz device --sheets": ("● cuda:0", "NVIDIA H100 NVL", "hopper"),
    "kernelviz run matmul --data zeros": ("zeros data", "sustained load, 10 s before each time", "Of issue rate"),
    "kernelviz inspect softmax": (r"x_MN +input", r"y_MN +output", r"\|Error\|"),
    "kernelviz device --calibrate": ("measured roof", "copy"),
    "kernelviz roofline": ("Share of roof", "Limiter", "bandwidth-limited", "h200-matmul"),
    "kernelviz fusion h200-linear_gelu": ("1.28 ×", "faster", "−5 %"),
    "kernelviz ladder matmul --run h200-matmul --backend": ("13 rungs from 4.13 to 797 TFLOP/s", "published: 1.22×"),
    "kernelviz ladder matmul --output": ("<!doctype html>", "rung-cuda-8"),
    "kernelviz ladder matmul --run h200-matmul --output": ("<!doctype html>", "rung-cuda-8"),
    "kernelviz workloads": ("Training step by precision", "all_reduce", "mechanics only"),
    "kernelviz workloads runs": (),  # none is stored in a new home
    "kernelviz model llama-3-8b": ("output projection", "residual add of attention", "torch.compile"),
    "kernelviz model llama-3-8b --phase decode": ("All parts, measured one by one, take", "the unexplained rest is"),
    "kernelviz model llama-3-8b --markdown": ("## Llama-3-8B, prefill, 1 sequence of 4,096 tokens, bf16", "Op by op"),
    "kernelviz claims": ("✓ holds", "✕ does not hold", "Published"),
    "kernelviz compare h200-add": ("only torch_eager", "only triton_block", "faster", "same"),
    "kernelviz library-comparison --card": (r"softmax bf16", "cuda_columns", "auto / best own"),
    "kernelviz best": ("gluon_warp_specialised",),
    "kernelviz library-comparison": ("own", "eager", "compile", "Liger", "of the roof"),
    "kernelviz import docs/h200-ladders": (),
    "kernelviz run softmax --preset": ("liger", "triton_persistent", "131,072"),
    "kernelviz tunings": (),
    "kernelviz gallery": ("h200-add", "h200-softmax", "is fastest"),
    "kernelviz runs card": ("<svg", "softmax", "triton persistent", "H200"),
}  # fmt: skip
"""What the output of each command contains, as patterns."""
ON_A_DEVICE = (
    "code",
    "--code",
    "compile",
    "counters",
    "launch",
    "record",
    "regress",
    "selftest",
    "trends",
    "tune",
    "--watch",
    "--with",
    "--measure",
    "RUN",
)
"""Commands that need a device, an earlier run, or do not end; tests/cli runs them on planted runs and devices. Here, their
options have to exist."""
MEASURES_ALL = ("kernelviz claims run", "kernelviz workloads run ")
"""The same holds for these; tests/bench/test_claims.py and tests/cli/test_workloads_command.py run them."""
OF_A_GROUP = ("recordings", "tunings", "workloads")
ON_THE_NETWORK = ("kernelviz recordings fetch",)
"""tests/bench/test_further_recordings.py runs it, against a server of its own."""
SLOW = ("kernelviz import docs/h200-ladders", "kernelviz library-comparison docs/h200-ladders.jsonl.gz --markdown")
"""tests/test_kernels_page.py reads all runs of this file, and compares the table."""


class CompleteBench(rehearsed.RehearsedBench):
    """Plays each case with every figure that the method asks for, as a GPU gives them: 21 mJ a call, and under sustained load no
    time by the host."""

    def _result(self, case: Case, share: float, device: Device, *, again: bool) -> Result:
        made = figures.complete(samples.timed(case.problem, case.variant, share, device=device, again=again))
        assert isinstance(made.outcome, Timing)
        return msgspec.structs.replace(made, outcome=figures.as_asked(made.outcome, self.method))


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CompleteBench:
    monkeypatch.setenv("KERNELVIZ_HOME", str(tmp_path))
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(tmp_path)  # where a command writes its file
    made = CompleteBench((samples.H200, samples.CPU), roofs=samples.H200_ROOFS)
    monkeypatch.setattr(use_cases, "current", lambda: made)
    return made


@pytest.mark.parametrize("command", COMMANDS)
def test_an_example_does_what_its_comment_says(
    bench: CompleteBench, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    arguments = shlex.split(command.partition(" > ")[0])[1:]
    if command.startswith(SLOW):
        assert (ROOT / arguments[1]).is_file()
        return
    if any(word in arguments for word in ON_A_DEVICE) or command.startswith((*MEASURES_ALL, *ON_THE_NETWORK)):
        names = arguments[:2] if arguments[0] in OF_A_GROUP else arguments[:1]  # a command, or one of a group
        assert main([*names, "--help"]) == 0
        shown = capsys.readouterr().out
        assert all(word in shown for word in arguments if word.startswith("-"))
        return
    assert main(arguments) == 0, command
    printed = capsys.readouterr()
    out = printed.out
    if "--output" in arguments:
        out += Path(arguments[arguments.index("--output") + 1]).read_text()
    patterns = PROMISES[max((start for start in PROMISES if command.startswith(start)), key=len)]
    assert [pattern for pattern in patterns if not re.search(pattern, out)] == [], out
    if "--json" in arguments:
        assert len(decode(printed.out).results) == len(decode(printed.out).plan.cases())
        assert printed.err


def test_every_comment_has_a_check() -> None:
    assert len(COMMANDS) >= 10
    unchecked = [
        command
        for command, comment in COMMANDS.items()
        if comment
        and not command.startswith(tuple(PROMISES))
        and not any(word in command.split() for word in ON_A_DEVICE)
        and not command.startswith(ON_THE_NETWORK)
    ]
    assert unchecked == []
