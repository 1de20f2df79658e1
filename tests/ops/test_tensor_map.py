"""Tensor maps that a launch hands over: as many as the kernel's parameter has, at any size that it accepts."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from cases import OWN, compile_problems, ways
from checking import bind

from kernelviz.core.errors import BadField
from kernelviz.measure.session.inputs import allocate
from kernelviz.ops import Op, Variant
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.tensor_map import Boxes, tensor_maps

MAPS = re.compile(r"__grid_constant__ Maps<(?P<count>[^>]+)> maps")
MAP_BYTES = 128


def number_of_maps(source: Path, macros: Mapping[str, str]) -> int | None:
    """Of the parameter of the file's kernel, for these macros; None if it has none."""
    if (found := MAPS.search(source.read_text())) is None:
        return None
    if found["count"].isdecimal():
        return int(found["count"])
    (macro, divisor, yes, no) = re.fullmatch(r"(\w+)(?: % (\d+))? \? (\d) : (\d)", found["count"]).groups()  # type: ignore[union-attr]
    number = int(macros[macro])
    return int(yes if (number % int(divisor) if divisor else number) else no)


class Launches:
    """A driver that notes of each launch how many maps the kernel has, and how many bytes of arrays it gets."""

    def __init__(self) -> None:
        self.maps: list[tuple[int | None, int]] = []

    def kernel(
        self, source: Path, name: str, defines: Mapping[str, str], shared_bytes: int, cluster: int, specific: bool
    ) -> Any:
        return source, defines

    def launch(
        self, kernel: Any, blocks: object, threads: object, cluster: int, shared_bytes: int, args: tuple[Any, ...]
    ) -> None:
        arrays = [one for one in args if isinstance(one, ctypes.Array)]
        self.maps.append((number_of_maps(*kernel), sum(map(ctypes.sizeof, arrays))))

    def resident(self, kernel: Any, threads: int, cluster: int, shared_bytes: int) -> int:
        return 132


def with_maps() -> Iterator[tuple[Op, Variant]]:
    for op, variant in OWN:
        if variant.backend == "cuda" and "tma" in variant.techniques:
            yield op, variant


@pytest.mark.parametrize(("op", "variant"), tuple(with_maps()), ids=lambda one: one.name)
def test_a_kernel_gets_as_many_maps_as_its_parameter_has(
    op: Op, variant: Variant, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Launches()
    monkeypatch.setattr(nvrtc, "active", driver)
    assert ways(op, variant)
    for problem in compile_problems(op, variant):
        directed = op.of(problem)
        try:
            bind(variant, problem, allocate(directed.inputs, problem, torch.device("cpu")))()
        except BadField:
            continue
    assert driver.maps
    for count, array_bytes in driver.maps:
        assert array_bytes == MAP_BYTES * (count or 0)


def test_a_tensor_of_the_processor_has_maps_of_zeros() -> None:
    maps = tensor_maps([Boxes(torch.zeros((8, 64), dtype=torch.bfloat16), 8)] * 2)
    assert ctypes.sizeof(maps) == 2 * MAP_BYTES
    assert not any(maps)
