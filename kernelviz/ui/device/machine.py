"""What this machine is, on the page Device: its devices, driver, CUDA, MIG, tools, and the kernel times of recent runs."""

import platform
from datetime import UTC, datetime

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core import Device, units
from kernelviz.core.backends import BACKENDS
from kernelviz.core.cache_size import CacheSize
from kernelviz.hardware import mig
from kernelviz.hardware.discovery import gpu_problem, missing
from kernelviz.hardware.toolchain import installed_versions, torch_build
from kernelviz.plots import monitor
from kernelviz.text import format_cache_size, format_notice
from kernelviz.text.notices import MIG_STATES
from kernelviz.ui.shared import charts
from kernelviz.ui.shared.text import markdown_table, plain, when

_PACKAGES = {backend.name: backend.title for backend in BACKENDS.values() if backend.module}
_TOOLS = {"cuda": ("triton", "nvrtc", "inductor", *_PACKAGES), "cpu": ("cxx", "inductor")}
_TOOL_NAMES = {
    "triton": "Triton",
    "nvrtc": "CUDA C++ (NVRTC)",
    "inductor": "torch.compile",
    "cxx": "C++ extension",
    **_PACKAGES,
}


_TIMES = {
    "cuda": "Each point is a kernel, at its median time on the GPU. The grey bar covers the middle half of the kernels of a run.",
    "cpu": "Each point is a case, at the time of one call with flushed caches by the host clock, because CPU kernels cannot be "
    "traced. The grey bar covers the middle half of the cases of a run.",
}


def device_summary(bench: Bench, device: Device) -> None:
    """The device on one line, and why there is no GPU if there is none."""
    if not any(d.kind == "cuda" for d in bench.devices()):
        st.caption(plain(f"No GPU can be used: {gpu_problem()}."))
    st.markdown(plain(summary(device)))


def device_facts(bench: Bench, device: Device) -> None:
    """All devices of the machine, and everything known about the chosen one."""
    with st.expander("All devices, driver and tools", key="machine", icon=":material/memory:", expanded=False):
        st.markdown(markdown_table(("device", "name", "memory", "usable"), map(_device_row, bench.devices())))
        st.markdown(
            markdown_table(
                ("property", "value"),
                [(plain(a), plain(b)) for a, b in facts(device, bench.machine.last_level_cache(device))],
            )
        )


def _device_row(device: Device) -> list[str]:
    usable = "yes" if device.usable else f"no: {device.reason}"
    return [plain(cell) for cell in (device.id, device.name, units.size_bytes(device.memory_bytes), usable)]


def summary(device: Device) -> str:
    """The device on one line, as for a bug report."""
    build = torch_build()
    torch = "torch not installed" if build is None else f"torch {build.version}"
    memory = f"{units.size_bytes(device.memory_bytes)} of memory"
    if device.kind == "cpu":
        threads = units.counted(device.threads, "thread") if device.threads else "threads unknown"
        return f"{device.name} · {threads} · {memory} · {torch}"
    driver = f"driver {device.driver or 'unknown'} (CUDA {device.driver_cuda or 'unknown'})"
    count = f"{device.multiprocessors or 'unknown'} multiprocessors"
    return f"{device.name} · {count} · {memory} · {driver} · MIG {MIG_STATES[mig.state(device)]} · {torch}"


def facts(device: Device, cache: CacheSize | None) -> list[tuple[str, str]]:
    """Name and value of each fact about a device and its tools; unknown values say so."""
    own = [("threads", str(device.threads or "unknown"))]
    if device.kind == "cuda":
        own = [
            ("multiprocessors", str(device.multiprocessors or "unknown")),
            ("compute capability", ".".join(str(n) for n in device.compute_capability or ()) or "unknown"),
            ("driver", f"{device.driver or 'unknown'}, supports CUDA up to {device.driver_cuda or 'unknown'}"),
            ("MIG", str(MIG_STATES[mig.state(device)])),
        ]
    build = torch_build()
    return [
        ("name", device.name),
        ("identity", device.uuid),
        ("memory", units.size_bytes(device.memory_bytes)),
        ("last-level cache", format_cache_size(cache)),
        *own,
        ("Python", platform.python_version()),
        (
            "torch",
            "not installed"
            if build is None
            else f"{build.version}, {f'built for CUDA {build.cuda}' if build.cuda else 'built without CUDA'}",
        ),
        ("triton", installed_versions(("triton",)).get("triton", "not installed")),
        *(
            (_TOOL_NAMES[n], str(format_notice(lack)) if (lack := missing((n,), device)) else "ready")
            for n in _TOOLS[device.kind]
        ),
    ]


def recent_kernel_times(bench: Bench, device: Device) -> None:
    """How long the kernels of recent runs took."""
    runs = bench.machine.run_times(device.id)
    count = sum(len(r.times_s) for r in runs)
    newest = f", the newest from {when(runs[0].created_at)}" if runs else ""
    charts.draw(
        monitor.times_by_run(runs), key="run_times", alt=f"{count} kernel times of {len(runs)} runs{newest}",
        picture=charts.picture(
            f"Kernel times of the last {len(runs)} runs",
            device.name,
            runs[0].created_at if runs else datetime.now(UTC).isoformat(),
        ),
    )  # fmt: skip
    if count:
        st.caption(_TIMES[device.kind])
