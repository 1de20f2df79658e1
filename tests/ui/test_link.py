"""Links: what is written reopens the same, what is wrong is named with the nearest, and nothing else is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sample_runs as samples
from rehearsed_bench import RehearsedBench

from kernelviz.core.sizes import expand
from kernelviz.ops import catalogue
from kernelviz.ui.bench import link
from kernelviz.ui.bench.form import Form, data_kinds, default_form, form_of, reconciled


@pytest.fixture
def cpu() -> RehearsedBench:
    return RehearsedBench()


@pytest.fixture
def gpu() -> RehearsedBench:
    return RehearsedBench((samples.H200, samples.CPU))


def test_an_empty_link_is_a_first_visit(cpu: RehearsedBench) -> None:
    found = link.read({}, cpu)
    assert found.form.op == "rmsnorm"
    assert found.form.variants == ("composite_eager", "torch_eager", "torch_compile")
    assert found.complaints == ()
    assert found.run_id is None


@pytest.mark.parametrize("op", sorted(catalogue()))
def test_what_is_written_reopens_the_same_with_nothing_left_to_default(op: str, gpu: RehearsedBench) -> None:
    form = default_form(gpu, op)
    written = link.write(form, "abc")
    found = link.read(written, gpu)
    assert found.form == form
    assert found.run_id == "abc"
    assert found.complaints == ()
    assert set(written) >= {
        "op",
        "variants",
        "dtype",
        "budget",
        "data",
        "baseline",
        "device",
        *catalogue()[op].axis_names,
    }


def test_a_preset_is_written_by_its_name(gpu: RehearsedBench) -> None:
    found = link.read({"op": "matmul", "preset": "llama-3-8b"}, gpu)
    assert found.form.sizes["n"] == "14336"
    assert link.write(found.form, None)["preset"] == "llama-3-8b"
    assert link.read(link.write(found.form, None), gpu).form == found.form


WRONG = [
    ({"op": "rmsnrom"}, "op", "rmsnorm"),
    ({"op": "add", "dtype": "bf61"}, "dtype", "bf16"),
    ({"op": "add", "variants": "torch_eagre"}, "variants", "torch_eager"),
    ({"op": "add", "n": "2^x"}, "n", "2^12..2^28"),
    ({"op": "add", "n": "-5"}, "n", "2^12..2^28"),
    ({"op": "add", "n": "__import__('os')"}, "n", "2^12..2^28"),
    ({"budget": "much"}, "budget", "1 s"),
    ({"budget": "nan"}, "budget", "1 s"),
    ({"clock": "sustain"}, "clock", "sustained"),
    ({"clock": "sustained", "load": "99"}, "load", "15 s"),
    ({"energy": "maybe"}, "energy", "no"),
    ({"compile_ahead": "perhaps"}, "compile_ahead", "yes"),
    ({"budget": "9999"}, "budget", "60 s"),
    ({"device": "cuda:7"}, "device", "cuda:0"),
    ({"data": "zeroes"}, "data", "zeros"),
    ({"op": "matmul", "preset": "llama-3-8"}, "preset", "llama-3-8b"),
    ({"op": "matmul", "dtype": "fp32", "compute": "tf23"}, "compute", "tf32"),
    ({"baseline": "torch_compil"}, "baseline", "torch_compile"),
    ({"varaints": "torch_eager"}, "varaints", "variants"),
]


@pytest.mark.parametrize(("params", "field", "instead"), WRONG)
def test_each_wrong_field_is_named_with_what_is_used_instead(
    params: dict[str, str], field: str, instead: str, gpu: RehearsedBench
) -> None:
    (complaint,) = link.read(params, gpu).complaints
    assert complaint.field == field
    assert params[field] in complaint.message or field in complaint.message
    assert instead in complaint.message


def test_one_wrong_field_loses_nothing_else(gpu: RehearsedBench) -> None:
    params = {"op": "add", "variants": "cuda_vec16,nonsense_xyz", "dtype": "bf16", "n": "2^20,2^21", "budget": "nope"}
    found = link.read(params, gpu)
    assert (found.form.op, found.form.variants, found.form.dtype) == ("add", ("cuda_vec16",), "bf16")
    assert found.form.sizes == {"n": "2^20,2^21"}
    assert sorted(c.field for c in found.complaints) == ["budget", "variants"]


def test_a_variant_that_cannot_run_here_is_left_out_with_the_reason(cpu: RehearsedBench) -> None:
    found = link.read({"op": "rmsnorm", "variants": "torch_eager,triton_persistent"}, cpu)
    assert found.form.variants == ("torch_eager",)
    assert "NVIDIA GPU" in found.complaints[0].message


def _changed(form: Form, **changes: object) -> Form:
    return replace(form, **changes)  # type: ignore[arg-type]


def test_another_op_brings_its_own_variants_and_sizes_and_keeps_the_dtype(gpu: RehearsedBench) -> None:
    before = _changed(default_form(gpu, "rmsnorm"), dtype="fp16", budget_s=2.0)
    after = reconciled(_changed(before, op="matmul"), before, gpu)
    assert (after.dtype, after.budget_s) == ("fp16", 2.0)
    assert set(after.sizes) == {"m", "n", "k"}
    assert set(after.variants) <= {v.name for v in catalogue()["matmul"].variants}
    assert after.plan(gpu).problems


def test_values_take_the_largest_of_the_sweep_and_back(gpu: RehearsedBench) -> None:
    sweep = default_form(gpu, "rmsnorm")
    values = reconciled(_changed(sweep, sizes_from="values"), sweep, gpu)
    largest = expand(("m", "n"), sweep.sizes)[-1]
    assert values.sizes == {"m": str(largest["m"]), "n": str(largest["n"])}
    assert reconciled(_changed(values, sizes_from="sweep"), values, gpu).sizes == sweep.sizes


def test_another_device_brings_its_own_default_sweep_but_keeps_sizes_of_ones_own(gpu: RehearsedBench) -> None:
    before = default_form(gpu, "add", "cuda:0")
    assert reconciled(_changed(before, device="cpu"), before, gpu).sizes == {
        "n": catalogue()["add"].axes[0].cpu_default
    }
    own = _changed(before, sizes={"n": "777"})
    assert reconciled(_changed(own, device="cpu"), own, gpu).sizes == {"n": "777"}


def test_leaving_the_gpu_leaves_its_variants(gpu: RehearsedBench) -> None:
    before = _changed(default_form(gpu, "add", "cuda:0"), baseline="cuda_vec16")
    after = reconciled(_changed(before, device="cpu"), before, gpu)
    assert after.variants == ("torch_eager", "torch_compile")
    assert after.baseline == "torch_eager"


def test_a_stored_run_gives_back_its_form(gpu: RehearsedBench) -> None:
    form = form_of(samples.run(), gpu)
    assert form is not None
    assert form.sizes == {"m": "2^27/n", "n": "2^10..2^15"}
    assert form.plan(gpu).problems == samples.run().plan.problems


def test_only_ids_can_be_sorted(gpu: RehearsedBench) -> None:
    asked = link.read({"op": "add", "data": "sorted"}, gpu)
    assert asked.form.data == "normal"
    (complaint,) = asked.complaints
    assert (
        "op 'add' has no integer ids as input, so its data cannot be sorted. Using normal instead." in complaint.message
    )
    assert asked.form.plan(gpu).problems
    ids = link.read({"op": "embedding", "data": "sorted"}, gpu)
    assert (ids.form.data, ids.complaints) == ("sorted", ())
    after = reconciled(_changed(ids.form, op="add"), ids.form, gpu)
    assert (after.data, after.op) == ("normal", "add")
    assert "sorted" in data_kinds(catalogue()["embedding"])
    assert "sorted" not in data_kinds(catalogue()["add"])


def test_sizes_beside_a_preset_lie_over_its_sizes(gpu: RehearsedBench) -> None:
    preset = link.read({"op": "matmul", "preset": "llama-3-8b"}, gpu).form.sizes
    found = link.read({"op": "matmul", "preset": "llama-3-8b", "m": "64,128"}, gpu)
    assert found.complaints == ()
    assert found.form.sizes == {**preset, "m": "64,128"}
    assert found.form.preset is None
    assert link.read(link.write(found.form, None), gpu).form == found.form
    wrong = link.read({"op": "matmul", "preset": "llama-3-8b", "m": "2^x"}, gpu)
    assert wrong.form.sizes == preset
    assert [c.field for c in wrong.complaints] == ["m"]


def test_a_link_says_where_compilation_ahead_is_off(gpu: RehearsedBench) -> None:
    form = replace(default_form(gpu), compile_ahead=False)
    assert not form.method.compiles_ahead
    written = link.write(form, None)
    assert written["compile_ahead"] == "no"
    assert link.read(written, gpu).form == form
    assert "compile_ahead" not in link.write(default_form(gpu), None)


def test_a_link_names_the_load_only_where_it_is_sustained(gpu: RehearsedBench) -> None:
    form = replace(default_form(gpu, "matmul"), clock="sustained", load_s=10.0, data="outliers")
    assert (form.method.clock, form.method.steady_s) == ("sustained", 10.0)
    written = link.write(form, None)
    assert (written["load"], written["data"]) == ("10", "outliers")
    assert link.read(written, gpu).form == form
    burst = replace(form, clock="burst")
    assert burst.method.steady_s == 0.0
    assert "load" not in link.write(burst, None)
