"""What impairs measurements on this machine: tagged values with data, never sentences. `text.notices` makes text of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["error", "warning", "info"]
Subject = Literal["device", "driver", "nvrtc", "compiler", "mig", "tracer", "neighbours", "disk"]
MigState = Literal["slice", "divided", "off", "unknown"]
"""Whether a GPU is divided into slices (MIG), or is itself a slice of one."""
NoticeKind = Literal[
    "stated", "unusable_device", "unlisted_gpu", "variants_lack", "nothing_without", "needs", "mig_slice", "tracer_kineto",
    "tracer_events", "busy_machine", "busy_host",
    "programs", "more_programs", "hidden_program", "hidden_programs", "hidden_memory", "folder_not_writable",
    "disk_full", "disk_full_of_folders", "store_full", "store_read_only", "store_refuses",
    # Causes: why the driver's library cannot be used, or a GPU cannot be measured.
    "no_nvml", "no_driver_library", "no_driver", "driver_updated", "driver_not_permitted", "driver_error", "gpus_hidden",
    "no_gpu", "no_torch", "torch_without_cuda", "driver_too_old", "driver_too_old_for_nvrtc", "gpu_too_old", "no_mig_slice",
    # What a variant needs and does not find.
    "gpu_not_chosen", "cuda", "cpu_only", "no_triton", "no_nvrtc", "no_liger", "no_package", "no_package_of_size", "no_program",
    "no_sm_89", "no_sm_90", "no_sm_90a", "no_c_compiler", "no_cxx_compiler", "no_python_headers", "unknown_need",
    "two_hosts",
    # Why CUPTI cannot trace.
    "cupti_not_allowed", "other_profiler", "no_cupti", "other_cupti_version", "nothing_traced", "cupti_error",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Notice:
    """A problem of this machine, or a cause of one in the `data` of another notice under the name ``cause``.

    `severity`: ``error`` when nothing can be measured, ``warning`` when something fails or figures may be less exact, ``info``
    for information only.
    """

    kind: NoticeKind
    data: Mapping[str, "Datum"] = field(default_factory=dict, hash=False)
    subject: Subject = "device"
    severity: Severity = "warning"


Datum = str | int | None | tuple[str | tuple[int, str | None], ...] | Notice
"""A number, a name, several names, processes (id and name, None: unknown), or a cause."""
