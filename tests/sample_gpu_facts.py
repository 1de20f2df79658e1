"""The facts of an H200 as a worker on one states them, for tests that compile without a GPU."""

from kernelviz.measure.compile_ahead.messages import DeviceFacts

H200 = DeviceFacts(
    index=0,
    arch=90,
    torch_properties={
        "name": "NVIDIA H200",
        "major": 9,
        "minor": 0,
        "multi_processor_count": 132,
        "total_memory": 150_754_820_096,
        "L2_cache_size": 62_914_560,
        "shared_memory_per_block": 49_152,
        "shared_memory_per_block_optin": 232_448,
        "shared_memory_per_multiprocessor": 233_472,
        "regs_per_multiprocessor": 65_536,
        "max_threads_per_multi_processor": 2048,
        "warp_size": 32,
    },
    triton_properties={
        "max_shared_mem": 232_448,
        "multiprocessor_count": 132,
        "max_num_regs": 65_536,
        "warpSize": 32,
    },
)
