"""Variants of `add` with a planted fault. Each must end in its own Failure and must not affect other variants.

Given to a worker as a plug-in, never imported by a test process.
"""

import ctypes
import os
import sys

from kernelviz.ops import Launch, variant


@variant(op="add", backend="torch")
def honest(x_N, y_N) -> Launch:
    """A plain addition."""
    import torch

    out_N = torch.empty_like(x_N)
    return lambda: torch.add(x_N, y_N, out=out_N)


@variant(op="add", backend="torch")
def aborts(x_N, y_N) -> Launch:
    """Ends its process by abort() in the call."""
    return lambda: os.abort()


@variant(op="add", backend="torch")
def hangs(x_N, y_N) -> Launch:
    """Sleeps in C while holding Python's global interpreter lock."""
    return lambda: ctypes.PyDLL(None).sleep(3600)


@variant(op="add", backend="torch")
def runs_out_of_memory(x_N, y_N) -> Launch:
    """Allocates a petabyte."""
    import torch

    return lambda: torch.empty(2**50, dtype=torch.uint8, device=x_N.device)


@variant(op="add", backend="torch")
def writes_nothing(x_N, y_N) -> Launch:
    """Returns a buffer that it never writes, after a copy elsewhere to look busy."""
    import torch

    out_N, other_N = torch.zeros_like(x_N), torch.empty_like(x_N)

    def launch():
        torch.add(x_N, 1, out=other_N)
        return out_N

    return launch


@variant(op="add", backend="torch")
def is_wrong(x_N, y_N) -> Launch:
    """Subtracts."""
    import torch

    out_N = torch.empty_like(x_N)
    return lambda: torch.sub(x_N, y_N, out=out_N)


@variant(op="add", backend="torch")
def remembers(x_N, y_N) -> Launch:
    """Computes once, in the bind, and copies that answer ever after."""
    import torch

    kept_N, out_N = x_N + y_N, torch.empty_like(x_N)
    return lambda: out_N.copy_(kept_N)


@variant(op="add", backend="torch")
def changes_its_input(x_N, y_N) -> Launch:
    """Adds in place, into x, and declares nothing."""
    return lambda: x_N.add_(y_N)


@variant(op="add", backend="torch", mutates=("x_N",))
def adds_in_place(x_N, y_N) -> Launch:
    """Adds into x, and declares it: x is restored before every call, so this one is right."""
    return lambda: x_N.add_(y_N)


@variant(op="add", backend="torch")
def has_another_shape(x_N, y_N) -> Launch:
    """Returns half of the sum."""
    return lambda: (x_N + y_N)[: max(1, x_N.numel() // 2)]


@variant(op="add", backend="torch")
def has_gaps(x_N, y_N) -> Launch:
    """Writes the sum into every second element of its own memory."""
    import torch

    out_N = torch.empty(2 * x_N.numel(), dtype=x_N.dtype)[::2]
    return lambda: torch.add(x_N, y_N, out=out_N)


@variant(op="transpose", backend="torch")
def is_a_view(x_MN) -> Launch:
    """Copies nothing."""
    return lambda: x_MN.t()


@variant(op="add", backend="torch")
def raises_in_a_timed_block(x_N, y_N) -> Launch:
    """Passes the check and raises in a block that counts, however many calls were made before it."""

    def launch():
        # In Python 3.11, the comprehension of the block is a frame between the block and the iteration.
        if "_block" in (sys._getframe(2).f_code.co_name, sys._getframe(3).f_code.co_name):
            raise ValueError("in a block")
        return x_N + y_N

    return launch


@variant(op="add", backend="torch")
def returns_none(x_N, y_N) -> Launch:
    """Adds, and forgets to return the sum."""

    def launch():
        x_N.add(y_N)

    return launch


@variant(op="add", backend="torch")
def computes_when_read(x_N, y_N) -> Launch:
    """Returns a tensor that adds when somebody reads it, so that the call itself does nothing."""
    import torch

    class Later(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            now = tuple(x_N + y_N if isinstance(one, cls) else one for one in args)
            return func(*now, **(kwargs or {}))

    later_N = torch.empty_like(x_N).as_subclass(Later)
    return lambda: later_N


@variant(op="add", backend="torch")
def works_on_in_a_thread(x_N, y_N) -> Launch:
    """Starts a thread that adds a moment later, and does not wait for it."""
    import threading

    import torch

    out_N = torch.empty_like(x_N)

    def launch():
        thread = threading.Timer(0.01, lambda: torch.add(x_N, y_N, out=out_N))
        thread.daemon = True
        thread.start()
        return out_N

    return launch


@variant(op="add", backend="torch")
def remembers_by_content(x_N, y_N) -> Launch:
    """Recognises its inputs by their first and last numbers, and copies the sum that it computed for them before."""
    import torch

    known, out_N = {}, torch.empty_like(x_N)

    def launch():
        numbers = (x_N[0].item(), x_N[-1].item(), y_N[0].item(), y_N[-1].item())
        if numbers not in known:
            known[numbers] = x_N + y_N
            for _ in range(8):
                known[numbers] = known[numbers] * 2.0 * 0.5
        return out_N.copy_(known[numbers])

    return launch


@variant(op="add", backend="torch")
def returns_nothing_later(x_N, y_N) -> Launch:
    """Adds in the first calls, in which it expects to be checked; later its result has no element."""
    import torch

    calls, out_N = [0], torch.empty_like(x_N)

    def launch():
        calls[0] += 1
        if calls[0] < 30:
            return torch.add(x_N, y_N, out=out_N)
        return out_N[:0]

    return launch


@variant(op="add", backend="torch")
def works_every_37th_time(x_N, y_N) -> Launch:
    """Adds in the first calls, in which it expects to be checked, and then in every 37th."""
    import torch

    calls, out_N = [0], torch.empty_like(x_N)

    def launch():
        calls[0] += 1
        if calls[0] < 30 or calls[0] % 37 == 0:
            torch.add(x_N, y_N, out=out_N)
        return out_N

    return launch


@variant(op="add", backend="torch")
def binds_a_number(x_N, y_N) -> Launch:
    """Returns no function."""
    return 42


@variant(op="add", backend="torch")
def raises_half_a_character(x_N, y_N) -> Launch:
    """The message of its error cannot be encoded."""

    def launch():
        raise ValueError("half a \ud83d")

    return launch


@variant(op="add", backend="torch")
def raises_in_bind(x_N, y_N) -> Launch:
    """Raises before it is bound."""
    raise ValueError("no such configuration")


@variant(op="add", backend="torch")
def computes_in_half(x_N, y_N) -> Launch:
    """Adds in fp16 and stores fp32."""
    import torch

    out_N = torch.empty_like(x_N)
    return lambda: out_N.copy_(x_N.half() + y_N.half())


@variant(op="add", backend="torch")
def compiles_in_every_call(x_N, y_N) -> Launch:
    """Makes a new graph in each call."""
    import torch

    def launch():
        torch._dynamo.utils.counters["stats"]["unique_graphs"] += 1
        return torch.add(x_N, y_N)

    return launch


@variant(op="add", backend="torch")
def sleeps_on_the_host(x_N, y_N) -> Launch:
    """Sleeps a millisecond before it adds."""
    import time

    import torch

    out_N = torch.empty_like(x_N)

    def launch():
        time.sleep(1e-3)
        return torch.add(x_N, y_N, out=out_N)

    return launch


@variant(op="add", backend="torch")
def takes_long(x_N, y_N) -> Launch:
    """Sleeps a sixth of a second in each call."""
    import time

    import torch

    out_N = torch.empty_like(x_N)

    def launch():
        time.sleep(0.16)
        return torch.add(x_N, y_N, out=out_N)

    return launch
