"""What this machine is, on the page Device: its devices, driver, CUDA, MIG, tools, and the kernel times of recent runs."""

import platform
from collections.abc import Sequence

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core import Device, units
from kernelviz.hardware import mig
from kernelviz.hardware.discovery import gpu_problem, missing
from kernelviz.hardware.toolchain import installed_versions, torch_build
from kernelviz.plots import monitor
from kernelviz.ui.device import text
from kernelviz.ui.shared import view_filters
from kernelviz.ui.shared.text import plain, when

_TOOLS = {"cuda": ("triton", "nvrtc", "inductor"), "cpu": ("cxx", "inductor")}
_TOOL_NAMES = {"triton": "Triton", "nvrtc": "CUDA C++ (NVRTC)", "inductor": "torch.compile", "cxx": "C++ extension"}


def device_summary(bench: Bench, device: Device) -> None:
    """The device on one line, and why there is no GPU if there is none."""
    if not any(d.kind == "cuda" for d in bench.devices()):
        st.caption(plain(f"No GPU can be used: {gpu_problem()}."))
    st.markdown(plain(summary(device)))


def device_facts(bench: Bench, device: Device) -> None:
    """All devices of the machine, and everything known about the chosen one."""
    with st.expander("All devices, driver and tools", key="machine", icon=":material/memory:", expanded=False):
        st.markdown(_device_table(bench.devices()))
        st.markdown(_fact_table(facts(device)))


def summary(device: Device) -> str:
    """The device on one line, as for a bug report."""
    build = torch_build()
    torch = "torch not installed" if build is None else f"torch {build.version}"
    memory = f"{units.size_bytes(device.memory_bytes)} of memory"
    if device.kind == "cpu":
        return f"{device.name} · {device.threads or 'unknown'} threads · {memory} · {torch}"
    driver = f"driver {device.driver or 'unknown'} (CUDA {device.driver_cuda or 'unknown'})"
    count = f"{device.multiprocessors or 'unknown'} multiprocessors"
    return f"{device.name} · {count} · {memory} · {driver} · MIG {mig.describe(device)} · {torch}"


def facts(device: Device) -> list[tuple[str, str]]:
    """Name and value of each fact about a device and its tools; unknown values say so."""
    known = [
        ("name", device.name),
        ("identity", device.uuid),
        ("memory", units.size_bytes(device.memory_bytes)),
        ("last-level cache", units.size_bytes(device.last_level_cache_bytes)),
    ]
    if device.kind == "cuda":
        capability = ".".join(str(n) for n in device.compute_capability or ()) or "unknown"
        known += [
            ("multiprocessors", str(device.multiprocessors or "unknown")),
            ("compute capability", capability),
            ("driver", f"{device.driver or 'unknown'}, supports CUDA up to {device.driver_cuda or 'unknown'}"),
            ("MIG", mig.describe(device)),
        ]
    else:
        known.append(("threads", str(device.threads or "unknown")))
    build = torch_build()
    torch = "not installed" if build is None else f"{build.version}, for CUDA {build.cuda or '(none)'}"
    triton = installed_versions(("triton",)).get("triton", "not installed")
    known += [("Python", platform.python_version()), ("torch", torch), ("triton", triton)]
    known += [(_TOOL_NAMES[n], missing((n,), device) or "ready") for n in _TOOLS[device.kind]]
    return known


def _device_table(devices: Sequence[Device]) -> str:
    lines = ["| device | name | memory | usable |", "|---|---|---|---|"]
    for device in devices:
        usable = "yes" if device.usable else f"no: {device.reason}"
        cells = (device.id, device.name, units.size_bytes(device.memory_bytes), usable)
        lines.append(f"| {' | '.join(plain(c) for c in cells)} |")
    return "\n".join(lines)


def _fact_table(pairs: list[tuple[str, str]]) -> str:
    return "\n".join(["| property | value |", "|---|---|", *(f"| {plain(a)} | {plain(b)} |" for a, b in pairs)])


def recent_kernel_times(bench: Bench, device: Device) -> None:
    """How long the kernels of recent runs took."""
    runs = bench.machine.run_times(device.id)
    figure = monitor.times_by_run(runs)
    count = sum(len(r.times_s) for r in runs)
    newest = when(runs[0].created_at) if runs else ""
    alt = f"{count} kernel times of {len(runs)} runs" + (f", the newest from {newest}" if newest else "")
    st.plotly_chart(figure, key="run_times", config=view_filters.CHART, alt=alt)
    if count:
        st.caption(text.TIMES_CPU if device.kind == "cpu" else text.TIMES_GPU)
