"""Axes and presets that several ops on the hidden states of models share."""

from __future__ import annotations

from kernelviz.ops.catalog.tensors import Axis, Preset

AXES = (
    Axis(name="m", caption="rows", default="2^27/n", cpu_default="2^20/n"),
    Axis(name="n", caption="row length", default="2^10..2^17", cpu_default="2^8,2^10,2^12"),
)
MODELS = (
    ("llama-3-8b", "Llama 3 8B", 4096),
    ("llama-3-70b", "Llama 3 70B", 8192),
    ("qwen2.5-7b", "Qwen2.5 7B", 3584),
    ("deepseek-v3", "DeepSeek-V3", 7168),
    ("gpt-2", "GPT-2", 768),
    ("bert-base", "BERT base", 768),
)


def presets(*models: str) -> tuple[Preset, ...]:
    """Presets of the named models, one of many row lengths, and one of matrices that are much larger than any L2.

    >>> [p.name for p in presets("gpt-2")]
    ['gpt-2', 'rows', 'large']
    """
    named = tuple(
        Preset(
            name=name,
            caption=f"{caption}, hidden size {hidden}",
            sizes={"m": "1,16,64,512,4096,8192", "n": str(hidden)},
        )
        for name, caption, hidden in MODELS
        if name in models
    )
    return (
        *named,
        Preset(
            name="rows",
            caption="2^26 elements in rows of 2048 to 131072",
            sizes={"m": "2^26/n", "n": "2048,4096,8192,32768,131072"},
        ),
        Preset(
            name="large",
            caption="2^28 elements: 512 MiB a matrix in half precision",
            sizes={"m": "2^28/n", "n": "4096,8192"},
        ),
    )
