"""`kernelviz.best` on a GPU: measured once by the worker, bound to the caller's tensors, right, and known at the next call."""

from __future__ import annotations

import time

import pytest
from figures import record
from parts import part

import kernelviz as kv
from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.text.best import describe_unmeasured

pytestmark = [part("product"), pytest.mark.gpu, pytest.mark.xdist_group("gpu"), pytest.mark.timeout(300)]

ROWS, COLUMNS = 59, 1001


def test_the_best_variant_is_measured_once_and_computes_what_torch_does(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(use_cases, "current", lambda: bench)
    x = torch.randn(ROWS, COLUMNS, device="cuda", dtype=torch.float16)
    begun_s = time.monotonic()
    call = kv.best("softmax", x)
    first_s = time.monotonic() - begun_s
    assert call.measured is not None, call.not_measured
    times_s = call.measured.seconds
    assert call.variant == next(iter(times_s))
    assert times_s[call.variant] == min(times_s.values())
    assert len(times_s) >= 3
    for _ in range(2):
        y = call()
        assert isinstance(y, torch.Tensor)
        torch.testing.assert_close(y, torch.softmax(x, -1), atol=1e-3, rtol=2e-3)
        x.normal_()
    begun_s = time.monotonic()
    again = kv.best("softmax", x)
    again_s = time.monotonic() - begun_s
    assert again.measured == call.measured
    assert again_s < 1
    assert len(bench.history.find()) == 1
    unmeasured = kv.best("softmax", x[1:], measure=False)
    assert (unmeasured.measured, unmeasured.not_measured) == (None, str(describe_unmeasured("not_asked")))
    record("best_call", {"first_s": first_s, "again_s": again_s, "times_s": dict(times_s)})
