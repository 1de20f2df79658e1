"""A rank process: it joins the process group, calls the function of the workload and sends its answer.

python -P -m kernelviz.measure.workloads.rank_process DESCRIPTOR REQUEST
"""

import datetime
import faulthandler
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from kernelviz.core.errors import one_line
from kernelviz.measure.workloads.messages import CurrentVariant, RankAnswer, RankRaised, RankRequest, Sender
from kernelviz.measure.workloads.process_context import (
    ProcessContext,
    end_without_waiting,
    is_out_of_memory,
    prefer_this_process_when_memory_is_short,
)
from kernelviz.workloads.catalog import CollectiveBackend, Sample, Series, with_plugins, workload_named

_TIMEOUT = datetime.timedelta(minutes=5)
"""After so long a collective that another rank does not join is an error; before that, the guard kills a hung group."""


class RankProcessContext(ProcessContext):
    """The context of one rank. `store`: torch's key-value store of the group; None for a process of its own."""

    def __init__(self, request: RankRequest, sender: Sender, headline: str) -> None:
        super().__init__(
            device=request.device,
            method=request.method,
            headline=headline,
            point="",
            folder=Path(request.folder),
            sender=sender,
            current=CurrentVariant(request.current)
            if request.rank == 0
            else CurrentVariant(request.current + ".other"),
        )
        self._request = request
        self._store: Any = None
        self._agreed = 0
        self._barriers = 0

    @property
    def rank(self) -> int:
        return self._request.rank

    @property
    def world_size(self) -> int:
        return self._request.world_size

    @property
    def backend(self) -> CollectiveBackend | None:
        return self._request.backend

    def join(self) -> None:
        """Initialise the process group."""
        if self.backend is None:
            return
        import torch
        import torch.distributed as dist

        self._store = dist.FileStore(self._request.rendezvous, self.world_size)
        self._store.set_timeout(_TIMEOUT)
        # With `device_id`, NCCL makes its communicator now, so that the first collective does not contain that (torch ≥ 2.3).
        bound = {"device_id": torch.device(self._device.id)} if self._device.kind == "cuda" else {}
        dist.init_process_group(
            self.backend,
            store=dist.PrefixStore("group", self._store),
            rank=self.rank,
            world_size=self.world_size,
            timeout=_TIMEOUT,
            **bound,
        )

    def leave(self) -> None:
        """Destroy the process group."""
        if self.backend is not None:
            import torch.distributed as dist

            self.synchronize()
            self.barrier()
            dist.destroy_process_group()

    def barrier(self) -> None:
        if self._store is None:
            return
        self._barriers += 1
        key = f"barrier/{self._barriers}"
        if self._store.add(key, 1) == self.world_size:
            self._store.set(f"{key}/open", "1")
        self._store.wait([f"{key}/open"])

    def rounds(
        self, calls: Mapping[str, Callable[[], Sample]], *, baseline: str | None = None, warm_up: int = 1
    ) -> Mapping[str, Series]:
        self.barrier()
        return super().rounds(calls, baseline=baseline, warm_up=warm_up)

    def _another(self, number: int, began_s: float, variants: int) -> bool:
        """As rank 0 decides, so that all ranks have the same rounds."""
        if self._store is None:
            return super()._another(number, began_s, variants)
        self._agreed += 1
        key = f"round/{self._agreed}"
        if self.rank == 0:
            another = super()._another(number, began_s, variants)
            self._store.set(key, "1" if another else "0")
            return another
        return bool(self._store.get(key) == b"1")

    def progress(self, step: Any, variant: str = "", done: int | None = None, of: int | None = None) -> None:
        if self.rank == 0:
            super().progress(step, variant, done, of)
        else:
            self._said_s = time.monotonic()


def main(arguments: list[str]) -> None:
    """Run the process. `arguments`: the descriptor of the pipe for messages, and the file with the request."""
    faulthandler.enable()
    prefer_this_process_when_memory_is_short()
    sender = Sender(int(arguments[0]))
    try:
        request = msgspec.json.decode(Path(arguments[1]).read_bytes(), type=RankRequest)
        declared = workload_named(request.workload, with_plugins(request.plugins))
        function = declared.function(request.function)
        context = RankProcessContext(request, sender, declared.workload.headline.name)
        context.use_device()
        context.join()
        answer = function(context, request.arguments)
        context.leave()
        sender.send(RankAnswer(value=answer))
    except BaseException as error:
        traceback.print_exc()
        sender.send(RankRaised(kind=type(error).__name__, text=one_line(error), out_of_memory=is_out_of_memory(error)))
    end_without_waiting()


if __name__ == "__main__":
    main(sys.argv[1:])
