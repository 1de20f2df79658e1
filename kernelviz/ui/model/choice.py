"""The boxes of the page Model: whose results, model, phase, batch, context, number format, and the traffic mix; the address
repeats them."""

from dataclasses import dataclass

import streamlit as st

from kernelviz.bench import Bench, model
from kernelviz.bench.model import Source
from kernelviz.bench.model_mix import DECODE_BATCH, PREFILL_TOKENS
from kernelviz.core import BadField
from kernelviz.models.parts import MOST_BATCH, NUMBER_FORMATS, PHASES, LayerCall
from kernelviz.models.presets import PRESETS, ModelPreset
from kernelviz.text.model import PHASES as PHASE_TEXTS
from kernelviz.ui.shared import address_messages, view_filters
from kernelviz.ui.shared.text import plain

_KNOWN = (
    "results", "model", "phase", "dtype", "batch", "context", "share", "prefill", "mix_batch", "mix_context",
)  # fmt: skip
"""The parameters of the address."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What the page is about."""

    source: Source
    preset: ModelPreset
    call: LayerCall


def title() -> None:
    """The title, and what the page shows."""
    st.markdown("#### Model: what kernels mean for a network")
    st.caption(
        "One transformer layer of a published model as a list of ops, in the time of torch eager, torch.compile and the best "
        "variants; and the same layer as one torch module, whose kernels show what the list leaves out."
    )


def selection(bench: Bench) -> Choice | None:
    """The model and its call on a device; None if what was entered cannot be, which the page then says."""
    view_filters.report_unknown(_KNOWN)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="model_choice"):
        source = _source(bench)
        name = view_filters.choose(
            st.selectbox, "Model", list(PRESETS), "llama-3-8b", key="model", width=230,
            format_func=lambda n: PRESETS[n].title,
        )  # fmt: skip
        preset = PRESETS[name]
        phase = view_filters.choose(
            st.segmented_control, "Phase", list(PHASES), "prefill", key="phase", format_func=lambda p: PHASE_TEXTS[p],
            help="Prefill: all tokens of each sequence at once. Decoding: one new token for each sequence, with a cache.",
        )  # fmt: skip
        dtype = view_filters.choose(st.segmented_control, "Number format", list(NUMBER_FORMATS), "bf16", key="dtype")
        batch = number(
            "Batch", "batch", DECODE_BATCH if phase == "decode" else 1, MOST_BATCH, f"batch_{phase}", "Sequences."
        )
        start = min(8192 if phase == "decode" else 4096, preset.most_context)
        context = number(
            "Context", "context", start, preset.most_context, f"context_{phase}_{name}",
            "Tokens of each sequence; when decoding, those in the cache with the new one.",
        )  # fmt: skip
    st.caption(f"Sizes: [{plain(preset.address)}]({preset.address}) {plain(preset.file)}")
    try:
        _, call = model.call_of(name, phase, batch, context, dtype)
    except BadField as error:
        st.error(plain(f"{error.field} {error.value}: {error.remedy}"), icon=":material/error:")
        return None
    return Choice(source, preset, call)


def _source(bench: Bench) -> Source:
    here = {d.id: f"this machine: {d.name}" for d in bench.devices() if d.usable}
    recorded = {source.name: f"recorded: {source.name}" for source in model.recorded_sources()}
    options = [*here, *recorded]
    default = model.source_named(bench, None).name
    chosen = view_filters.choose(
        st.selectbox, "Results", options, default, key="results", always_named=True, width=300,
        format_func=(here | recorded).__getitem__,
        help="This machine: what was measured here. Recorded: runs that were measured on that device and come with kernelviz.",
    )  # fmt: skip
    return model.source_named(bench, chosen)


def number(label: str, param: str, default: int, most: int, key: str, about: str) -> int:
    """A box for a whole number from 1 to `most`, which the address repeats as `param`. A number of the address that is not in
    this range is named, and the default is used."""
    if key not in st.session_state or view_filters.moved(param):
        st.session_state[key] = _of_address(key, param, default, most)
    value = int(
        st.number_input(
            label, min_value=1, max_value=most, step=1, key=key, width=150, help=about,
            on_change=address_messages.remove_all,
        )
    )  # fmt: skip
    address_messages.draw(key)
    view_filters.keep(param, str(value), str(default))
    return value


def _of_address(key: str, param: str, default: int, most: int) -> int:
    """The number that the address gives the widget `key`, else the default."""
    address_messages.remove(key)
    text = st.query_params.get(param)
    if text is None:
        return default
    if text.isdecimal() and len(text) < 12 and 1 <= int(text) <= most:
        return int(text)
    address_messages.store(key, f"In the address, {param} {text!r} is not from 1 to {most}", default)
    return default


def share() -> float:
    """The share of decoded tokens, 0 to 1; the address repeats it as `share`, in percent."""
    key = "model_share"
    if key not in st.session_state or view_filters.moved("share"):
        st.session_state[key] = _of_address(key, "share", 50, 100) if st.query_params.get("share") != "0" else 0
    value = int(
        st.slider(
            "Share of tokens that are decoded, %", 0, 100, key=key, on_change=address_messages.remove_all,
            help="Of all tokens that the model processes, so many are decoded in steps of the batch; the rest is prefilled.",
        )
    )  # fmt: skip
    address_messages.draw(key)
    view_filters.keep("share", str(value), "50")
    return value / 100


@dataclass(frozen=True, slots=True)
class MixSizes:
    """The sizes of both phases of the mix."""

    batch: int
    context: int
    prefill: int


def mix_sizes(chosen: Choice) -> MixSizes:
    """The boxes of the mix. The sizes of the phase that the page shows are those above."""
    decode, call, most = chosen.call.phase == "decode", chosen.call, chosen.preset.most_context
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="mix_choice"):
        if decode:
            batch, context = call.batch, call.context
            prefill = number(
                "Prefilled sequence",
                "prefill",
                min(PREFILL_TOKENS, most),
                most,
                "mix_prefill",
                "Tokens of one sequence.",
            )
        else:
            prefill = call.context
            batch = number("Decoding batch", "mix_batch", DECODE_BATCH, MOST_BATCH, "mix_batch", "Sequences in a step.")
            context = number(
                "Decoding context", "mix_context", min(8192, most), most, "mix_context", "Tokens in the cache of each."
            )
    return MixSizes(batch, context, prefill)
