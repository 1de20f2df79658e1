"""Variants of `add` that compile for long, crash their compiler, or want a GPU. Given to compiler processes as a plug-in."""

import os
import signal
import time

from kernelviz.ops import Launch, variant


@variant(op="add", backend="triton")
def compiles_for_long(x_N, y_N) -> Launch:
    """Its compilation does not end."""
    time.sleep(600)
    return lambda: x_N


@variant(op="add", backend="triton")
def crashes_its_compiler(x_N, y_N) -> Launch:
    """Its process is killed, as by the kernel when memory is short."""
    os.kill(os.getpid(), signal.SIGKILL)
    return lambda: x_N


@variant(op="add", backend="triton")
def wants_a_gpu(x_N, y_N) -> Launch:
    """It reads a number from the GPU."""
    count = int(x_N.sum().item())
    return lambda: x_N + count


@variant(op="add", backend="triton")
def takes_memory(x_N, y_N) -> Launch:
    """It takes more memory than a compiler process may have."""
    block = bytearray(5 * 2**30)
    return lambda: x_N + len(block)


@variant(op="add", backend="triton")
def compiles_for_a_second(x_N, y_N) -> Launch:
    """Its compilation takes a second wherever it is."""
    time.sleep(1)
    return lambda: x_N + y_N
