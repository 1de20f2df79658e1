"""What Python gives as sizes and names: whole numbers of any library are taken, what is none is refused by its axis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import rehearsed_bench as rehearsed
import sample_runs as samples

import kernelviz as kv
from kernelviz import bench as use_cases
from kernelviz.api import size_text
from kernelviz.core.errors import BadField, UnknownName
from kernelviz.core.problem import Plan
from kernelviz.core.request import RunRequest


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> rehearsed.RehearsedBench:
    made = rehearsed.RehearsedBench((samples.CPU,))
    monkeypatch.setattr(use_cases, "current", lambda: made)
    return made


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (4096, "4096"),
        (np.int64(4096), "4096"),
        (np.array(4096), "4096"),
        (np.array([64, 128]), "64,128"),
        (np.array([64]), "64"),
        ([np.int32(64), 128], "64,128"),
        (range(1, 4), "1,2,3"),
        (["2^10", "64"], "2^10,64"),
        ("2^10..2^12", "2^10..2^12"),
    ],
)
def test_whole_numbers_are_taken_as_they_are(size: Any, text: str) -> None:
    assert size_text(size, "n") == text


@pytest.mark.parametrize(
    "size", [4096.0, 4096.7, [4096.7], b"4096", None, [None], np.float64(4), np.array([1.5]), np.array(1.5), object()]
)
def test_what_is_no_whole_number_is_refused_before_anything_is_measured(
    size: Any, bench: rehearsed.RehearsedBench
) -> None:
    with pytest.raises(BadField, match=r"^size n: .* cannot be used; give a whole number"):
        kv.run("add", sizes={"n": size})
    with pytest.raises(BadField, match=r"^size n: "):
        kv.inspect("add", "torch_eager", sizes={"n": size})
    assert bench.runs() == ()


def test_one_name_alone_is_one_name(
    bench: rehearsed.RehearsedBench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = kv.run("add", sizes={"n": 64}, variants="torch_eager", figures="cold")  # type: ignore[arg-type]
    assert (found.plan.variants, found.method.figures) == (("torch_eager",), ("cold",))
    with pytest.raises(UnknownName, match="did you mean 'torch_eager'"):
        kv.run("add", sizes={"n": 64}, variants="torch_eagr")
    asked: list[tuple[str, ...]] = []
    plan = bench.plan

    def without_plugins(request: RunRequest) -> Plan:
        asked.append(request.plugins)
        return plan(msgspec.structs.replace(request, plugins=()))

    monkeypatch.setattr(bench, "plan", without_plugins)
    for plugins in ("a.py", Path("a.py"), ["a.py"]):
        kv.run("add", sizes={"n": 64}, variants=["torch_eager"], plugins=plugins)  # type: ignore[arg-type]
    assert asked == [(str(Path("a.py").resolve()),)] * 3
