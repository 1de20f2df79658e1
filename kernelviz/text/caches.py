"""What the caches of a device are called where a page or a table says whether they were flushed."""

from kernelviz.core import Device


def format_caches(*devices: Device) -> str:
    """The last-level cache of GPUs is the L2; a CPU has several caches, and all of them are flushed.

    >>> format_caches(Device(id="cuda:0", kind="cuda", name="NVIDIA H200", uuid="GPU-1"))
    'L2'
    >>> format_caches(Device(id="cpu", kind="cpu", name="AMD EPYC", uuid="cpu"))
    'caches'
    """
    return "L2" if all(device.kind == "cuda" for device in devices) else "caches"
