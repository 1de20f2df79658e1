"""Use case: read the hardware counters of cases with a profiler, and store them with the cases of their run."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence

from kernelviz.bench import planning
from kernelviz.bench.availability import Choice
from kernelviz.bench.live import LiveCounters
from kernelviz.bench.runner import Runner
from kernelviz.bench.snapshots import at_sizes
from kernelviz.bench.summaries import Devices
from kernelviz.bench.tunings import Chosen
from kernelviz.core import (
    LIVING,
    BadField,
    CaseCounters,
    Device,
    Plan,
    Problem,
    Result,
    Run,
    UnknownRun,
    check_name,
)
from kernelviz.core import uncounted as u
from kernelviz.core.command import ProfilerCommands, profiler_commands
from kernelviz.core.counters import Replay, Scope
from kernelviz.hardware.nsight_compute.command import ncu_path
from kernelviz.ops import Op, op_named
from kernelviz.store import Store
from kernelviz.text import describe_reason
from kernelviz.text.counters import describe_uncounted
from kernelviz.worker.counting import Count

MOST_VARIANTS = 16
"""Most variants of one reading. All are called in each process that ncu starts."""


class CounterReading:
    """Reads hardware counters on the devices of this machine. Every method may be called from any thread."""

    def __init__(
        self,
        store: Store,
        runner: Runner,
        choice: Choice,
        devices: Sequence[Device],
        load: Callable[[str], Run],
    ) -> None:
        self._store, self._runner, self._choice, self._load = store, runner, choice, load
        self._devices = Devices(tuple(devices))

    def refusal(self, problem: Problem, device_id: str) -> u.Uncounted | None:
        """Why no counters can be read for the problem on that device, as far as it is known without trying: another kind of
        device, a backward pass, or no profiler. Raises UnknownName for a device."""
        device = self._devices[device_id]
        if device.kind != "cuda" or not device.usable:
            return u.Uncounted(reason=u.NoCountersHere(device=device.name))
        if problem.direction != "forward":
            return u.Uncounted(reason=u.NoBackwardLaunch())
        return u.Uncounted(reason=u.NoProfiler()) if ncu_path() is None else None

    def read(self, plan: Plan, *, owner: str = "", replay: Replay = "application", scope: Scope = "all") -> str:
        """Queue the reading of the counters of a plan's variants for its one problem. Return an id for follow(), progress() and
        cancel() (events CaseStep, CountersDone, RunEnded). Nothing is stored.

        Errors: CountersRefused with the reason; BadField for several problems or more than MOST_VARIANTS variants.
        """
        if len(plan.problems) != 1:
            raise BadField("sizes", f"{len(plan.problems)} problems", "give one size for each axis")
        return self._start(plan.problems[0], plan.variants, plan.device, plan.plugins, None, owner, replay, scope)

    def read_of_run(
        self,
        run: Run,
        variants: Sequence[str],
        *,
        problem: str | None = None,
        sizes: Mapping[str, str] | None = None,
        owner: str = "",
        replay: Replay = "application",
        scope: Scope = "all",
    ) -> str:
        """Queue the reading of the counters of variants of a stored run at one size, which are stored with its results.

        `problem`: the key of a problem. `sizes`: texts by axis. Errors: UnknownName; BadField for several problems, a run that is
        still measured, that is not stored here or that was measured on another device, and for a case without a correct time;
        CountersRefused, also where the code or the configuration of a variant has changed since.
        """
        chosen = self.problem_of(run, problem, sizes)
        for variant in variants:
            check_name("variant", variant, run.plan.variants, of=f"run {run.id!r}")
        device = self._device_of(run)
        results = {result.variant: result for result in run.results if result.problem.key == chosen.key}
        files = tuple(dict.fromkeys((*self._choice.plugins, *planning.plugin_paths(run.plan.plugins))))
        op = op_named(chosen.op, self._choice.ops(files))
        for variant in variants:
            if variant not in results or results[variant].timing is None:
                raise BadField("variant", variant, "it has no correct time in this run; measure the case first")
            self._check_same_code(results[variant], op, device)
        return self._start(chosen, tuple(variants), device.id, files, run, owner, replay, scope)

    def read_cases(self, name: str) -> tuple[CaseCounters, ...]:
        """The counters that a reading of this process has read so far. Empty if it is unknown."""
        live = self._live(name)
        return () if live is None else tuple(live.counted.values())

    def not_read(self, name: str) -> dict[str, u.Uncounted]:
        """Why a reading of this process could not read counters, by the key of the case."""
        live = self._live(name)
        return {} if live is None else dict(live.uncounted)

    def commands(
        self, problem: Problem, variant: str, device_id: str, plugins: Sequence[str] = ()
    ) -> ProfilerCommands | None:
        """The commands that profile one call of a case on that device: Nsight Compute, Nsight Systems, kernelviz. None for a
        device or a direction for which there are none. Raises UnknownName for a device."""
        return _commands(self._devices[device_id], problem, variant, plugins)

    def commands_of_run(self, run: Run, problem: Problem, variant: str) -> ProfilerCommands | None:
        """The same for a case of a run, whose device may be elsewhere."""
        return _commands(run.environment.device, problem, variant, run.plan.plugins)

    def _live(self, name: str) -> LiveCounters | None:
        request = self._runner.request(name)
        return request if isinstance(request, LiveCounters) else None

    def problem_of(self, run: Run, key: str | None = None, sizes: Mapping[str, str] | None = None) -> Problem:
        """The one problem of a run with that key, or with those sizes. Errors: UnknownName; BadField for several."""
        problems = {problem.key: problem for problem in run.plan.problems}
        if key is not None:
            check_name("problem", key, problems, of=f"run {run.id!r}")
            return problems[key]
        keys = at_sizes(run, sizes) if sizes else tuple(problems)
        if len(keys) != 1:
            raise BadField("sizes", f"{len(keys)} problems", f"name one by its sizes: {'; '.join(keys[:5])}")
        return problems[keys[0]]

    def _device_of(self, run: Run) -> Device:
        """The device of a stored run. Errors: BadField if the run cannot get counters."""
        try:
            status = self._store.runs.row(run.id).status
        except UnknownRun:
            raise BadField(
                "run",
                run.id,
                "it is not stored on this machine, so nothing can be stored with it; measure its plan here",
            ) from None
        if status in LIVING or self._runner.live(run.id) is not None:
            raise BadField("run", run.id, "it is still measured; wait for its end")
        uuid = run.environment.device.uuid
        device = next((one for one in self._devices.values() if one.uuid == uuid), None)
        if device is None:
            raise BadField(
                "run", run.id, f"it was measured on {run.environment.device.name}, which is not in this machine"
            )
        return device

    def _check_same_code(self, result: Result, op: Op, device: Device) -> None:
        """Errors: CountersRefused if a call today would use other code or another configuration than the result did."""
        variant = op.of(result.problem).variant_named(result.variant)
        tuned = Chosen(self._store, device, op).of(result.problem, (result.variant,)).get(result.variant)
        digest = variant.source_digest()
        used = tuned is not None and tuned.source_digest == digest
        same_configuration = (
            result.tuned_by is None if tuned is None or not used else tuned.configuration == result.configuration
        )
        if (result.source_digest is not None and digest != result.source_digest) or not same_configuration:
            self._refuse(u.Uncounted(reason=u.OtherCode()))

    def _refuse(self, uncounted: u.Uncounted) -> None:
        raise u.CountersRefused(uncounted, str(describe_uncounted(uncounted)))

    def _start(
        self,
        problem: Problem,
        variants: tuple[str, ...],
        device_id: str,
        plugins: tuple[str, ...],
        run: Run | None,
        owner: str,
        replay: Replay,
        scope: Scope,
    ) -> str:
        if not 1 <= len(variants) <= MOST_VARIANTS:
            raise BadField("variants", f"{len(variants)} variants", f"name 1 to {MOST_VARIANTS}")
        refused = self.refusal(problem, device_id)
        if refused is not None:
            self._refuse(refused)
        device = self._devices[device_id]
        op = op_named(problem.op, self._choice.ops(plugins))
        for variant in variants:
            lack = self._choice.lack(op.variant_named(variant), device) or op.variant_named(variant).refuses(problem)
            if lack is not None:
                raise BadField("variant", variant, str(describe_reason(lack)))
        positions = {} if run is None else {case.key: i for i, case in enumerate(run.plan.cases())}
        live = LiveCounters(f"counters-{secrets.token_hex(6)}", self._store, None if run is None else run.id, positions)
        work = Count(
            problem=problem, variants=variants, capability=device.compute_capability, replay=replay, scope=scope
        )
        return self._runner.count(device, live, work, plugins, owner=owner)


def _commands(device: Device, problem: Problem, variant: str, plugins: Sequence[str]) -> ProfilerCommands | None:
    if device.kind != "cuda":
        return None
    return profiler_commands(problem, variant, device=None if device.id == "cuda:0" else device.id, plugins=plugins)
