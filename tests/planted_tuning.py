"""A variant of `add` with a configuration space that holds every kind of trouble. Given to a worker as a plug-in."""

import os
import time

from kernelviz.ops import Launch, variant
from kernelviz.ops.kernels.nvrtc import DoesNotLaunch

BLOCKS = (64, 32, 128, 256, 512, 1024, 2048, 4096)


def admits(configuration, problem) -> str | None:
    """A block larger than the vector is the whole vector again."""
    return "the block is larger than the vector" if configuration["block"] > problem.sizes["n"] else None


@variant(op="add", backend="torch", space={"block": BLOCKS, "way": (0, 1, 2, 3)}, admits=admits)
def in_blocks(x_N, y_N, *, block: int = 64, way: int = 0) -> Launch:
    """The sum, a block at a time; `way` 2 asks for too much memory, 3 forgets an element, 1 goes backwards."""
    import torch

    if way == 2:
        raise DoesNotLaunch(f"out of resource: shared memory, required: {4 * block * 1024}, limit: 232448")
    out_N = torch.empty_like(x_N)
    starts = range(0, x_N.numel(), block)
    pieces = [tuple(t[i : i + block] for t in (x_N, y_N, out_N)) for i in (reversed(starts) if way == 1 else starts)]
    # Once more for every piece: 1,024 additions instead of one are told apart on a machine that does something else, too.
    pieces *= len(pieces)

    def launch():
        for x, y, out in pieces:
            torch.add(x, y, out=out)
        if way == 3:
            out_N[-1] = 0
        return out_N

    return launch


@variant(op="add", backend="torch", space={"how": (0, 1, 2, 3, 4, 5)})
def breaks(x_N, y_N, *, how: int = 0) -> Launch:
    """Right (0 and 5), raises an exception (1), ends its process (2), never returns (3), is wrong (4)."""
    import torch

    out_N = torch.empty_like(x_N)

    def launch():
        if how == 1:
            raise RuntimeError("an exception of a configuration")
        if how == 2:
            os._exit(7)
        if how == 3:
            time.sleep(3600)
        torch.add(x_N, y_N, out=out_N)
        if how == 4:
            out_N[-1] = 0
        return out_N

    return launch


@variant(op="add", backend="torch", space={"number": tuple(range(40))})
def many(x_N, y_N, *, number: int = 0) -> Launch:
    """Forty configurations that are the same, but every seventh raises an exception."""
    import torch

    out_N = torch.empty_like(x_N)

    def launch():
        if number % 7 == 5:
            raise RuntimeError("an exception of a configuration")
        return torch.add(x_N, y_N, out=out_N)

    return launch


@variant(op="add", backend="torch", space={"broken": (1, 2, 3)})
def never_right(x_N, y_N, *, broken: int = 1) -> Launch:
    """Wrong with every configuration."""
    import torch

    out_N = torch.empty_like(x_N)
    return lambda: torch.sub(x_N, y_N, out=out_N)
