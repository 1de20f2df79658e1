"""What holds for every op and variant of the catalogue."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cases import odd_sizes, same_sizes, variants, ways

from kernelviz.core.backends import BACKENDS
from kernelviz.core.errors import UnknownName
from kernelviz.core.sizes import expand
from kernelviz.ops import Op, Variant, catalogue, op_named, variant
from kernelviz.ops.catalog.tensors import Blocks, Dimension, Product, Strided

ROOT = Path(__file__).parents[2]
OPS = list(catalogue().values())


def test_importing_the_catalogue_loads_neither_torch_nor_triton() -> None:
    code = (
        "import json, sys; from kernelviz.ops import catalogue; found = list(catalogue());"
        "[v.source_digest() for op in catalogue().values() for v in op.variants];"
        "print(json.dumps([found, [m for m in sys.modules if m.split('.')[0] in ('torch', 'triton', 'cuda')]]))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    found, loaded = json.loads(done.stdout)
    assert {"add", "copy", "scale", "rmsnorm", "softmax", "matmul"} <= set(found)
    assert loaded == []


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_default_sizes_and_presets_expand(op: Op) -> None:
    for texts in (
        {a.name: a.default for a in op.axes},
        {a.name: a.cpu_default for a in op.axes},
        *(p.sizes for p in op.presets),
    ):
        found = expand(op.axis_names, texts)
        assert 1 <= len(found) <= 32
        for sizes in found:
            op.problem(sizes, op.dtypes[0])
    assert len({p.name for p in op.presets}) == len(op.presets)


def _axes_of(dimension: Dimension) -> tuple[str, ...]:
    match dimension:
        case int():
            return ()
        case str():
            return (dimension,)
        case Blocks():
            return (dimension.axis,)
        case Product():
            return tuple(axis for one in dimension.axes for axis in _axes_of(one))
        case Strided():
            return (dimension.axis, dimension.filter, dimension.stride)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_names_inside_an_op_agree(op: Op) -> None:
    names = [v.name for v in op.variants]
    assert len(set(names)) == len(names)
    assert op.baseline in names
    assert set(op.first) <= set(names)
    tensors = (*op.inputs, *op.outputs)
    dimensions = [a for t in tensors for a in t.axes if not isinstance(a, int)]
    dimensions += [t.below for t in tensors if t.below]
    assert {axis for a in dimensions for axis in _axes_of(a)} <= set(op.axis_names)
    for one in (op, op.of(op.problem(dict.fromkeys(op.axis_names, 4), op.dtypes[0], direction=op.directions[-1]))):
        if one.slab:
            assert all(one.slab not in t.axes[1:] for t in (*one.inputs, *one.reference_outputs))
            assert all(t.axes[0] == one.slab for t in one.reference_outputs)


# Ops that need not read all of an input, and so count what they must: nothing (a number of launches, a format), the rows that ids
# name, one element of each stride, the weights of groups that have rows, the pixels that a filter covers in one of its positions,
# the tokens of a page.
READ_IN_PART = {
    "strided_copy",
    "empty_launch",
    "uniform_fill",
    "embedding",
    "gather",
    "index_select",
    "scatter_add",
    "grouped_matmul",
    "conv2d",
    "conv_bias_relu",
    "paged_attention_decode",
}


@pytest.mark.parametrize("op", [o for o in OPS if o.name not in READ_IN_PART], ids=lambda op: op.name)
def test_cost_counts_each_input_and_output_once(op: Op) -> None:
    sizes = odd_sizes(op)[-1] if op.check else {axis: 3 + 2 * i for i, axis in enumerate(same_sizes(op, 1))}
    for dtype in op.dtypes:
        cost = op.cost_of(op.problem(sizes, dtype))
        assert cost.read_bytes == sum(t.size_bytes(sizes, dtype) for t in op.inputs)
        assert cost.written_bytes == sum(t.size_bytes(sizes, dtype) for t in op.outputs)
        assert cost.work_flop >= 0


@pytest.mark.parametrize(("op", "chosen"), variants(), ids=lambda x: x.name)
def test_a_variant_describes_itself(op: Op, chosen: Variant) -> None:
    assert chosen.summary.endswith(".")
    assert len(chosen.summary) <= 130
    assert list(ways(op, chosen))
    if BACKENDS[chosen.backend].compiler:
        assert chosen.targets
        assert "cuda" in chosen.needs
    else:
        assert chosen.targets == ()


def test_a_variant_without_a_caption_is_refused() -> None:
    def silent() -> None: ...

    with pytest.raises(ValueError, match="'silent' needs a docstring"):
        variant(backend="torch")(silent)  # type: ignore[arg-type]


def test_unknown_names_are_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'rmsnorm'"):
        op_named("rmsnrom")
    with pytest.raises(UnknownName, match="did you mean 'triton_block'"):
        op_named("add").variant_named("triton_blok")
