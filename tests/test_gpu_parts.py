"""The parts of the GPU suite, without a GPU: every test is in exactly one, and only reports that belong together are joined."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import gpu_report
import join_reports
import pytest
import run_parts
from part_report import JoinError, PartReport, Told, join, report_file, suite, told_with, write
from parts import PARTS, TOTAL_LIMIT_S, part, part_of, seconds_before, stretches

ROOT = Path(__file__).parents[1]
CARD = {
    "device": "NVIDIA H200",
    "compute_capability": [9, 0],
    "driver": "580.159",
    "python": "3.12.3",
    "versions": {"torch": "2.11.0", "triton": "3.6.0"},
    "cuda": "13.0",
    "commit": "a",
}
ENTRY = gpu_report.Entry(
    op="add",
    variant="v",
    dtype="fp32",
    compute=None,
    passed=True,
    worst_of_bound=0.5,
    cases=3,
    source_digest="s1",
    device="NVIDIA H200",
)


def report(name: str = "smoke", **changed: Any) -> PartReport:
    made = PartReport(
        part=name,
        began_at="2026-11-22T10:00:00+00:00",
        seconds=100.0,
        ended=True,
        environment=CARD,
        tests={"tests/gpu/test_x.py::a": Told("passed", 1.0)},
    )
    return replace(made, **changed)


@pytest.fixture(scope="module")
def listed() -> dict[str, list[str]]:
    """What the command prints; it refuses a test that belongs to no part, or to two."""
    return suite()


def test_every_gpu_test_belongs_to_exactly_one_part(listed: dict[str, list[str]]) -> None:
    assert list(listed) == list(PARTS)
    assert all(listed.values()), {name: len(tests) for name, tests in listed.items()}
    every = [test for tests in listed.values() for test in tests]
    assert len(every) == len(set(every))
    files = {path.name for path in (ROOT / "tests" / "gpu").glob("test_*.py")}
    assert {test.partition("::")[0].rpartition("/")[2] for test in every} == files
    # conftest.py finds the files of a part by this text, before it imports them.
    texts = {path: (ROOT / path).read_text() for path in {test.partition("::")[0] for test in every}}
    assert [
        t for name, tests in listed.items() for t in tests if f'part("{name}")' not in texts[t.partition("::")[0]]
    ] == []
    elsewhere = [p for p in (ROOT / "tests").rglob("*.py") if "mark.gpu" in p.read_text() and p.parent.name != "gpu"]
    assert elsewhere == [Path(__file__)]


def test_names_of_tests_are_the_same_on_every_machine(listed: dict[str, list[str]]) -> None:
    """Reports of other checkouts are joined by them."""
    assert not [test for tests in listed.values() for test in tests if str(ROOT) in test]


def test_the_limits_of_the_parts() -> None:
    assert PARTS["smoke"].limit_s <= 180
    assert all(p.limit_s <= 480 for p in PARTS.values())
    assert TOTAL_LIMIT_S <= 1500


BEFORE_THE_LIMITS: dict[str, float] = {"gpu-report.json": 2400, "gpu-report-nvidia-h100-80gb-hbm3.json": 2400}
"""Committed reports whose parts ran before 2026-11-28, when all parts together were allowed these seconds and one_click 540. A
report leaves this list when all its parts have run again."""


@pytest.mark.parametrize(
    "committed", sorted((ROOT / "docs").glob("gpu-report*.json")), ids=lambda path: cast("Path", path).name
)
def test_a_committed_report_has_kept_the_limits_and_has_no_failure(
    committed: Path, listed: dict[str, list[str]]
) -> None:
    found = json.loads(committed.read_text())
    assert report_file(found["device"]) == committed
    parts = found.get("parts", {})
    longer = {name: p["seconds"] for name, p in parts.items() if p["seconds"] > PARTS[name].limit_s}
    total_s = sum(p["seconds"] for p in parts.values())
    ran = {name: part["tests"].keys() for name, part in parts.items()}
    missing = {test for name, tests in listed.items() for test in set(tests) - ran.get(name, set())}
    before = BEFORE_THE_LIMITS.get(committed.name)
    if before is None:
        assert longer == {}
        assert total_s <= TOTAL_LIMIT_S
        assert missing == set()
    else:
        in_order = not longer and total_s <= TOTAL_LIMIT_S and not missing
        assert not in_order, f"it keeps the limits and is whole: remove {committed.name} from BEFORE_THE_LIMITS"
        assert total_s <= before
    assert [t for p in parts.values() for t, told in p["tests"].items() if told["outcome"] == "failed"] == []
    assert [entry for entry in found["kernels"] if not entry["passed"]] == []


@pytest.mark.parametrize("names", [(), ("smoke", "timing"), ("no_such_part",)])
def test_a_test_in_no_part_or_in_two_is_refused(names: tuple[str, ...]) -> None:
    marks = [pytest.mark.part(name).mark for name in names]
    item = SimpleNamespace(nodeid="tests/gpu/test_x.py::a", iter_markers=lambda name: iter(marks))
    with pytest.raises(pytest.UsageError, match="mark it with exactly one of smoke, "):
        part_of(cast("pytest.Item", item))


def test_a_part_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="no part 'smok'"):
        part("smok")


def test_parts_in_limited_time_write_their_reports_also_when_their_tests_fail(tmp_path: Path) -> None:
    """Here they fail or are skipped, because there is no GPU: each is in the report, with what it said. Output and reports come
    in one file, and a part for which too little time is left does not begin."""
    command = [
        sys.executable,
        str(ROOT / "tests" / "gpu" / "run_parts.py"),
        str(tmp_path / "of"),
        "one_click:1",
        "smoke:600",
    ]
    done = subprocess.run(
        [*command, "--most-s", "300", "--only", "ncu"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": "/nowhere"},
    )
    assert done.returncode == 1
    assert re.fullmatch(r"one_click: \d+ s, exit code 0\nsmoke: not begun, 2\d\d s are left\n", done.stdout), done
    with tarfile.open(tmp_path / "of" / "parts.tgz") as archive:
        assert archive.getnames() == ["one_click.json", "one_click.txt"]
        archive.extractall(tmp_path / "copied", filter="data")
    made = PartReport.read(tmp_path / "copied" / "one_click.json")
    assert made.part == "one_click"
    assert made.ended
    assert made.summary() in (tmp_path / "copied" / "one_click.txt").read_text()
    assert {told.outcome for told in made.tests.values()} == {"skipped"}
    assert any("ncu is not on the PATH" in told.message for told in made.tests.values())
    with pytest.raises(JoinError, match="it ran without a GPU"):
        join({"one_click.json": made})


@pytest.mark.parametrize(("handler", "expected"), [("lambda *_: sys.exit(0)", 2), ("signal.SIG_IGN", -signal.SIGKILL)])
def test_an_interrupted_part_may_write_its_report_and_is_killed_if_it_does_not_end(handler: str, expected: int) -> None:
    code = f"import signal, sys, time\nsignal.signal(signal.SIGINT, {handler})\nprint('ready', flush=True)\n"
    code += "while True:\n    time.sleep(0.05)"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert run_parts.interrupted(process, 30.0 if expected == 2 else 0.1) == expected


def test_an_interrupted_part_writes_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What Ctrl-C raises; the signal itself has no effect if the tests were started in the background.
    (tmp_path / "interrupting.py").write_text("def pytest_runtestloop(session):\n    raise KeyboardInterrupt\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert run_parts.run("selftest", tmp_path, ["-p", "interrupting"], 120.0) == pytest.ExitCode.INTERRUPTED
    assert not PartReport.read(tmp_path / "selftest.json").ended


def test_what_cannot_be_listed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be imported would be missing from the list, and its tests would be dropped from the report."""
    incomplete = subprocess.CompletedProcess([], pytest.ExitCode.INTERRUPTED, '{"smoke": []}\n', "no module named x")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: incomplete)
    with pytest.raises(JoinError, match=r"cannot be listed: .*\nno module named x"):
        suite()


def test_what_is_asked_of_all_parts_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(run_parts, "listen_to_signals", lambda: None)
    monkeypatch.setattr(run_parts, "run", lambda name, folder, options, most_s: asked.append((name, options)) or 0)
    assert run_parts.main([str(tmp_path), "kernels", "smoke:1", "--all", "--only", "add"]) == 0
    assert run_parts.main([str(tmp_path), "kernels"]) == 0
    assert asked == [("kernels", ["-k", "add", "--all"]), ("smoke", ["-k", "add", "--all"]), ("kernels", [])]


@pytest.mark.parametrize("wrong", ["smok", "smoke:soon"])
def test_a_name_of_a_part_that_is_wrong_is_refused(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_parts.main(["folder", wrong])
    assert {"smok": "there are smoke, ", "smoke:soon": "for example smoke:120"}[wrong] in capsys.readouterr().err


def phase(when: str, outcome: str) -> SimpleNamespace:
    return SimpleNamespace(when=when, duration=1.0, passed=outcome == "passed", failed=outcome == "failed")


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        ([("setup", "passed")], Told("unfinished", 1.0)),
        ([("setup", "passed"), ("call", "passed"), ("teardown", "passed")], Told("passed", 3.0)),
        ([("setup", "skipped"), ("teardown", "passed")], Told("skipped", 2.0, "setup")),
        ([("setup", "failed"), ("teardown", "passed")], Told("failed", 2.0, "setup")),
        ([("setup", "passed"), ("call", "failed"), ("teardown", "failed")], Told("failed", 3.0, "call")),
        ([("setup", "passed"), ("call", "passed"), ("teardown", "failed")], Told("failed", 3.0, "teardown")),
    ],
)
def test_a_test_has_passed_when_its_call_has_and_no_phase_failed(phases: list[tuple[str, str]], expected: Told) -> None:
    told: Told | None = None
    for when, outcome in phases:
        told = told_with(told, phase(when, outcome), "" if outcome == "passed" else when)
    assert told == expected


def test_reports_of_one_part_lie_beside_each_other(tmp_path: Path) -> None:
    first, second = report(kernels=[ENTRY], figures={"f": {"a": 1}}), report(seconds=2.0)
    assert [r.write(tmp_path).name for r in (first, second)] == ["smoke.json", "smoke-2.json"]
    assert [PartReport.read(tmp_path / name) for name in ("smoke.json", "smoke-2.json")] == [first, second]
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(JoinError, match=r"other\.json: not a report of a part"):
        PartReport.read(tmp_path / "other.json")


def test_parts_that_ran_at_different_times_are_joined() -> None:
    later = "2026-11-22T12:00:00+00:00"
    failed = {"tests/gpu/test_x.py::a": Told("failed", 1.0, "assert 1"), "tests/gpu/test_x.py::b": Told("passed", 1.0)}
    joined = join(
        {
            "again": report(began_at=later, seconds=5.0, environment={**CARD, "commit": "b"}, figures={"f": 2}),
            "first": report(tests=failed, figures={"f": 1, "g": 1}),
            "kernels": report("kernels", kernels=[ENTRY]),
        }
    )
    smoke = joined.parts["smoke"]
    assert {name: told["outcome"] for name, told in smoke["tests"].items()} == {
        "tests/gpu/test_x.py::a": "passed",
        "tests/gpu/test_x.py::b": "passed",
    }
    assert (smoke["began_at"], smoke["commit"], smoke["seconds"]) == (later, "b", 100.0)
    assert joined.figures == {"f": 2, "g": 1}
    assert joined.kernels == [ENTRY]


@pytest.mark.parametrize(
    ("fact", "value", "words"),
    [
        (
            "device",
            "NVIDIA H100 80GB HBM3",
            "device is 'NVIDIA H200' in the first and 'NVIDIA H100 80GB HBM3' in the second",
        ),
        ("driver", "570.1", "driver is '580.159' in the first and '570.1' in the second"),
        ("versions", {"torch": "2.13.0", "triton": "3.6.0"}, "versions is "),
        ("cuda", "12.9", "cuda is "),
        ("python", "3.13.1", "python is "),
        ("compute_capability", [10, 0], "compute_capability is "),
    ],
)
def test_reports_of_other_cards_or_versions_are_refused(fact: str, value: object, words: str) -> None:
    other = report("timing", began_at="2026-11-22T11:00:00+00:00", environment={**CARD, fact: value})
    with pytest.raises(JoinError, match=r"a\.json and b\.json cannot be joined") as refused:
        join({"a.json": report(), "b.json": other})
    assert words in str(refused.value)


def test_reports_of_other_sources_of_a_variant_are_refused() -> None:
    other = report("kernels", began_at="2026-11-22T11:00:00+00:00", kernels=[replace(ENTRY, source_digest="new")])
    with pytest.raises(JoinError, match=r"different sources of add v fp32 \(digest .1 and new\)"):
        join({"a.json": report("kernels", kernels=[ENTRY]), "b.json": other})


def test_another_card_has_a_report_of_its_own(tmp_path: Path) -> None:
    first = report_file("NVIDIA H200", tmp_path)
    assert first.name == "gpu-report.json"
    write(join({"a": report("kernels", kernels=[ENTRY])}), first, {})
    assert report_file("NVIDIA H200", tmp_path) == first
    second = report_file("NVIDIA H100 80GB HBM3", tmp_path)
    assert second.name == "gpu-report-nvidia-h100-80gb-hbm3.json"
    of_other = join({"b": report(environment={**CARD, "device": "NVIDIA H100 80GB HBM3"})})
    with pytest.raises(JoinError, match="is the report of NVIDIA H200, these are reports of NVIDIA H100"):
        write(of_other, first, {})
    write(of_other, second, {})
    assert json.loads(second.read_text())["device"] == "NVIDIA H100 80GB HBM3"


def test_the_command_joins_into_the_report_and_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_reports, "suite", dict)
    target, figures = tmp_path / "report.json", tmp_path / "figures.json"
    figures.write_text(json.dumps({"about": "x", "figures": {"one_click_one_size": {"add": 1}, "old": 3}}))
    one = report(figures={"one_click_one_size": {"mul": 2}, "new": 4}).write(tmp_path / "parts")
    two = report("kernels", kernels=[ENTRY]).write(tmp_path / "parts")
    options = ["--report", str(target), "--figures", str(figures)]
    assert join_reports.main([str(one), *options]) == 0
    assert join_reports.main([str(two), *options]) == 0
    assert "kernels: {'passed': 1}, 100 s" in capsys.readouterr().out
    found = json.loads(target.read_text())
    assert found["parts"].keys() == {"smoke", "kernels"}
    assert gpu_report.read(target) == {ENTRY.key: ENTRY}
    assert json.loads(figures.read_text())["figures"] == {
        "one_click_one_size": {"add": 1, "mul": 2},
        "old": 3,
        "new": 4,
    }
    bad = report("timing", tests={"t": Told("failed", 1.0, "assert 1")}).write(tmp_path / "parts")
    assert join_reports.main([str(bad), "--report", str(target)]) == 1
    other = report("timing", environment={**CARD, "driver": "570"}).write(tmp_path / "parts")
    assert join_reports.main([str(one), str(other), "--report", str(target)]) == 2
    assert "cannot be joined" in capsys.readouterr().err


def test_tests_of_a_part_that_did_not_run_again_stay_with_their_commit(tmp_path: Path) -> None:
    target, kept, again = tmp_path / "report.json", "t.py::kept[a]", "t.py::again"
    whole = report(tests=dict.fromkeys((kept, again, "t.py::kept[gone]"), Told("passed", 1.0)))
    tests = {"smoke": [kept, again]}
    write(join({"whole": whole}), target, tests)
    one = report(tests={again: Told("passed", 2.0)}, environment={**CARD, "commit": "b"}, seconds=9.0)
    write(join({"one": one}), target, tests)
    part = json.loads(target.read_text())["parts"]["smoke"]
    assert part["tests"] == {
        kept: {"outcome": "passed", "seconds": 1.0, "commit": "a"},
        again: {"outcome": "passed", "seconds": 2.0, "commit": "b"},
    }
    assert (part["commit"], part["seconds"]) == ("b", 100.0)
    write(join({"one": one}), target, {"smoke": [again]})
    part = json.loads(target.read_text())["parts"]["smoke"]
    assert (list(part["tests"]), part["seconds"]) == ([again], 9.0), "it ran whole, so its own time counts"


@pytest.mark.parametrize(("count", "processes"), [(1, 1), (10, 3), (14, 14), (1347, 14), (3, 5)])
def test_each_stretch_of_a_part_begins_with_its_longest_tests(count: int, processes: int) -> None:
    """Cut as xdist's "worksteal" cuts the list: of what is left, each process gets an equal share, rounded down."""
    tests = [SimpleNamespace(nodeid=str(i)) for i in range(count)]
    ordered = stretches(tests, {str(i): float(i) for i in range(count)}, processes)
    assert sorted(int(t.nodeid) for t in ordered) == list(range(count))
    left, cut = list(ordered), list[list[float]]()
    for remaining in range(processes, 0, -1):
        size = len(left) // remaining
        cut.append([float(t.nodeid) for t in left[:size]])
        left = left[size:]
    assert all(one == sorted(one, reverse=True) for one in cut)
    firsts = [one[0] for one in cut if one]
    assert sorted(firsts) == [float(i) for i in range(count - len(firsts), count)]


def test_a_test_that_never_ran_comes_first(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    assert seconds_before("kernels", report) == {}
    told = {"seconds": 2.0, "outcome": "passed"}
    cut = {"outcome": "unfinished"}
    report.write_text(json.dumps({"parts": {"kernels": {"tests": {"old": told, "new": cut}}}}))
    known = seconds_before("kernels", report)
    assert known == {"old": 2.0}
    old, new = SimpleNamespace(nodeid="old"), SimpleNamespace(nodeid="new")
    assert stretches([old, new], known, 1) == [new, old]


def test_a_test_keeps_its_key_and_is_in_one_part_only(tmp_path: Path) -> None:
    """In a report, after it moved from one part to another."""
    target, name = tmp_path / "report.json", "t.py::moved"
    write(join({"old": report("product", tests={name: Told("passed", 1.0)}, kernels=[])}), target, {"product": [name]})
    moved = report("smoke", tests={name: Told("passed", 2.0, key="k")}, on_record=7)
    write(join({"new": moved}), target, {"smoke": [name]})
    parts = json.loads(target.read_text())["parts"]
    assert parts["product"]["tests"] == {}
    assert parts["smoke"]["tests"] == {name: {"outcome": "passed", "seconds": 2.0, "commit": "a", "key": "k"}}
    assert report(on_record=7).summary() == "part smoke: 1 passed, 7 on record, 100 s"
