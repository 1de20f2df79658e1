"""Facts of the machine code of cases: from real cubins, with each reason why there are none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
import sample_code as code
import sample_runs as samples
from msgspec.structs import replace

import kernelviz as kv
import kernelviz.bench as use_cases
from kernelviz.bench import Bench
from kernelviz.bench.code_facts import MOST_CUBIN_BYTES
from kernelviz.core import Run
from kernelviz.core.code import packed
from kernelviz.core.code_facts import CaseFacts, NoFactsReason, ProofStatus
from kernelviz.core.errors import BadField, UnknownName
from kernelviz.core.machine_code import Technique
from kernelviz.formats import document
from kernelviz.machine_code import cubin_list
from kernelviz.store import Store
from kernelviz.text import code_facts as text
from kernelviz.text.machine_code import TECHNIQUE_NAMES

SMALL, LARGE = "add fp32 n=1048576", "add fp32 n=16777216"


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = Bench(Store.open(tmp_path / "store"), (samples.CPU,))
    monkeypatch.setattr(use_cases, "current", lambda: made)
    yield made
    made.close()


def by_case(cases: tuple[CaseFacts, ...]) -> dict[tuple[str, str], CaseFacts]:
    return {(c.result.variant, c.result.problem.key): c for c in cases}


def with_code_of(run: Run, variant: str, content: bytes, *, here: bool = True) -> Run:
    """The run, in which this variant has another cubin."""
    described = (code.code_of("k", {"cubin": content}),)
    results = tuple(replace(r, code=described) if r.variant == variant else r for r in run.results)
    return replace(run, results=results, code=(*(run.code or ()), *([packed(content)] if here else [])))


def test_resources_launch_and_techniques_of_each_case(bench: Bench) -> None:
    cases = by_case(kv.code_facts(code.run_with_cubins()))
    assert len(cases) == 10
    (kernel,) = cases["cuda_vec16", LARGE].kernels
    assert (kernel.facts.name, kernel.facts.registers, kernel.threads, kernel.shared_bytes) == (
        "arithmetic_vec16",
        22,
        256,
        0,
    )
    assert kernel.occupancy is not None
    assert (kernel.occupancy.fraction, kernel.occupancy.limited_by) == (1.0, ("threads",))
    # 2^24 elements of 16 bytes a thread are 16,384 blocks of 256 threads, in waves of 8 blocks on each of 132 SMs.
    assert kernel.waves is not None
    assert (kernel.waves.full, kernel.waves.tail_blocks) == divmod(2**24 // 1024, 8 * 132)
    statuses: dict[str, dict[Technique, ProofStatus]] = {
        variant: {p.technique: p.status for p in cases[variant, SMALL].proofs} for variant in code.ARITHMETIC
    }
    assert statuses == {"cuda_scalar": {}, "cuda_vec16": {"vec16": "proven"}, "triton_block": {"vec16": "undeclared"}}


def test_shared_memory_is_what_the_driver_launched_with(bench: Bench) -> None:
    """Documents of earlier versions have what a kernel was loaded for, in place of what a launch used; the trace is right. Of a
    case without a trace, what its code says counts."""
    run = code.run_with_cubins()

    def launched(traced_bytes: int | None) -> tuple[int | None, tuple[str, ...]]:
        results = tuple(
            replace(
                r,
                kernels=tuple(replace(k, shared_memory_bytes=traced_bytes) for k in r.kernels),
                code=tuple(replace(c, shared_bytes=16_000) for c in r.code or ()),
            )
            for r in run.results
        )
        (kernel,) = by_case(kv.code_facts(replace(run, results=results)))["cuda_vec16", SMALL].kernels
        assert kernel.occupancy is not None
        return kernel.shared_bytes, kernel.occupancy.limited_by

    assert launched(100_000) == (100_000, ("shared_memory",))
    assert launched(0) == (0, ("threads",))
    assert launched(None) == (16_000, ("threads",))


def test_a_declared_technique_that_the_code_does_not_have_is_missing(bench: Bench) -> None:
    run = code.run_with_cubins()
    scalar = next(r.code for r in run.results if r.variant == "cuda_scalar")
    run = replace(run, results=tuple(replace(r, code=scalar) if r.variant == "cuda_vec16" else r for r in run.results))
    case = by_case(kv.code_facts(run))["cuda_vec16", SMALL]
    assert [(p.technique, p.status) for p in case.proofs] == [("vec16", "missing")]
    # What other code declared is not known today.
    other = tuple(replace(r, source_digest="0" * 16) if r.variant == "cuda_vec16" else r for r in run.results)
    case = by_case(kv.code_facts(replace(run, results=other)))["cuda_vec16", SMALL]
    assert (case.declared, case.proofs) == (None, ())
    other = tuple(replace(r, source_digest="0" * 16) for r in code.run_with_cubins().results)
    case = by_case(kv.code_facts(replace(code.run_with_cubins(), results=other)))["cuda_vec16", SMALL]
    assert [(p.technique, p.status) for p in case.proofs] == [("vec16", "observed")]
    assert list(map(text.format_proof, case.proofs)) == ["· 16-byte accesses"]


def test_every_reason_without_facts_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    run = code.run_with_cubins()
    run = with_code_of(run, "cuda_scalar", code.CUBIN)
    run = with_code_of(run, "triton_block", code.cubin("matmul-sm_90"), here=False)
    cpu = (code.code_of("k", {"source": code.SOURCE.encode()}),)
    run = replace(run, results=tuple(replace(r, code=cpu) if r.variant == "torch_compile" else r for r in run.results))
    reasons = {variant: case.reason for (variant, key), case in by_case(kv.code_facts(run)).items() if key == SMALL}
    assert reasons == {
        "torch_eager": "library", "torch_compile": "no_cubin", "cuda_scalar": "unreadable", "triton_block": "not_here",
        "cuda_vec16": None,
    }  # fmt: skip
    on_cpu = replace(run, environment=replace(run.environment, device=samples.CPU))
    assert by_case(kv.code_facts(on_cpu))["torch_compile", SMALL].reason == "no_machine_code"
    assert "this is not a cubin that can be read" in "\n".join(
        map(str, text.describe_missing_by_variant(kv.code_facts(run)))
    )
    not_here = by_case(kv.code_facts(run))["triton_block", SMALL]
    assert "kernelviz import run.json" in str(text.describe_missing(not_here))
    shipped = str(text.describe_missing(not_here, shipped=True))  # nobody else has it
    assert "measure the case on such a device, unless `kernelviz recordings` says that more can be fetched" in shipped
    assert "import" not in shipped
    large = with_code_of(code.run_with_cubins(), "cuda_scalar", code.cubin("matmul-sm_90") + bytes(MOST_CUBIN_BYTES))
    assert by_case(kv.code_facts(large))["cuda_scalar", SMALL].reason == "too_large"
    # Without nvdisasm, another cubin cannot be read; those that were read are known.
    monkeypatch.setattr("kernelviz.bench.code_facts.tool_paths", lambda tool: ())
    fresh = with_code_of(code.run_with_cubins(), "cuda_scalar", code.cubin("copy_bulk-sm_90"))
    cases = by_case(kv.code_facts(fresh))
    assert (cases["cuda_scalar", SMALL].reason, cases["cuda_vec16", SMALL].reason) == ("no_tool", None)
    assert "pip install nvidia-cuda-nvdisasm" in str(text.describe_missing(cases["cuda_scalar", SMALL]))


def test_one_bad_cubin_does_not_affect_the_others() -> None:
    good, bad = code.cubin("arithmetic-sm_90"), code.CUBIN
    cut = code.cubin("matmul-sm_90")[:6_000]
    first, second, third, fourth = cubin_list.facts_of_each([good, bad, cut, code.cubin("matmul-sm_90")])
    assert (len(first.kernels), second.reason, third.reason, len(fourth.kernels)) == (3, "unreadable", "unreadable", 1)


def test_a_stored_run_a_selection_and_bad_names(bench: Bench) -> None:
    run_id = bench.history.take_in(document.encode(code.run_with_cubins()))
    (case,) = kv.code_facts(run_id, "cuda_vec16", sizes={"n": 2**20})
    assert (case.result.problem.key, case.kernels[0].facts.name) == (SMALL, "arithmetic_vec16")
    assert kv.code_facts(run_id, "cuda_vec16", problem=SMALL, kernel="arithmetic_vec16") == (case,)
    with pytest.raises(UnknownName, match="did you mean 'cuda_vec16'"):
        kv.code_facts(run_id, "cuda_vec61")
    with pytest.raises(BadField, match="its backend is torch"):
        kv.code_facts(run_id, "torch_eager")
    assert {c.reason for c in kv.code_facts("h200-add")} <= {"library", "not_captured", None}


def test_a_recorded_run_of_a_gpu_is_not_said_to_have_code_for_a_cpu(bench: Bench) -> None:
    """torch.compile calls cuDNN there: its graph was captured, and it has no kernel of its own."""
    cases = [case for case in kv.code_facts("h200-attention") if case.result.variant == "torch_compile"]
    (told,) = text.describe_missing_by_variant(cases)
    assert str(told).startswith("torch compile: source was captured but no cubin")
    assert "CPU" not in str(told)


def test_a_job_is_shared_and_asks_again_for_what_was_not_here(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    facts, run = bench.history.code_facts, code.run_with_cubins(with_contents=False)
    reading = facts.reading(run)
    assert reading.wait(30)
    assert by_case(reading.facts)["cuda_vec16", SMALL].reason == "not_here"
    assert facts.reading(run) is reading
    bench.history.code.take_in([code.run_with_cubins()])
    monkeypatch.setattr("kernelviz.bench.code_facts._ASK_AGAIN_S", 0.0)
    again = facts.reading(run)
    assert again.wait(30)
    assert by_case(again.facts)["cuda_vec16", SMALL].kernels
    assert facts.reading(run) is again, "nothing is missing any more"


def test_every_technique_status_and_reason_has_a_text() -> None:
    assert set(TECHNIQUE_NAMES) == set(get_args(Technique))
    assert [s for s, sign in text.PROOF_SIGNS.items() if sign == "✓"] == ["proven"], "what is not listed has no tick"
    assert set(text.PROOF_SIGNS) == set(text.PROOF_MEANINGS) == set(get_args(ProofStatus))
    assert set(text._REASONS) == set(get_args(NoFactsReason))
