"""`copy` of vectors that do not begin at aligned addresses: the tensors, the plan, what refuses them, and the kernel for them."""

from __future__ import annotations

import pytest
import torch
from checking import inputs_of
from emulator import MODES, Emulator, Grid, needs_compiler, unwritten

from kernelviz.bench.planning import problems
from kernelviz.core.errors import BadField
from kernelviz.core.problem import Problem
from kernelviz.core.reasons import SizeTooLarge
from kernelviz.core.request import RunRequest
from kernelviz.core.run import Device
from kernelviz.core.sizes import expand, written
from kernelviz.ops import op_named
from kernelviz.ops.copy import cuda_offset
from kernelviz.ops.copy.offset import elements_before_16_bytes, empty_at, require_16_bytes

OP = op_named("copy")
DEVICE = Device(id="cpu", kind="cpu", name="some processor", uuid="u")
KINDS = {"fp32": (torch.float32, "float"), "fp16": (torch.float16, "__half"), "bf16": (torch.bfloat16, "__nv_bfloat16")}


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("offset_bytes", [0, 4, 16, 60])
def test_both_vectors_begin_at_the_offset(offset_bytes: int, dtype: str) -> None:
    problem = OP.problem({"n": 131, "o": offset_bytes}, dtype)
    (x_N,) = inputs_of(OP, problem)
    y_N = OP.variant_named("torch_eager").bind(x_N, **OP.variant_named("torch_eager").keywords(problem))()
    assert isinstance(y_N, torch.Tensor)
    for tensor in (x_N, y_N):
        assert tensor.data_ptr() % 64 == offset_bytes % 64
        assert tensor.storage_offset() * tensor.element_size() == offset_bytes
    assert torch.equal(x_N, y_N)
    assert elements_before_16_bytes(x_N) * x_N.element_size() == -offset_bytes % 16


def test_an_offset_of_0_is_the_problem_of_today() -> None:
    plain = OP.problem({"n": 64}, "fp32")
    assert plain.sizes == {"n": 64}
    assert plain.key == OP.problem({"n": 64, "o": 0}, "fp32").key == "copy fp32 n=64"
    assert OP.problem({"n": 64, "o": 4}, "fp32").key == "copy fp32 n=64 o=4"


def planned(**sizes: str) -> list[dict[str, int]]:
    return [p.sizes for p in problems(OP, DEVICE, RunRequest(op="copy", sizes=sizes))]


def test_a_plan_states_offsets_only_if_one_is_not_0() -> None:
    assert planned(n="64") == planned(n="64", o="0") == [{"n": 64}]
    assert planned(n="64", o="0,8") == [{"n": 64, "o": 0}, {"n": 64, "o": 8}]


def test_sizes_of_documents_without_the_axis_become_texts_with_it() -> None:
    assert written(("n", "o"), [{"n": 64}, {"n": 128}]) == {"n": "64,128", "o": "0"}
    assert expand(("n", "o"), {"n": "64", "o": "0..8:4"}) == [{"n": 64, "o": o} for o in (0, 4, 8)]
    with pytest.raises(BadField, match=r"size o: .*doubles.*0..64:4"):
        expand(("n", "o"), {"n": "64", "o": "0..8"})


@pytest.mark.parametrize(
    ("sizes", "dtype", "remedy"),
    [
        ({"n": 64, "o": 2}, "fp32", "size o: .*multiples of 4 bytes"),
        ({"n": 64, "o": 3}, "bf16", "size o: .*multiples of 2 bytes"),
        ({"n": 64, "o": -4}, "fp32", "size o: .*at least 0"),
        ({"n": 0, "o": 4}, "fp32", "size n: .*at least 1"),
        ({"o": 4}, "fp32", "size n"),
    ],
)
def test_an_offset_that_no_vector_has_is_refused(sizes: dict[str, int], dtype: str, remedy: str) -> None:
    with pytest.raises(BadField, match=remedy):
        OP.problem(sizes, dtype)


def test_vectorised_variants_refuse_or_take_addresses_that_are_not_aligned() -> None:
    odd = OP.problem({"n": 64, "o": 4}, "fp32")
    assert isinstance(OP.variant_named("torch_compile").refuses(odd), SizeTooLarge)
    assert OP.variant_named("torch_compile").refuses(Problem(op="copy", sizes={"n": 64}, dtype="fp32")) is None
    x_N = empty_at(torch.empty(64), 4)
    for bind in (cuda_offset.bind_unrolled, cuda_offset.bind_bulk):
        with pytest.raises(BadField, match=r"size o: '4'.*16 bytes.*cuda_vec16"):
            bind(x_N, 4)
    require_16_bytes(empty_at(torch.empty(64), 32), 32)


@needs_compiler
@pytest.mark.parametrize("dtype", KINDS)
def test_the_kernel_copies_what_is_before_and_after_whole_vectors(dtype: str, emulator: Emulator) -> None:
    kind, element = KINDS[dtype]
    program = emulator.program(cuda_offset.SOURCE, "copy_peeled", {"ELEMENT": element})
    for n in (1, 2, 7, 1031):
        for offset_bytes in (0, 4, 8, 12):
            skipped = offset_bytes // kind.itemsize
            memory, out = torch.randn(n + 64).to(kind), unwritten((n + 64,), kind)
            assert memory.data_ptr() % 16 == out.data_ptr() % 16 == 0
            x_N = memory[skipped : skipped + n]
            head = min(n, elements_before_16_bytes(x_N))
            for mode in MODES:
                out.view(torch.int8).fill_(-1)
                arguments = [x_N, out[skipped : skipped + n], n, head]
                assert program.run(arguments, Grid(blocks=max(1, -(-n // 256)), threads=256), mode) == ""
                assert torch.equal(out[skipped : skipped + n], x_N)
                assert out[:skipped].isnan().all()
                assert out[skipped + n :].isnan().all()


@needs_compiler
@pytest.mark.parametrize("before", ["if (i < head)", "if (tail < n)", "if (i < vectors)"])
def test_elements_that_are_left_out_are_found(before: str, emulator: Emulator) -> None:
    text = cuda_offset.SOURCE.read_text()
    assert before in text
    text = text.replace(before, "if (false)")
    program = emulator.program(cuda_offset.SOURCE, "copy_peeled", {"ELEMENT": "float"}, text=text)
    x_N, out = torch.randn(127)[1:], unwritten((127,), torch.float32)
    assert program.run([x_N, out[1:], 126, 3], Grid(blocks=1, threads=256)) or not torch.equal(out[1:], x_N)
