"""Layers of published models: their parts are problems of the catalogue, and their work is that of the weights."""

from __future__ import annotations

import pytest

from kernelviz.core.errors import BadField, UnknownName
from kernelviz.metrics.layer_times import PartTimes
from kernelviz.models.parts import NUMBER_FORMATS, PHASES, checked_call, layer_fusions, layer_parts
from kernelviz.models.presets import PRESETS, ModelPreset, preset_named
from kernelviz.ops import catalogue
from kernelviz.text.model import PARTS, describe_part

CALLS = [(preset, phase, dtype) for preset in PRESETS.values() for phase in PHASES for dtype in NUMBER_FORMATS]


@pytest.mark.parametrize(("preset", "phase", "dtype"), CALLS)
def test_each_part_is_a_problem_of_the_catalogue_or_says_why_not(preset: ModelPreset, phase: str, dtype: str) -> None:
    call = checked_call(preset, phase, 2, 512, dtype)
    parts = layer_parts(preset, call)
    names = [part.name for part in parts]
    assert len(set(names)) == len(names)
    assert set(names) <= set(PARTS), "each part has a name for people"
    for part in parts:
        assert (part.problem is None) == (part.gap is not None) == (part.cost is not None)
        if part.problem is not None:
            op = catalogue()[part.problem.op]
            assert op.problem(part.problem.sizes, part.problem.dtype).key == part.problem.key, "stored keys are equal"
        if part.gap is not None or part.stand_in is not None:
            assert describe_part(PartTimes(part, part.cost, missing="no_op" if part.gap else None)) is not None
    for fusion in layer_fusions(preset, call):
        assert set(fusion.parts) <= set(names)
        assert (
            catalogue()[fusion.problem.op].problem(fusion.problem.sizes, fusion.problem.dtype).key == fusion.problem.key
        )


# By hand from the published sizes: the weights of the products of a layer.
WEIGHTS = {
    "llama-3-8b": 4096 * 6144 + 4096 * 4096 + 3 * 4096 * 14336,
    "llama-3-70b": 8192 * 10240 + 8192 * 8192 + 3 * 8192 * 28672,
    "qwen2.5-7b": 3584 * 4608 + 3584 * 3584 + 3 * 3584 * 18944,
    "deepseek-v3-dense": 7168 * 2112 + 1536 * 24576 + 512 * 32768 + 16384 * 7168 + 3 * 7168 * 18432,
    "gpt-2": 768 * 2304 + 768 * 768 + 2 * 768 * 3072,
}


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("phase", PHASES)
def test_products_do_two_operations_for_each_weight_and_token(name: str, phase: str) -> None:
    """In the absorbed form, too: the up projection of keys and values is used once for queries and once for outputs."""
    call = checked_call(PRESETS[name], phase, 4, 256, "bf16")
    work_flop = 0
    for part in layer_parts(PRESETS[name], call):
        if part.role == "matmul":
            cost = part.cost or catalogue()[part.problem.op].cost(part.problem.sizes, 2)  # type: ignore[union-attr]
            work_flop += cost.work_flop
    assert work_flop == 2 * call.tokens * WEIGHTS[name]


@pytest.mark.parametrize(
    ("phase", "batch", "context", "dtype", "field"),
    [
        ("prefill", 0, 64, "bf16", "batch"),
        ("prefill", 1, 1025, "bf16", "context"),
        ("decode", 4096, 1025, "fp16", "context"),
    ],
)
def test_bad_sizes_name_the_field(phase: str, batch: int, context: int, dtype: str, field: str) -> None:
    with pytest.raises(BadField) as error:
        checked_call(PRESETS["gpt-2"], phase, batch, context, dtype)
    assert error.value.field == field


def test_unknown_names_are_refused() -> None:
    for wrong in (("train", "bf16"), ("decode", "fp8")):
        with pytest.raises(UnknownName):
            checked_call(PRESETS["gpt-2"], wrong[0], 1, 64, wrong[1])
    with pytest.raises(UnknownName, match="llama-3-8b"):
        preset_named("llama-3-8")
