"""A model of feed-forward blocks under DistributedDataParallel, its step by variant, and a delay that is planted on purpose."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.functional import gelu
from torch.nn.parallel import DistributedDataParallel

SEED = 20261127
BUCKETS_MB = {"bucket_1": 1.0, "bucket_200": 200.0}
POWERSGD_RANK = 2
_SPIN_CYCLES = 10_000_000
Hook = Callable[[Any, Any], torch.futures.Future[torch.Tensor]]


class Block(nn.Module):
    """A feed-forward part of four times the width, added to its input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x_BD: torch.Tensor) -> torch.Tensor:
        return x_BD + self.down(gelu(self.up(x_BD)))


def blocks(count: int, width: int, device: torch.device) -> nn.Sequential:
    """The model, with the same weights on each rank."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        return nn.Sequential(*(Block(width) for _ in range(count))).to(device)


def rows_of(rank: int, batch: int, width: int, seed: int, device: torch.device) -> torch.Tensor:
    """The input of a rank: other rows for each."""
    return torch.randn(batch, width, generator=torch.Generator().manual_seed(seed + rank)).to(device)


class Delay:
    """Waits for a stated time on the device, where the exchange would be slow."""

    def __init__(self, seconds: float, device: torch.device) -> None:
        self.seconds, self._on_gpu = seconds, device.type == "cuda"
        self._cycles = round(seconds * _cycles_per_s(device)) if self._on_gpu and seconds > 0 else 0

    def __call__(self) -> None:
        """Wait, on a GPU in the current stream and without waiting for it here."""
        if self._on_gpu and self._cycles:
            torch.cuda._sleep(self._cycles)
        elif self.seconds > 0:
            time.sleep(self.seconds)


def _cycles_per_s(device: torch.device) -> float:
    """How many cycles the kernel of torch.cuda._sleep counts in a second, measured."""
    times = []
    for _ in range(3):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        torch.cuda._sleep(_SPIN_CYCLES)
        end.record()
        torch.cuda.synchronize(device)
        times.append(begin.elapsed_time(end) / 1e3)
    return _SPIN_CYCLES / min(times)


class DelayedHook:
    """A communication hook that delays each exchange of torch's hook. `stamps_ns`: of what its thread did, by the host's clock.

    On a GPU the delay is in a stream of its own, which the exchange waits for, so that the backward pass goes on. On a
    processor one thread delays and exchanges bucket after bucket; gloo has no streams.
    """

    def __init__(self, inner: Hook, state: Any, delay: Delay, device: torch.device) -> None:
        self._inner, self._state, self._delay = inner, state, delay
        self.stamps_ns: list[tuple[int, int]] = []
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" and delay.seconds > 0 else None
        self._thread = ThreadPoolExecutor(1) if device.type != "cuda" and delay.seconds > 0 else None

    def __call__(self, state: Any, bucket: Any) -> torch.futures.Future[torch.Tensor]:
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream):
                self._delay()
                return self._inner(self._state, bucket)
        if self._thread is not None:
            return self._later(bucket)
        return self._inner(self._state, bucket)

    def _later(self, bucket: Any) -> torch.futures.Future[torch.Tensor]:
        future: torch.futures.Future[torch.Tensor] = torch.futures.Future()

        def exchange() -> None:
            began_ns = time.time_ns()
            try:
                self._delay()
                exchanged = self._inner(self._state, bucket).wait()
                self.stamps_ns.append((began_ns, time.time_ns()))
                future.set_result(exchanged)
            except Exception as error:
                future.set_exception(error)  # type: ignore[arg-type]

        if self._thread is not None:
            self._thread.submit(exchange)
        return future


class Step:
    """A training step without optimizer, of one variant. `delay_s`: of each exchange."""

    def __init__(
        self, variant: str, model: nn.Module, rows_BD: torch.Tensor, ranks: int, delay: Delay, *, seed: int = SEED
    ) -> None:
        self.variant, self._rows, self._ranks, self._delay = variant, rows_BD, ranks, delay
        device = rows_BD.device
        of_gpu: dict[str, Any] = {"device_ids": [device.index]} if device.type == "cuda" else {}
        sized: dict[str, Any] = {"bucket_cap_mb": BUCKETS_MB[variant]} if variant in BUCKETS_MB else {}
        self._ddp: Any = DistributedDataParallel(model, gradient_as_bucket_view=True, **of_gpu, **sized)
        self._device = device
        self._hook = self._registered()

    def _registered(self) -> DelayedHook | None:
        """The hook, where the variant has one or a delay is planted; else torch exchanges buckets by itself."""
        inner: Hook
        match self.variant:
            case "no_sync" | "after_backward":
                return None
            case "bf16_hook":
                inner, state = default_hooks.bf16_compress_hook, None
            case "powersgd_hook":
                inner = powerSGD_hook.powerSGD_hook
                state = powerSGD_hook.PowerSGDState(
                    process_group=None,
                    matrix_approximation_rank=POWERSGD_RANK,
                    start_powerSGD_iter=2,
                    min_compression_rate=1,
                    random_seed=SEED,
                )
            case _:
                if self._delay.seconds <= 0:
                    return None
                inner, state = default_hooks.allreduce_hook, None
        hook = DelayedHook(inner, state, self._delay, self._device)
        self._ddp.register_comm_hook(None, _function_of(hook))
        return hook

    def __call__(self) -> None:
        """Make the gradients anew."""
        alone = self.variant in ("no_sync", "after_backward")
        context: AbstractContextManager[Any] = self._ddp.no_sync() if alone else nullcontext()
        self._ddp.zero_grad(set_to_none=True)
        with context:
            dtype = torch.bfloat16
            with torch.autocast(self._device.type, dtype, enabled=self._device.type == "cuda"):
                loss = self._ddp(self._rows).float().square().mean()
            loss.backward()
        if self.variant == "after_backward":
            self._exchange()

    def _exchange(self) -> None:
        grads = [p.grad for p in self._ddp.parameters() if p.grad is not None]
        flat = torch.cat([grad.flatten() for grad in grads])
        self._delay()
        dist.all_reduce(flat)
        flat /= self._ranks
        torch._foreach_copy_(
            grads, [part.view_as(g) for part, g in zip(flat.split([g.numel() for g in grads]), grads, strict=True)]
        )

    def stamped(self) -> list[tuple[int, int]]:
        """What a thread of the hook did since the last call, in nanoseconds of the host's clock; torch.profiler does not
        see it."""
        stamps, own = [], self._hook
        if own is not None:
            stamps, own.stamps_ns = own.stamps_ns, []
        return stamps

    def gradients(self) -> torch.Tensor:
        """The gradients of the last step, as one vector."""
        return torch.cat([p.grad.detach().flatten() for p in self._ddp.parameters() if p.grad is not None]).clone()

    def sent_bytes(self) -> int:
        """What a rank gives to the collectives in a step."""
        parameters = [p for p in self._ddp.parameters() if p.requires_grad]
        numbers = sum(p.numel() for p in parameters)
        match self.variant:
            case "no_sync":
                return 0
            case "bf16_hook":
                return 2 * numbers
            case "powersgd_hook":
                # Each parameter is a matrix of n × m, which is sent as r (n + m) numbers.
                return sum(4 * min(POWERSGD_RANK, *p.shape) * (p.shape[0] + p.shape[1]) for p in parameters)
            case _:
                return 4 * numbers


def _function_of(hook: DelayedHook) -> Hook:
    """A function, because DistributedDataParallel reads the annotations and the name of a hook."""

    def delayed_hook(state: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        return hook(state, bucket)

    return delayed_hook
