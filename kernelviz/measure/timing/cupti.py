"""CUPTI's activity records, read directly from its buffers.

The C interface is used by ctypes, with the record layouts of cupti-python, because that package creates an object for every
record, which takes 20 us, and a block has dozens. Callbacks are registered once per process (re-registering corrupts head
records after idle, pytorch#192021). The activity kinds are enabled before a session and disabled after it: while they are
enabled, a host call takes 5.5 instead of 4.9 us.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kernelviz.core.driver_operations import MEMCPY, MEMSET
from kernelviz.measure.timing.trace import Record, TraceError

BUFFER_BYTES = 8 * 2**20
"""Room for 38,000 kernel records, more than any session has; CUPTI requests another buffer when one is full."""

_REQUESTED = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t)
)
_RETURNED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_FORCED = 1
Rows = NDArray[Any]


class CuptiError(Exception):
    """An error that CUPTI returned, by its own name. `code`: its CUptiResult."""

    def __init__(self, name: str, code: int, function: str) -> None:
        self.code = code
        super().__init__(f"{name} ({code}) in {function}")


class CuptiTracer:
    """Traces the device by CUPTI while some work runs. There is one in a process: `shared()`."""

    name = "cupti"
    _registered: CuptiTracer | None = None

    def __init__(self) -> None:
        """Raises ImportError without cupti-python or its library, CuptiError when CUPTI refuses."""
        from cuda.pathfinder import load_nvidia_dynamic_lib
        from cupti import cupti

        if CuptiTracer._registered is not None:
            raise RuntimeError("CUPTI's callbacks are registered once per process; use CuptiTracer.shared()")
        self._library = ctypes.CDLL(load_nvidia_dynamic_lib("cupti").abs_path)
        kinds = cupti.ActivityKind
        self._kinds = (int(kinds.CONCURRENT_KERNEL), int(kinds.MEMCPY), int(kinds.MEMSET))
        layouts = (cupti.activity_kernel10_dtype, cupti.activity_memcpy6_dtype, cupti.activity_memset4_dtype)
        self._layouts = dict(zip(self._kinds, map(np.dtype, layouts), strict=True))
        self._buffers: dict[int, ctypes.Array[ctypes.c_uint64]] = {}
        self._free: list[int] = []
        self._raw: list[bytes] = []
        self._dropped = 0
        self.records_seen = 0
        # Referenced for the life of the process, because CUPTI calls them from its own threads.
        self._on_request, self._on_return = _REQUESTED(self._give_buffer), _RETURNED(self._take_buffer)
        self._call("cuptiActivityRegisterCallbacks", self._on_request, self._on_return)
        CuptiTracer._registered = self

    @classmethod
    def shared(cls) -> CuptiTracer:
        """The process's tracer, created at the first call."""
        return cls._registered or cls()

    def trace(self, work: Callable[[], object]) -> list[Record]:
        """Records of all activity on the device while `work` ran, in no order. Nothing else may run on the device.

        Errors: TraceError when CUPTI dropped records or returned a record of another kind; CuptiError.
        """
        torch.cuda.synchronize()
        self._raw, self._dropped = [], 0
        for kind in self._kinds:
            self._call("cuptiActivityEnable", ctypes.c_int(kind))
        try:
            work()
            torch.cuda.synchronize()
            self._call("cuptiActivityFlushAll", ctypes.c_uint32(_FORCED))
        finally:
            for kind in self._kinds:
                self._call("cuptiActivityDisable", ctypes.c_int(kind))
        raw, self._raw = self._raw, []
        if self._dropped:
            raise TraceError(f"CUPTI dropped {self._dropped} records")
        records = [record for data in raw for record in self._records(data)]
        self.records_seen += len(records)
        return records

    def _call(self, function: str, *arguments: Any) -> None:
        code = getattr(self._library, function)(*arguments)
        if code:
            message = ctypes.c_char_p()
            self._library.cuptiGetResultString(ctypes.c_int(code), ctypes.byref(message))
            raise CuptiError((message.value or b"unknown error").decode(), code, function)

    def _give_buffer(self, buffer: Any, size: Any, most_records: Any) -> None:
        if not self._free:
            memory = (ctypes.c_uint64 * (BUFFER_BYTES // 8))()  # records are aligned to 8 bytes
            self._buffers[ctypes.addressof(memory)] = memory
            self._free.append(ctypes.addressof(memory))
        buffer[0], size[0], most_records[0] = self._free.pop(), BUFFER_BYTES, 0

    def _take_buffer(self, context: int | None, stream: int, buffer: int, size: int, valid_bytes: int) -> None:
        if valid_bytes:
            self._raw.append(ctypes.string_at(buffer, valid_bytes))
        self._free.append(buffer)
        dropped = ctypes.c_size_t()
        self._library.cuptiActivityGetNumDroppedRecords(
            ctypes.c_void_p(context), ctypes.c_uint32(stream), ctypes.byref(dropped)
        )
        self._dropped += dropped.value

    def _records(self, data: bytes) -> list[Record]:
        """The records of one buffer; they are contiguous, each as long as the layout of its kind."""
        kernel = self._kinds[0]
        layout = self._layouts[kernel]
        if len(data) % layout.itemsize == 0:
            rows: Rows = np.frombuffer(data, dtype=layout)
            if (rows["kind"] == kernel).all():
                return _kernel_records(rows)
        copies: list[Record] = []
        kernels: list[bytes] = []
        at = 0
        while at < len(data):
            kind = int.from_bytes(data[at : at + 4], "little")
            if kind not in self._layouts:
                raise TraceError(f"CUPTI gave a record of kind {kind}, which was not asked for")
            whole = data[at : at + self._layouts[kind].itemsize]
            if kind == kernel:
                kernels.append(whole)
            else:
                rows = np.frombuffer(whole, dtype=self._layouts[kind])
                start, end, stream = (int(rows[name][0]) for name in ("start", "end", "stream_id"))
                copies.append(Record(MEMCPY if kind == self._kinds[1] else MEMSET, start, end, stream=stream))
            at += len(whole)
        return copies + _kernel_records(np.frombuffer(b"".join(kernels), dtype=layout))


def _kernel_records(rows: Rows) -> list[Record]:
    """Records of kernel activities. All records of a kernel share one name string, which is read once."""
    names = {
        int(p): ctypes.string_at(int(p)).decode(errors="replace") if p else "unnamed" for p in np.unique(rows["name"])
    }
    grids = zip(rows["grid_x"].tolist(), rows["grid_y"].tolist(), rows["grid_z"].tolist(), strict=True)
    blocks = zip(rows["block_x"].tolist(), rows["block_y"].tolist(), rows["block_z"].tolist(), strict=True)
    shared = (rows["static_shared_memory"] + rows["dynamic_shared_memory"]).tolist()
    columns = (
        rows["name"].tolist(),
        rows["start"].tolist(),
        rows["end"].tolist(),
        rows["registers_per_thread"].tolist(),
        rows["stream_id"].tolist(),
        # 0 says nothing: driver 580 says it also of kernels whose code has local memory.
        [spilled or None for spilled in rows["local_memory_per_thread"].tolist()],
    )
    return [
        Record(names[name], start, end, grid, block, registers, memory, stream, spilled)
        for name, start, end, registers, stream, spilled, grid, block, memory in zip(
            *columns, grids, blocks, shared, strict=True
        )
    ]
