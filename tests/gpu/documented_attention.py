"""What the tables of docs/kernels.md show of attention: the ops, sizes and variants of each run."""

from __future__ import annotations

from documented_plan import Documented

TOKENS = 16384
LENGTHS = (1024, 4096, 16384)
HEADS = {"16": (16, 16), "32-8": (32, 8)}
"""By their name in the names of runs: query heads, and key and value heads."""
MASKS = {"full": "attention", "causal": "causal_attention"}
LIBRARIES = ("torch_eager", "sdpa_flash", "sdpa_cudnn")
LADDER = (
    *("composite_eager", "triton_flash", "triton_descriptors", "gluon_warp_specialised"),
    *("cuda_wgmma", "cuda_wgmma_ping_pong", "cuda_wgmma_overlap", "cuda_wgmma_three_stages"),
    *("cuda_wgmma_persistent", "cuda_wgmma_by_size"),
)
BEST = ("triton_flash", "triton_descriptors", "gluon_warp_specialised", "cuda_wgmma_by_size")
BACKWARD = ("triton_flash", "triton_descriptors", "cuda_wgmma_by_size")
DECODE = ("torch_eager", "sdpa_flash", "sdpa_cudnn", "triton_split", "triton_scheduled", "cuda_mma")
PAGED = ("torch_eager", "triton_split", "triton_scheduled", "cuda_mma")


def sizes(length: int, query_heads: int, key_heads: int, dimension: int) -> dict[str, str]:
    numbers = {"b": TOKENS // length, "s": length, "hq": query_heads, "hk": key_heads, "d": dimension}
    return {axis: str(number) for axis, number in numbers.items()}


def forward_runs() -> dict[str, Documented]:
    """By name: the ladder with 16 heads of 128, the best rungs with grouped heads and with other dimensions."""
    runs = {}
    for mask, op in MASKS.items():
        for length in LENGTHS:
            for heads, numbers in HEADS.items():
                ladder = LADDER if heads == "16" and length == 4096 else BEST
                name = f"attention-{mask}-{heads}-heads-{length}"
                runs[name] = Documented(op, sizes(length, *numbers, 128), (*LIBRARIES, *ladder))
            for dimension in (64, 256):
                name = f"attention-{mask}-16-heads-{length}-d{dimension}"
                runs[name] = Documented(op, sizes(length, 16, 16, dimension), (*LIBRARIES[1:], *BEST))
    return runs


def backward_runs() -> dict[str, Documented]:
    return {
        f"attention-backward-{mask}-{heads}-heads-{length}": Documented(
            op, sizes(length, *numbers, 128), (*LIBRARIES[1:], *BACKWARD), direction="backward"
        )
        for mask, op in MASKS.items()
        for length in LENGTHS
        for heads, numbers in HEADS.items()
    }


def decode_runs() -> dict[str, Documented]:
    """Llama 3 70B: 64 query heads, 8 key and value heads. Beside them, sums of as many bytes as each cache has."""
    heads = {"hq": "64", "hk": "8", "d": "128"}
    cache_elements = [2 * b * length * 8 * 128 for b in (1, 16, 64) for length in (8192, 65536)]
    return {
        "attention-decode": Documented("attention_decode", {"b": "1,16,64", "l": "8192,65536", **heads}, DECODE),
        "paged-attention-decode": Documented(
            "paged_attention_decode", {"b": "1,16,64", "l": "8192,65536", **heads}, PAGED
        ),
        "read-of-a-cache": Documented(
            "sum", {"n": ",".join(map(str, cache_elements))}, ("torch_eager", "cuda_persistent")
        ),
        "empty-launch": Documented("empty_launch", {"k": "1"}, dtype="fp32"),
    }


ATTENTION = {**forward_runs(), **backward_runs(), **decode_runs()}
