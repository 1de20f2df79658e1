"""A transformer layer as a list of parts: which problem of the catalogue each one is, or its work where no op covers it.

Weights are stored as (input features, output features), so that a projection is the catalogue's ``matmul``. A model's own rows
of tokens are T = batch · length in a prefill and T = batch in decoding.
"""

from collections.abc import Iterator
from typing import Literal, get_args

from kernelviz.core.errors import BadField, check_name
from kernelviz.core.problem import Cost, Problem, Struct
from kernelviz.models.presets import Latent, ModelPreset

Phase = Literal["prefill", "decode"]
PHASES: tuple[Phase, ...] = get_args(Phase)
NumberFormat = Literal["bf16", "fp16"]
NUMBER_FORMATS: tuple[NumberFormat, ...] = get_args(NumberFormat)
ITEMSIZE_BYTES = 2
MOST_BATCH, MOST_TOKENS = 4096, 2**22
Role = Literal["matmul", "attention", "norm", "activation", "glue"]
StandIn = Literal["strided_copy", "gelu_by_erf", "rope_by_halves"]
"""What the problem differs in from the part. ``strided_copy``: the cache is written with strides, the op copies contiguous
memory. ``gelu_by_erf``: the model's gelu is by tanh, the op's by erf. ``rope_by_halves``: the model pairs neighbours."""
Gap = Literal["bias", "head_dimensions", "batched_matmul", "concatenation", "number_format"]
"""Why no op covers a part. ``bias``: no op adds a row to each row. ``head_dimensions``: queries and values of a head have
different dimensions, the ops have one. ``batched_matmul``: a product for each head. ``number_format``: the op lacks it."""
FusionName = Literal["add_rmsnorm", "linear_gelu", "swiglu"]


class LayerCall(Struct, frozen=True, kw_only=True):
    """One call of a layer. `context`: the length of each sequence in a prefill; tokens in the cache of each sequence, with the
    new one, in decoding."""

    preset: str
    phase: Phase
    batch: int
    context: int
    dtype: NumberFormat = "bf16"

    @property
    def tokens(self) -> int:
        """Tokens that the call processes.

        >>> LayerCall(preset="gpt-2", phase="prefill", batch=2, context=512).tokens
        1024
        """
        return self.batch * (self.context if self.phase == "prefill" else 1)


class LayerPart(Struct, frozen=True, kw_only=True):
    """A part of a layer, in the order of the calls. Either `problem` is what the catalogue calls it, or `gap` says why there is
    none and `cost` counts its least work."""

    name: str
    role: Role
    problem: Problem | None = None
    cost: Cost | None = None
    stand_in: StandIn | None = None
    gap: Gap | None = None


class LayerFusion(Struct, frozen=True, kw_only=True):
    """Parts that one op of the catalogue does together. `problem`: that op."""

    name: FusionName
    parts: tuple[str, ...]
    problem: Problem


def checked_call(preset: ModelPreset, phase: str, batch: int, context: int, dtype: str) -> LayerCall:
    """The call, checked. Errors: UnknownName; BadField with the field and the remedy."""
    check_name("phase", phase, PHASES)
    check_name("number format", dtype, NUMBER_FORMATS)
    if not 1 <= batch <= MOST_BATCH:
        raise BadField("batch", batch, f"name a number of sequences from 1 to {MOST_BATCH}")
    if not 1 <= context <= preset.most_context:
        raise BadField("context", context, f"{preset.title} takes from 1 to {preset.most_context} tokens")
    if batch * context > MOST_TOKENS:
        raise BadField("context", context, f"{batch} × {context} tokens are more than {MOST_TOKENS}; name fewer")
    return LayerCall(
        preset=preset.name,
        phase="prefill" if phase == "prefill" else "decode",
        batch=batch,
        context=context,
        dtype="bf16" if dtype == "bf16" else "fp16",
    )


def layer_parts(preset: ModelPreset, call: LayerCall) -> tuple[LayerPart, ...]:
    """The parts of a layer in the order in which they run.

    >>> from kernelviz.models.presets import PRESETS
    >>> call = LayerCall(preset="llama-3-8b", phase="decode", batch=64, context=8192)
    >>> [part.name for part in layer_parts(PRESETS["llama-3-8b"], call)][:5]
    ['attention_norm', 'qkv', 'rope', 'cache_write', 'attention']
    >>> layer_parts(PRESETS["llama-3-8b"], call)[1].problem.key
    'matmul bf16 m=64 n=6144 k=4096'
    """
    attention = _latent_attention(preset, preset.latent, call) if preset.latent else _attention(preset, call)
    return (_norm("attention_norm", preset, call, preset.hidden), *attention, *_feed_forward(preset, call))


def layer_fusions(preset: ModelPreset, call: LayerCall) -> tuple[LayerFusion, ...]:
    """The parts of the layer that an op of the catalogue does together."""
    t, fusions = call.tokens, []
    if preset.norm == "rmsnorm":
        problem = _problem("add_rmsnorm", call, m=t, n=preset.hidden)
        fusions.append(
            LayerFusion(name="add_rmsnorm", parts=("attention_residual", "feed_forward_norm"), problem=problem)
        )
    if preset.feed_forward == "swiglu":
        problem = _problem("swiglu", call, m=t, n=preset.intermediate)
        fusions.append(LayerFusion(name="swiglu", parts=("activation",), problem=problem))
    else:
        problem = _problem("linear_gelu", call, m=t, n=preset.intermediate, k=preset.hidden)
        fusions.append(LayerFusion(name="linear_gelu", parts=("up", "up_bias", "activation"), problem=problem))
    return tuple(fusions)


def _problem(op: str, call: LayerCall, **sizes: int) -> Problem:
    return Problem(op=op, sizes=sizes, dtype=call.dtype)


def _norm(name: str, preset: ModelPreset, call: LayerCall, length: int) -> LayerPart:
    return LayerPart(name=name, role="norm", problem=_problem(preset.norm, call, m=call.tokens, n=length))


def _product(name: str, call: LayerCall, n: int, k: int) -> LayerPart:
    return LayerPart(name=name, role="matmul", problem=_problem("matmul", call, m=call.tokens, n=n, k=k))


def _bias(name: str, call: LayerCall, n: int) -> LayerPart:
    moved = call.tokens * n * ITEMSIZE_BYTES
    cost = Cost(work_flop=call.tokens * n, read_bytes=moved + n * ITEMSIZE_BYTES, written_bytes=moved)
    return LayerPart(name=name, role="glue", cost=cost, gap="bias")


def _residual(name: str, preset: ModelPreset, call: LayerCall) -> LayerPart:
    return LayerPart(name=name, role="glue", problem=_problem("add", call, n=call.tokens * preset.hidden))


def _cache_write(call: LayerCall, numbers: int) -> LayerPart:
    problem = _problem("copy", call, n=call.tokens * numbers, o=0)
    return LayerPart(name="cache_write", role="glue", problem=problem, stand_in="strided_copy")


def _attention(preset: ModelPreset, call: LayerCall) -> Iterator[LayerPart]:
    heads = {"hq": preset.query_heads, "hk": preset.kv_heads}
    yield _product("qkv", call, preset.qkv_features, preset.hidden)
    if preset.qkv_bias:
        yield _bias("qkv_bias", call, preset.qkv_features)
    if preset.positions != "learned":
        rope = _problem("rope", call, t=call.tokens, **heads, p=preset.head_dim // 2)
        yield LayerPart(name="rope", role="glue", problem=rope)
    yield _cache_write(call, 2 * preset.kv_heads * preset.head_dim)
    of_phase = (
        _problem("causal_attention", call, b=call.batch, s=call.context, **heads, d=preset.head_dim)
        if call.phase == "prefill"
        else _problem("attention_decode", call, b=call.batch, l=call.context, **heads, d=preset.head_dim)
    )
    yield LayerPart(name="attention", role="attention", problem=of_phase)
    yield _product("output", call, preset.hidden, preset.query_heads * preset.head_dim)
    if preset.other_biases:
        yield _bias("output_bias", call, preset.hidden)
    yield _residual("attention_residual", preset, call)


def _latent_attention(preset: ModelPreset, latent: Latent, call: LayerCall) -> Iterator[LayerPart]:
    """Multi-head latent attention: with keys and values of each head in a prefill, in the absorbed form in decoding."""
    heads, t, itemsize = preset.query_heads, call.tokens, ITEMSIZE_BYTES
    yield _product("latents", call, latent.query_rank + latent.kv_rank + latent.rope, preset.hidden)
    yield _norm("query_norm", preset, call, latent.query_rank)
    yield _norm("kv_norm", preset, call, latent.kv_rank)
    yield _product("query_up", call, heads * (latent.nope + latent.rope), latent.query_rank)
    rope = _problem("rope", call, t=t, hq=heads, hk=1, p=latent.rope // 2)
    yield LayerPart(name="rope", role="glue", problem=rope, stand_in="rope_by_halves")
    yield _cache_write(call, latent.kv_rank + latent.rope)
    if call.phase == "prefill":
        yield _product("kv_up", call, heads * (latent.nope + latent.value), latent.kv_rank)
        moved = t * heads * (latent.nope + latent.rope) * itemsize
        join = Cost(work_flop=0, read_bytes=t * (heads * latent.nope + latent.rope) * itemsize, written_bytes=moved)
        yield LayerPart(name="join_keys", role="glue", cost=join, gap="concatenation")
        d, v = latent.nope + latent.rope, latent.value
        pairs = call.batch * heads * call.context * call.context
        cost = Cost(
            work_flop=pairs * (d + v),
            read_bytes=t * heads * (2 * d + v) * itemsize,
            written_bytes=t * heads * v * itemsize,
        )
    else:
        yield _batched("absorb_query", call, heads, latent.nope, latent.kv_rank)
        d, v = latent.kv_rank + latent.rope, latent.kv_rank
        cost = Cost(
            work_flop=2 * call.batch * call.context * heads * (d + v),
            read_bytes=(call.batch * call.context * d + t * heads * d) * itemsize,
            written_bytes=t * heads * v * itemsize,
        )
    yield LayerPart(name="attention", role="attention", cost=cost, gap="head_dimensions")
    if call.phase == "decode":
        yield _batched("expand_value", call, heads, latent.kv_rank, latent.value)
    yield _product("output", call, preset.hidden, heads * latent.value)
    yield _residual("attention_residual", preset, call)


def _batched(name: str, call: LayerCall, heads: int, inner: int, outer: int) -> LayerPart:
    t = call.tokens
    cost = Cost(
        work_flop=2 * t * heads * inner * outer,
        read_bytes=heads * (t * inner + inner * outer) * ITEMSIZE_BYTES,
        written_bytes=t * heads * outer * ITEMSIZE_BYTES,
    )
    return LayerPart(name=name, role="matmul", cost=cost, gap="batched_matmul")


def _feed_forward(preset: ModelPreset, call: LayerCall) -> Iterator[LayerPart]:
    t = call.tokens
    yield _norm("feed_forward_norm", preset, call, preset.hidden)
    if preset.feed_forward == "swiglu":
        yield _product("gate", call, preset.intermediate, preset.hidden)
        yield _product("up", call, preset.intermediate, preset.hidden)
        swiglu = _problem("swiglu", call, m=t, n=preset.intermediate)
        yield LayerPart(name="activation", role="activation", problem=swiglu)
    else:
        yield _product("up", call, preset.intermediate, preset.hidden)
        if preset.other_biases:
            yield _bias("up_bias", call, preset.intermediate)
        gelu = _problem("gelu", call, n=t * preset.intermediate)
        yield LayerPart(name="activation", role="activation", problem=gelu, stand_in="gelu_by_erf")
    yield _product("down", call, preset.hidden, preset.intermediate)
    if preset.other_biases:
        yield _bias("down_bias", call, preset.hidden)
    yield _residual("feed_forward_residual", preset, call)
