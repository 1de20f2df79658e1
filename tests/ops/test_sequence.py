"""Two launches one after the other: the second one reads what the first one returns, wherever that is."""

from __future__ import annotations

import torch

from kernelviz.ops.kernels.sequence import in_sequence


def test_the_second_launch_is_bound_once_to_a_result_that_stays_in_its_place() -> None:
    x, y, bound = torch.ones(4), torch.empty(4), []

    def first() -> torch.Tensor:
        return torch.add(x, 1, out=y)

    def bind(result: torch.Tensor) -> object:
        bound.append(result.data_ptr())
        return lambda: result * 3

    launch = in_sequence(first, bind)  # type: ignore[arg-type]
    assert not bound, "nothing is computed before the first call"
    assert torch.equal(launch(), torch.full((4,), 6.0))  # type: ignore[arg-type]
    x.fill_(2)
    assert torch.equal(launch(), torch.full((4,), 9.0))  # type: ignore[arg-type]
    assert len(bound) == 1


def test_it_is_bound_again_to_a_result_in_another_place() -> None:
    places = [torch.ones(4), torch.full((4,), 2.0)]
    calls: list[torch.Tensor] = []

    def first() -> torch.Tensor:
        calls.append(places[len(calls) % 2])
        return calls[-1]

    launch = in_sequence(first, lambda result: lambda: result + 0)
    assert [float(launch()[0]) for _ in range(4)] == [1.0, 2.0, 1.0, 2.0]
