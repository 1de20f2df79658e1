"""What a run of a table of docs/kernels.md measures."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelviz.core import Method, RunRequest

LIBRARY = "torch_eager"
SECONDS = Method(budget_s=0.4)
ENERGY = Method(figures=("cold", "energy"))
SUSTAINED = Method(figures=("cold", "energy"), clock="sustained", load_s=10.0)


@dataclass(frozen=True)
class Documented:
    """A run of a table. `variants`: None is what the op measures by default."""

    op: str
    sizes: dict[str, str]
    variants: tuple[str, ...] | None = None
    dtype: str | None = "bf16"
    compute: str | None = None
    direction: str = "forward"
    method: Method = field(default=SECONDS)

    def request(self) -> RunRequest:
        return RunRequest(
            op=self.op,
            sizes=self.sizes,
            variants=self.variants,
            dtype=self.dtype,
            compute=self.compute,
            direction=self.direction,
            device="cuda:0",
        )
