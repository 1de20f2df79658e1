"""What becomes of output that cannot be written: a full disk, a closed stream, an encoding without the character, Ctrl-C."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import rehearsed_bench as rehearsed
import sample_runs as samples

from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.cli import console, main
from kernelviz.formats import document
from kernelviz.store import Store

FULL = Path("/dev/full")
full_disk = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return os.environ | {"KERNELVIZ_HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}


@full_disk
def test_a_full_disk_is_one_line_and_exit_code_2(environment: dict[str, str]) -> None:
    environment.pop("PYTHONUNBUFFERED", None)
    with FULL.open("wb") as full:
        command = [sys.executable, "-m", "kernelviz", "runs", "--shipped"]
        done = subprocess.run(command, env=environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "kernelviz: cannot write: No space left on device\n")


def test_closed_streams_discard(environment: dict[str, str]) -> None:
    command = f"'{sys.executable}' -m kernelviz runs --shipped >&-"
    done = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


class Stdout(io.TextIOWrapper):
    """A terminal of that encoding."""

    def __init__(self, encoding: str) -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding=encoding, write_through=True)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(Store.open(tmp_path / "store"), (samples.CPU,))
    monkeypatch.setattr(use_cases, "current", lambda: made)
    return made


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_no_character_is_too_much_and_documents_stay_utf_8(
    bench: Bench, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.history.add(samples.run(id="r1", title="größer → 𝜋"))
    for arguments in (["runs"], ["runs", "show", "r1"], ["ops"]):
        monkeypatch.setattr(sys, "stdout", Stdout(encoding))
        assert main(arguments) == 0
    for arguments in (["export", "r1"], ["runs", "show", "r1", "--json"]):
        monkeypatch.setattr(sys, "stdout", out := Stdout(encoding))
        assert main(arguments) == 0
        assert document.decode(out.bytes.getvalue()).title == "größer → 𝜋"
    monkeypatch.setattr(sys, "stdout", out := Stdout(encoding))
    assert main(["runs", "--json"]) == 0
    assert "größer → 𝜋" in out.bytes.getvalue().decode()


def test_a_stream_that_takes_a_part_gets_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(io.RawIOBase):
        def __init__(self) -> None:
            self.got = b""

        def writable(self) -> bool:
            return True

        def write(self, data: object) -> int:
            self.got += bytes(data)[:3]  # type: ignore[call-overload]
            return min(3, len(memoryview(data)))  # type: ignore[arg-type]

    slow = Slow()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(slow, write_through=True))  # type: ignore[type-var]
    console.write(b"0123456789")
    assert slow.got == b"0123456789"


def test_a_text_stream_without_bytes_gets_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", out := io.StringIO())
    console.write("é".encode())
    assert out.getvalue() == "é"


@full_disk
def test_the_table_is_printed_before_a_file_that_takes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = rehearsed.RehearsedBench((samples.CPU,))
    monkeypatch.setattr(use_cases, "current", lambda: bench)
    assert main(["run", "add", "--size", "n=64", "--variants", "torch_eager", "--save", str(FULL)]) == 2
    printed = capsys.readouterr()
    assert " ± " in printed.out
    assert "--save: '/dev/full' cannot be used; it cannot be written (No space left on device)" in printed.err
    assert f"`kernelviz export {bench.runs()[0].id} -o FILE`" in printed.err


def test_what_a_title_holds_does_not_steer_the_terminal(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.history.add(samples.run(id="r1", title="\x1b]0;owned\x07\x1b[31mred"))
    for arguments in (
        ["runs"],
        ["compare", "r1", "r1", "--variant-a", "torch_eager", "--variant-b", "triton_persistent"],
    ):
        main(arguments)
        printed = capsys.readouterr()
        assert "[31mred" in printed.out
        assert "\x1b" not in printed.out + printed.err
    assert main(["run", "\x1b[2J"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_ctrl_c_while_the_commands_are_imported(environment: dict[str, str]) -> None:
    code = (
        "import signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'kernelviz.cli.commands':\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from kernelviz.cli import main\n"
        "sys.exit(main(['ops']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (128 + signal.SIGINT, "")
