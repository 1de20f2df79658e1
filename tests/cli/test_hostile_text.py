"""No text of a document controls the terminal: every command that reads runs prints it without escapes."""

from __future__ import annotations

import json
import unicodedata

import hostile_documents as hostile
import pytest
import sample_runs as samples
from rich import progress

from kernelviz.bench import Bench
from kernelviz.cli import console, main

TEXT = "\x1b]0;owned\x07\x1b[31m\x9b31m\u202ered\u2028x"
"""A window title by OSC, colours by ESC and by C1, reversed text, and a line separator."""
COMMANDS = (
    ["runs"],
    ["runs", "--json"],
    ["runs", "show", "{id}"],
    ["roofline", "{id}"],
    ["roofline", "{id}", "--json"],
    ["compare", "{id}", "{other}"],
    ["compare", "{id}", "{other}", "--json"],
    ["regress", "{id}"],
    ["trends"],
    ["ladders", "{id}"],
    ["library-comparison", "{id}", "--json"],
    ["library-comparison", "{id}", "--markdown"],
)


def test_no_text_of_a_document_controls_the_terminal(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    content = hostile.hostile(TEXT)
    attacked = {field[-1] for field in hostile.fields_with(TEXT, content)}
    assert attacked >= {"title", "note", "host", "driver", "op", "dtype", "variant", "message", "created_at"}
    # The second run is of this machine's device, so that its trends are shown.
    second = json.loads(content)
    second["environment"]["device"]["uuid"] = samples.CPU.uuid
    first, other = (bench.history.take_in_all(one)[0] for one in (content, json.dumps(second).encode()))
    for command in COMMANDS:
        main([part.format(id=first, other=other) for part in command])
        printed = capsys.readouterr()
        assert "31m" in printed.out + printed.err, (command, "the texts were not printed at all")
        for name, text in (("stdout", printed.out), ("stderr", printed.err)):
            steering = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs")} - {"\n"}
            assert not steering, (command, name, steering)


def test_no_text_of_a_cache_of_kernel_tuner_controls_the_terminal(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = {"1": {"b": TEXT, "time": 1.0}, "2": {"b": 2, "time": "RuntimeFailedConfig", "error": TEXT}}
    head = {"device_name": TEXT, "kernel_name": TEXT, "tune_params_keys": ["b"], "tune_params": {"b": [TEXT, 2]}}
    (run_id,) = bench.history.take_in_all(json.dumps({**head, "cache": entries}).encode())
    for command in (["runs", "show", run_id], ["tunings", "show", run_id], ["tunings", "show", run_id, "--json"]):
        main(command)
        printed = capsys.readouterr()
        assert "31m" in printed.out, command
        assert not {c for c in printed.out if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs")} - {"\n"}, (
            command
        )


def test_what_waits_for_the_device_says_the_note_of_another_program_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.Progress(progress.TextColumn("{task.description}"), console=console.err()) as bar:
        bar.add_task(TEXT)
    printed = capsys.readouterr().err
    assert "31m" in printed
    assert not {"\x1b", "\x9b", "\u202e", "\u2028", "\x07"} & set(printed)


def test_a_document_goes_to_a_pipe_unchanged_and_to_a_terminal_without_what_controls_it(
    bench: Bench, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    (run_id,) = bench.history.take_in_all(hostile.hostile(TEXT))
    assert main(["export", run_id, "--to", "md"]) == 0
    piped = capfdbinary.readouterr().out.decode()
    assert "31m" in piped
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert main(["runs", "show", run_id, "--json"]) == 0
    shown = capfdbinary.readouterr().out.decode()
    assert '"title"' in shown
    assert not {"\x1b", "\x9b", "\u202e", "\u2028", "\x07"} & set(shown)
