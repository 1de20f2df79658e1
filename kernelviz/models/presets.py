"""The sizes of published models, from the ``config.json`` that was published with each of them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from kernelviz.core.errors import UnknownName
from kernelviz.core.problem import Struct

Norm = Literal["rmsnorm", "layernorm"]
FeedForward = Literal["swiglu", "gelu_tanh"]
"""``swiglu``: gate and up projection, silu(gate) · up, down projection. ``gelu_tanh``: one projection, gelu by tanh, another
projection."""
Positions = Literal["rope", "rope_interleaved", "learned"]
"""``rope``: the first half of a head is paired with the second. ``rope_interleaved``: neighbours are paired. ``learned``: added
to the embedding, so a layer has no part for them."""


class Latent(Struct, frozen=True, kw_only=True):
    """Multi-head latent attention: the ranks of the latent projections, and the dimensions of a head. Queries and keys have
    `nope` + `rope` numbers, values have `value`."""

    query_rank: int
    kv_rank: int
    nope: int
    rope: int
    value: int


class ModelPreset(Struct, frozen=True, kw_only=True):
    """A published model. `layers`: how many layers are like the one described. `address`, `file`: where the sizes were read, and
    what of it."""

    name: str
    title: str
    address: str
    file: str = "config.json"
    hidden: int
    intermediate: int
    query_heads: int
    kv_heads: int
    head_dim: int
    layers: int
    norm: Norm = "rmsnorm"
    feed_forward: FeedForward = "swiglu"
    positions: Positions = "rope"
    qkv_bias: bool = False
    other_biases: bool = False
    latent: Latent | None = None
    most_context: int = 8192

    @property
    def source(self) -> str:
        """Where the sizes were read, in one line.

        >>> PRESETS["gpt-2"].source
        'https://huggingface.co/openai-community/gpt2 config.json'
        """
        return f"{self.address} {self.file}"

    @property
    def qkv_features(self) -> int:
        """Output features of the projection to queries, keys and values in one.

        >>> PRESETS["llama-3-8b"].qkv_features
        6144
        """
        return (self.query_heads + 2 * self.kv_heads) * self.head_dim


_ALL = (
    ModelPreset(
        name="llama-3-8b", title="Llama-3-8B", address="https://huggingface.co/meta-llama/Meta-Llama-3-8B",
        hidden=4096, intermediate=14336, query_heads=32, kv_heads=8, head_dim=128, layers=32,
    ),
    ModelPreset(
        name="llama-3-70b", title="Llama-3-70B", address="https://huggingface.co/meta-llama/Meta-Llama-3-70B",
        hidden=8192, intermediate=28672, query_heads=64, kv_heads=8, head_dim=128, layers=80,
    ),
    ModelPreset(
        name="qwen2.5-7b", title="Qwen2.5-7B", address="https://huggingface.co/Qwen/Qwen2.5-7B",
        hidden=3584, intermediate=18944, query_heads=28, kv_heads=4, head_dim=128, layers=28, qkv_bias=True,
        most_context=131072,
    ),
    ModelPreset(
        name="deepseek-v3-dense", title="DeepSeek-V3, dense layer",
        address="https://huggingface.co/deepseek-ai/DeepSeek-V3", file="config.json (first_k_dense_replace = 3)",
        hidden=7168, intermediate=18432, query_heads=128, kv_heads=128, head_dim=192, layers=3,
        positions="rope_interleaved", latent=Latent(query_rank=1536, kv_rank=512, nope=128, rope=64, value=128),
        most_context=163840,
    ),
    ModelPreset(
        name="gpt-2", title="GPT-2", address="https://huggingface.co/openai-community/gpt2",
        hidden=768, intermediate=3072, query_heads=12, kv_heads=12, head_dim=64, layers=12, norm="layernorm",
        feed_forward="gelu_tanh", positions="learned", qkv_bias=True, other_biases=True, most_context=1024,
    ),
)  # fmt: skip
PRESETS: Mapping[str, ModelPreset] = MappingProxyType({preset.name: preset for preset in _ALL})
"""The models by name, in the order of the page."""


def preset_named(name: str) -> ModelPreset:
    """The model of that name; upper case and the published spelling are accepted. Errors: UnknownName with the nearest name.

    >>> preset_named("Llama-3-8B").hidden
    4096
    """
    try:
        return PRESETS[name.lower()]
    except KeyError:
        raise UnknownName("model", name, PRESETS) from None
