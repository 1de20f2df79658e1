"""Facts of the machine code of cases: resources, occupancy, waves, main loops, and the techniques that variants declare.

nvdisasm reads the cubins in a process of its own with limits, because a cubin may come from a document of somebody else, and so
that the server answers meanwhile. What was read is remembered by the digest of the cubin.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from tempfile import TemporaryFile
from typing import Final

import msgspec
from msgspec.structs import replace

from kernelviz.bench.code import Code, Contents
from kernelviz.core import Device, DocumentError, Kernel, Result, Run, check_name
from kernelviz.core.chunks import parts
from kernelviz.core.code_facts import CaseFacts, CubinFacts, KernelOfCase, NoFactsReason
from kernelviz.core.configuration import base_name
from kernelviz.core.machine_code import KernelFacts, Technique
from kernelviz.core.run_cache import TableCache
from kernelviz.formats import limited_process
from kernelviz.machine_code import cubin_list
from kernelviz.machine_code.occupancy import WARP_THREADS, occupancy, waves
from kernelviz.machine_code.techniques import expected_on, techniques_of
from kernelviz.machine_code.tools import ToolUnavailable, tool_paths
from kernelviz.metrics.figures import figure_of
from kernelviz.ops import catalogue

MOST_CUBIN_BYTES: Final = 2 * 2**20
"""A larger cubin is not analysed. The largest of the catalogue has 0.2 MB."""
_BATCH = 64
"""Cubins that one process reads. 60 kernels take 2 s, the start of the process 0.5 s of it."""
_PROCESSOR_S = 60
_MOST_REMEMBERED = 2_000
"""Cubins whose facts stay in memory, at about 5 kB each."""
_MOST_THREADS = 1024
_ASK_AGAIN_S = 20.0
"""What was not here or had no tool is looked for again after this time."""


class FactsReading:
    """Facts of a run that a thread computes. `facts`: of every case, once `ended`."""

    def __init__(self) -> None:
        self.facts: tuple[CaseFacts, ...] = ()
        self.error: Exception | None = None
        self._ended = threading.Event()
        self._ended_s = 0.0

    @property
    def ended(self) -> bool:
        return self._ended.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait until it has ended, at most for these seconds; returns whether it has. Errors: what the computation raised."""
        ended = self._ended.wait(seconds)
        if self.error is not None:
            raise self.error
        return ended

    def end(self) -> None:
        self._ended_s = time.monotonic()
        self._ended.set()

    @property
    def outdated(self) -> bool:
        """Whether something was missing that may be here by now."""
        missing = any(case.reason in ("not_here", "no_tool") for case in self.facts)
        return self.ended and (missing or self.error is not None) and time.monotonic() - self._ended_s > _ASK_AGAIN_S


class CodeFacts:
    """The facts of cases of stored runs, of the runs that came with the package, and of documents."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self._readings: TableCache[list[FactsReading]] = TableCache(8)
        self._known: OrderedDict[str, CubinFacts] = OrderedDict()
        self._lock, self._analysing = threading.Lock(), threading.Lock()

    def of_run(self, run: Run, results: Iterable[Result] | None = None) -> tuple[CaseFacts, ...]:
        """The facts of these results, by default of all, in their order. It takes seconds for cubins that were not read yet. A
        case that has none says why."""
        chosen = tuple(run.results if results is None else results)
        cubins = self.of_cubins(run, _cubin_digests(chosen))
        declared: dict[tuple[str, str, str], frozenset[Technique] | None] = {}
        return tuple(_case_facts(result, run.environment.device, cubins, declared) for result in chosen)

    def of_cases(
        self,
        run: Run,
        variant: str | None = None,
        *,
        problem: str | None = None,
        problems: Sequence[str] | None = None,
        kernel: str | None = None,
    ) -> tuple[CaseFacts, ...]:
        """The facts of a variant, or of all variants, at these problems (by default all) and of this kernel (by default all).

        Errors: UnknownName for a variant, problem or kernel that the run does not have; BadField if the variant has no cubin.
        """
        if variant is not None:
            self._code.of_case(run, variant, problem=problem, problems=problems, kind="cubin", kernel=kernel)
        if problem is not None:
            check_name("problem", problem, [p.key for p in run.plan.problems], of=f"run {run.id!r}")
            problems = (problem,)
        cases = self.of_run(
            run,
            [
                r
                for r in run.results
                if variant in (None, r.variant) and (problems is None or r.problem.key in problems)
            ],
        )
        if kernel is None:
            return cases
        return tuple(
            replace(case, kernels=tuple(one for one in case.kernels if one.facts.name == kernel)) for case in cases
        )

    def reading(self, run: Run) -> FactsReading:
        """The facts of all cases of a run, computed by a thread; the same reading while the run does not change."""
        readings = self._readings.get(run, "facts", list)
        with self._lock:
            if not readings or readings[-1].outdated:
                readings[:] = [FactsReading()]
                threading.Thread(target=self._work, args=(run, readings[-1]), name="code-facts", daemon=True).start()
            return readings[-1]

    def _work(self, run: Run, reading: FactsReading) -> None:
        try:
            reading.facts = self.of_run(run)
        except Exception as error:  # the page shows it
            reading.error = error
        finally:
            reading.end()

    def of_cubins(self, run: Run, digests: Iterable[str]) -> Mapping[str, CubinFacts]:
        """The facts of cubins that the run names, by digest, or why there are none. It takes seconds for those not read yet."""
        return self._facts_of_cubins(dict.fromkeys(digests), self._code.contents_of(run))

    def _facts_of_cubins(self, digests: Iterable[str], contents: Contents) -> Mapping[str, CubinFacts]:
        """By digest. One thread reads at a time, so that several sessions do not read the same."""
        result: dict[str, CubinFacts] = {}
        with self._analysing:
            to_read: dict[str, bytes] = {}
            for digest in digests:
                if known := self._known.get(digest):
                    self._known.move_to_end(digest)
                    result[digest] = known
                elif (content := contents.get(digest)) is None:
                    result[digest] = CubinFacts(reason="not_here")
                elif len(content) > MOST_CUBIN_BYTES:
                    result[digest] = CubinFacts(reason="too_large")
                else:
                    to_read[digest] = content
            if to_read and not tool_paths("nvdisasm"):
                unavailable = CubinFacts(reason="no_tool", message=str(ToolUnavailable("nvdisasm")))
                return result | dict.fromkeys(to_read, unavailable)
            for batch in parts(list(to_read), _BATCH):
                for digest, facts in zip(batch, _read([to_read[d] for d in batch]), strict=True):
                    result[digest] = facts
                    if facts.reason != "no_tool":
                        self._known[digest] = facts
            while len(self._known) > _MOST_REMEMBERED:
                self._known.popitem(last=False)
        return result


def _read(cubins: Sequence[bytes]) -> list[CubinFacts]:
    """The facts of each cubin, read by a process of its own."""
    with TemporaryFile() as file:
        file.write(msgspec.msgpack.encode(list(cubins)))
        file.seek(0)
        try:
            answer = limited_process.call(cubin_list.from_standard_input, (), file, processor_s=_PROCESSOR_S)
        except DocumentError as error:
            return [CubinFacts(reason="unreadable", message=str(error))] * len(cubins)
    return msgspec.msgpack.decode(answer, type=list[CubinFacts])


def _cubin_digests(results: Iterable[Result]) -> Iterable[str]:
    for result in results:
        for code in result.code or ():
            yield from (a.digest for a in code.artifacts if a.kind == "cubin")


def _case_facts(
    result: Result,
    device: Device,
    cubins: Mapping[str, CubinFacts],
    declared: dict[tuple[str, str, str], frozenset[Technique] | None],
) -> CaseFacts:
    kernels: list[KernelOfCase] = []
    reason, message = _why_no_cubin(result, device), ""
    for code in result.code or ():
        for artifact in code.artifacts:
            if artifact.kind != "cubin":
                continue
            cubin = cubins[artifact.digest]
            if cubin.reason is not None:
                reason, message = cubin.reason, cubin.message
            named = tuple(one for one in cubin.kernels if one.name == code.kernel) or cubin.kernels
            kernels += [
                _launched(facts, artifact.digest, code.warps, code.shared_bytes, result, device) for facts in named
            ]
    architectures = {kernel.facts.architecture for kernel in kernels}
    return CaseFacts(
        result=result,
        multiprocessors=device.multiprocessors,
        kernels=tuple(kernels),
        declared=_declared(result, next(iter(architectures)), declared) if architectures else None,
        observed=frozenset[Technique]().union(*(techniques_of(kernel.facts) for kernel in kernels)),
        reason=reason,
        message=message,
    )


def _why_no_cubin(result: Result, device: Device) -> NoFactsReason | None:
    """Why a result names no cubin; None if it names one."""
    codes = result.code or ()
    if any(a.kind == "cubin" for code in codes for a in code.artifacts):
        return None
    if codes:
        return "no_machine_code" if device.kind == "cpu" else "no_cubin"
    return "library" if result.backend in ("torch", "library") else "not_captured"


def _launched(
    facts: KernelFacts, digest: str, warps: int | None, dynamic_bytes: int | None, result: Result, device: Device
) -> KernelOfCase:
    """A kernel with its launch: that of the longest traced kernel of its name."""
    same_name = [kernel for kernel in result.kernels if kernel.name == facts.name]
    launch = max(same_name, key=lambda kernel: kernel.duration_s or 0.0, default=Kernel(name=facts.name))
    threads: int | None = prod(launch.block) if launch.block else None
    if threads is None and facts.required_threads:
        threads = prod(facts.required_threads)
    if threads is None and warps is not None:
        threads = warps * WARP_THREADS
    shared_bytes = launch.shared_memory_bytes
    # Documents of earlier versions have too many dynamic bytes, or none, where a kernel was loaded for more or less than it uses.
    # So the trace counts, unless it has several kernels of that name.
    traced = {kernel.shared_memory_bytes for kernel in same_name} - {None}
    if len(traced) != 1 and dynamic_bytes is not None:
        shared_bytes = facts.own_shared_bytes + dynamic_bytes
    resident = None
    if threads is not None and 1 <= threads <= _MOST_THREADS and shared_bytes is not None:
        resident = occupancy(facts, threads, max(0, shared_bytes - facts.own_shared_bytes))
    blocks = prod(launch.grid) if launch.grid else 0
    in_clusters = facts.cluster is not None or "cluster" in techniques_of(facts)
    known = resident is not None and resident.blocks > 0 and blocks > 0 and bool(device.multiprocessors)
    return KernelOfCase(
        facts=facts,
        digest=digest,
        grid=launch.grid,
        threads=threads,
        shared_bytes=shared_bytes,
        occupancy=resident,
        waves=waves(blocks, device.multiprocessors or 1, resident.blocks)
        if resident is not None and known and not in_clusters
        else None,
    )


def _declared(
    result: Result, architecture: str, known: dict[tuple[str, str, str], frozenset[Technique] | None]
) -> frozenset[Technique] | None:
    """What the variant declares for the architecture. None if it is not in the catalogue, or is other code today."""
    key = (result.problem.op, base_name(result.variant), f"{result.problem.direction} {architecture}")
    if key not in known:
        op = catalogue().get(result.problem.op)
        own = (v for v in op.of(result.problem).variants if v.name == key[1]) if op else iter(())
        variant = next(own, None)
        same = variant is not None and result.source_digest in (None, variant.source_digest())
        known[key] = expected_on(variant.techniques, architecture) if variant is not None and same else None
    return known[key]


def case_record(result: Result) -> dict[str, object]:
    """The cold device time of a case and its configuration, in SI units, for the JSON of its facts. Unknown values are None."""
    figure = figure_of(result.timing, "cold")
    return {
        "time_s": None if figure is None else figure.estimate,
        "time_low_s": None if figure is None else figure.low,
        "time_high_s": None if figure is None else figure.high,
        "configuration": result.configuration,
        "tuned_by": result.tuned_by,
    }
