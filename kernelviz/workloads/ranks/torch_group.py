"""What rank functions share: sums over ranks, meeting before a timed region, and copies between the devices of two ranks."""

import torch
import torch.distributed as dist

from kernelviz.workloads.catalog import MeasuringContext


def add(tensor: torch.Tensor) -> None:
    """Replace the tensor by its sum over all ranks."""
    dist.all_reduce(tensor)


class Meeting:
    """Lets all ranks begin a timed region together: after a sum of one number, none of them waits for another."""

    def __init__(self, context: MeasuringContext) -> None:
        self._context, self._token = context, torch.zeros(1, device=context.torch_device)

    def __call__(self) -> None:
        self._token.zero_()
        add(self._token)
        self._context.synchronize()


def gathered(tensor: torch.Tensor, ranks: int) -> list[torch.Tensor]:
    """The tensors of all ranks, by rank."""
    all_of = [torch.empty_like(tensor) for _ in range(ranks)]
    dist.all_gather(all_of, tensor)
    return all_of


class PeerCopy:
    """Copies as many bytes to the other device of two as come from there, at the same time. `devices`: those of the plan.

    On GPUs, each rank writes to memory of the other device by its copy engine (`peer_access`: directly, without the host's
    memory). On a processor, the ranks send and receive by gloo.
    """

    def __init__(self, context: MeasuringContext, devices: list[str], rank: int, size_bytes: int) -> None:
        self._rank, self._on_gpu = rank, context.device.kind == "cuda"
        own = torch.device(context.torch_device)
        other = torch.device(devices[1 - rank]) if self._on_gpu else own
        self._source = torch.ones(size_bytes, dtype=torch.uint8, device=own)
        self._target = torch.zeros(size_bytes, dtype=torch.uint8, device=other)
        self.peer_access = bool(torch.cuda.can_device_access_peer(own, other)) if self._on_gpu else True

    def __call__(self) -> None:
        if self._on_gpu:
            self._target.copy_(self._source, non_blocking=True)
            return
        sending = dist.isend(self._source, 1 - self._rank)
        receiving = dist.irecv(self._target, 1 - self._rank)
        for work in (sending, receiving):
            if work is not None:
                work.wait()

    @property
    def arrived(self) -> bool:
        """Whether the bytes that this rank's copy wrote, or that it received, are those of the other side."""
        return bool((self._target == 1).all())
