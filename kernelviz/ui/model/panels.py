"""The panels of the page Model. `pages/model.py` puts them in reading order."""

from functools import partial

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.model import Layer, Source
from kernelviz.bench.model_mix import TrafficMix, traffic_mix
from kernelviz.bench.model_report import as_json, markdown
from kernelviz.core import BadField
from kernelviz.core.workload import WorkloadResult
from kernelviz.metrics.layer_truth import group_rows, kernel_rows, large_without_part
from kernelviz.plots import model as plots
from kernelviz.tables.column import View, select
from kernelviz.tables.model import GROUP_COLUMNS, KERNEL_COLUMNS, PART_COLUMNS
from kernelviz.text.failures import describe_failure
from kernelviz.text.model import (
    METHOD,
    NO_CLAIM,
    WAYS,
    describe_best_saving,
    describe_layer,
    describe_mix,
    describe_savings,
    describe_served,
    describe_sum,
    describe_truth,
    describe_whole,
    format_call,
    format_source,
    format_sum,
)
from kernelviz.text.workloads import describe_note
from kernelviz.ui.model import choice
from kernelviz.ui.server.assets import base_path
from kernelviz.ui.shared import charts, download_button, share, site, table
from kernelviz.ui.shared.text import bullets, plain


def layer_panel(layer: Layer) -> None:
    """The sentence, the bars, the sums and the table of the parts."""
    st.markdown(f"**{plain(format_call(layer.preset, layer.call))}** :gray[{plain(_device(layer.source))}]")
    whole, parts = plain(describe_whole(layer.truth)), plain(describe_layer(layer.parts, layer.comparable))
    # Where the sum lacks parts, the whole layer says more.
    lacks_parts = bool(whole) and any(one.missing for one in layer.comparable)
    st.markdown(f"**{whole}** Op by op, {parts[:1].lower()}{parts[1:]}" if lacks_parts else f"**{parts}**")
    if not layer.truth and all(one.interval is None for one in layer.sums):
        _parts(layer)  # no empty chart, and no sums that are all unknown
        return
    figure = plots.time_by_part(layer.parts, layer.truth, on_host=layer.source.device.kind == "cpu")
    alt = "; ".join(f"{WAYS[one.way]}: {format_sum(one)}" for one in layer.sums)
    charts.draw(figure, key="model_bars", alt=f"{alt}. The table below has all values.", picture=_picture(layer))
    st.caption(plain(NO_CLAIM))
    st.markdown(bullets([str(describe_sum(one)) for one in layer.sums]))
    _parts(layer)
    st.markdown("##### What fusing and the best variants would save")
    tokens, layers = layer.call.tokens, layer.preset.layers
    savings = [describe_best_saving(layer.comparable, tokens, layers)]
    savings += describe_savings(layer.fusions, layer.parts, tokens, layers)
    st.markdown(bullets([str(text) for text in savings]))


def _parts(layer: Layer) -> None:
    table.show(
        select(PART_COLUMNS, layer.parts, View.WIDE), layer.parts, key="model_parts", height="content",
        alt="Each part of the layer with its problem, its times, its best variant and its share of the roof",
    )  # fmt: skip


def _device(source: Source) -> str:
    return str(format_source(source.device.name, recorded=source.recorded))


def _picture(layer: Layer) -> charts.Picture:
    return charts.picture(str(format_call(layer.preset, layer.call)), layer.source.device.name, "")


def truth_panel(layer: Layer) -> None:
    """The layer as one module: its time, its parts and the rest, and its kernels."""
    st.markdown("##### The whole layer, measured as one module")
    if not layer.truth:
        remedy = (
            "To measure it, choose a device of this machine under Results."
            if layer.source.recorded
            else "Press **Measure the whole layer** above."
        )
        st.info(f"The whole layer was not measured with these sizes on this device. {remedy}", icon=":material/layers:")
        return
    if layer.source.device.kind == "cpu":
        st.badge("mechanics only", color="orange", icon=":material/settings:")
        st.caption("On a processor times are by the host's clock; they show that the comparison works.")
    st.markdown(bullets([str(describe_truth(result)) for result in layer.truth]))
    for result in layer.truth:
        _failure_and_notes(result)
    groups = group_rows(layer.truth)
    if groups:
        table.show(
            select(GROUP_COLUMNS, groups, View.WIDE), groups, key="model_groups", height="content",
            alt="Each part of the module with its time on its own, its share, and its time by torch.profiler",
        )  # fmt: skip
    kernels = kernel_rows(layer.truth)
    if kernels:
        without = large_without_part(kernels)
        st.markdown(
            f"**{len(without)}** kernels above 2 % of the layer belong to no part."
            if without
            else "Every kernel above 2 % of the layer belongs to a part."
        )
        with st.expander(f"All kernels ({len(kernels)})", icon=":material/list:"):
            table.show(
                select(KERNEL_COLUMNS, kernels, View.WIDE), kernels, key="model_kernels",
                alt="Each kernel of the layer with its part, its time and its share",
            )  # fmt: skip
    if layer.truth_run is not None:
        site.workload_link("Open this run: samples, export, compare", layer.truth_run.id)


def _failure_and_notes(result: WorkloadResult) -> None:
    if result.failure is not None:
        st.error(plain(f"{result.case.variant}: {describe_failure(result.failure)}"), icon=":material/error:")
        if result.failure.message:
            st.code(result.failure.message, language=None, wrap_lines=True)
    for note in result.notes:
        st.caption(plain(f"{result.case.variant}: {describe_note(note)}"))


def mix_panel(bench: Bench, chosen: choice.Choice) -> None:
    """Prefill and decoding weighted by the share of decoded tokens."""
    st.markdown("##### Traffic mix")
    st.caption(
        "How long a token takes on average when one GPU prefills and decodes: share × (time of a decoding step ÷ its batch) + "
        "(1 − share) × (time of a prefill ÷ its tokens)."
    )
    sizes = choice.mix_sizes(chosen)
    at = choice.share()
    try:
        mix = traffic_mix(
            bench, chosen.preset, chosen.call.dtype, chosen.source,
            batch=sizes.batch, context=sizes.context, prefill=sizes.prefill,
        )  # fmt: skip
    except BadField as error:
        st.error(plain(f"{error.field} {error.value}: {error.remedy}"), icon=":material/error:")
        return
    _mix(mix, at, chosen)


def _mix(mix: TrafficMix, at: float, chosen: choice.Choice) -> None:
    sentence = describe_mix(mix.ways, at, mix.missing)
    st.markdown(f"**{plain(sentence)}**")
    if not mix.ways and not any(part.variants for part in mix.parts):
        return
    picture = charts.picture(f"{chosen.preset.title}, traffic mix", chosen.source.device.name, "")
    charts.draw(
        plots.time_by_share(tuple(mix.ways.values()), at, "a layer's time"),
        key="model_mix",
        alt=sentence,
        picture=picture,
    )
    served = [describe_served(part.name, part.variants, part.flips, at) for part in mix.parts]
    st.markdown(
        "Products and attention are in both phases. Of the variants that can run them in both, the fastest for this mix:"
    )
    st.markdown(bullets([str(text) for text in served]))


def out(layer: Layer) -> None:
    """The link of the page, and the layer as a file."""
    with st.container(horizontal=True, gap="small", key="model_out"):
        popover = st.popover("Share", icon=":material/share:", key="model_share_box", on_change="rerun")
        if popover.open:
            with popover:
                url = str(st.context.url or "")
                if url:
                    view = {name: st.query_params[name] for name in st.query_params if name != "run"}
                    st.markdown("**Link**: opens this page as it is in any browser that can reach this server.")
                    st.code(share.page_link(url, base_path(), "model", view), language=None, wrap_lines=True)
                about = (layer.call, layer.source.name, tuple(t.run_id for p in layer.parts for t in p.times))
                truth = tuple(result.measured_at for result in layer.truth)
                download_button.button(
                    partial(_markdown, layer), f"{layer.call.preset}-{layer.call.phase}.md", "text/markdown",
                    choice=(about, truth, "md"), key="save_model_md", icon=":material/save:",
                    label="Save as Markdown",
                )  # fmt: skip
                download_button.button(
                    partial(as_json, layer), f"{layer.call.preset}-{layer.call.phase}.json", "application/json",
                    choice=(about, truth, "json"), key="save_model_json", icon=":material/save:",
                    label="Save as JSON",
                )  # fmt: skip


def _markdown(layer: Layer) -> bytes:
    return markdown(layer).encode()


def method() -> None:
    """How the numbers are made."""
    with st.expander("How these numbers are made", icon=":material/straighten:"):
        st.markdown(plain(METHOD))
