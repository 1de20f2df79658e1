"""What a variant may ask of the worker's GPU before it compiles."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from kernelviz.measure.compile_ahead.messages import DeviceFacts

_TRITON_NAMES = {
    "max_shared_mem": "shared_memory_per_block_optin",
    "multiprocessor_count": "multi_processor_count",
    "max_num_regs": "regs_per_multiprocessor",
    "warpSize": "warp_size",
}
"""torch's names of what Triton's driver says of a device; Triton's own driver would be built by gcc first."""


def facts_of(device: torch.device) -> DeviceFacts:
    """The facts of a CUDA device that this process uses."""
    properties = torch.cuda.get_device_properties(device)
    named = {name: getattr(properties, name, None) for name in dir(properties) if not name.startswith("_")}
    plain = {name: value for name, value in named.items() if isinstance(value, int | float | str)}
    index = torch.cuda.current_device() if device.index is None else device.index
    return device_facts(index, 10 * properties.major + properties.minor, plain)


def device_facts(index: int, arch: int, properties: Mapping[str, int | float | str | bool]) -> DeviceFacts:
    """The facts of a CUDA device with these attributes, under torch's names. `arch`: the compute capability as one number."""
    return DeviceFacts(
        index=index,
        arch=arch,
        torch_properties=dict(properties),
        triton_properties={
            name: int(properties[torch_name]) for name, torch_name in _TRITON_NAMES.items() if torch_name in properties
        },
    )
