"""The workload `transformer_layer`: a layer of a published model as one torch module, and the kernels that it consists of."""

from kernelviz.core.workload import (
    Workload,
    WorkloadAxis,
    WorkloadChart,
    WorkloadFigure,
    WorkloadLimit,
    WorkloadPreset,
    WorkloadVariant,
)
from kernelviz.models.parts import MOST_BATCH, NUMBER_FORMATS, PHASES
from kernelviz.models.presets import PRESETS


def _preset(
    name: str, title: str, model: str, phase: str, batch: int, context: int, *, on: str | None = None
) -> WorkloadPreset:
    values: dict[str, tuple[int | str, ...]] = {
        "model": (model,), "phase": (phase,), "batch": (batch,), "context": (context,), "dtype": ("bf16",),
    }  # fmt: skip
    return WorkloadPreset(name=name, title=title, device_kinds=("cpu",) if on == "cpu" else ("cuda",), values=values)


TRANSFORMER_LAYER = Workload(
    name="transformer_layer",
    title="Transformer layer",
    summary=(
        "A layer of a published model on random weights as one torch module: the time in which its kernels run, each of its "
        "parts on its own behind the part before it, and the rest that the parts do not explain."
    ),
    runner="kernelviz.workloads.transformer_layer.torch_measuring:measure",
    axes=(
        WorkloadAxis(name="model", title="Model", kind="choice", choices=tuple(PRESETS)),
        WorkloadAxis(name="phase", title="Phase", kind="choice", choices=PHASES),
        WorkloadAxis(name="batch", title="Batch", help="Sequences.", maximum=MOST_BATCH),
        WorkloadAxis(
            name="context", title="Context", help="Tokens of each sequence; when decoding, in the cache with the new one."
        ),
        WorkloadAxis(name="dtype", title="Number format", kind="choice", choices=NUMBER_FORMATS),
    ),
    presets=(
        _preset("prefill-4096", "Llama-3-8B, prefill of 4,096 tokens", "llama-3-8b", "prefill", 1, 4096),
        _preset("decode-64-8k", "Llama-3-8B, decoding 64 sequences of 8,192", "llama-3-8b", "decode", 64, 8192),
        _preset("gpt-2-prefill-64", "GPT-2, prefill of 64 tokens", "gpt-2", "prefill", 1, 64, on="cpu"),
        _preset("gpt-2-decode-4-64", "GPT-2, decoding 4 sequences of 64", "gpt-2", "decode", 4, 64, on="cpu"),
    ),
    variants=(
        WorkloadVariant(name="eager", caption="The module as it is: each op of torch launches its kernels.",
            idea="It is what people write first, and what gains are relative to."),
        WorkloadVariant(
            name="compiled",
            caption="torch.compile of the whole module.",
            idea="Inductor fuses element-wise work with norms and activations, so that tensors are read and written less often.",
        ),
    ),
    baseline="eager",
    figures=(
        WorkloadFigure(
            name="layer_s", title="Layer", unit="s", better="lower", headline=True,
            help="Time in which a kernel of the layer ran, in one replay of its CUDA graph behind a flush of the cache; on a "
            "processor the time of the call by the host's clock.",
        ),
        WorkloadFigure(
            name="groups_s", title="Sum of its parts", unit="s", better="neither",
            help="Each part on its own, behind the part before it, in the same rounds.",
        ),
        WorkloadFigure(
            name="rest_s", title="Unexplained rest", unit="s", better="neither", help="The layer minus its parts, with its sign.",
        ),
        WorkloadFigure(
            name="rest_share", title="Rest over layer", unit="fraction", better="neither",
            help="The rest as a share of the layer, with its sign.",
        ),
        WorkloadFigure(
            name="error", title="Relative error", unit="number", better="lower", origin="counted",
            help="The largest relative L2 error of a token's output against the same layer in fp32; at most 8 units of rounding.",
        ),
        WorkloadFigure(
            name="profiler_s", title="Sum by torch.profiler", unit="s", better="neither",
            help="The median over calls of the sum of all kernels, by torch.profiler in a process of its own.",
        ),
    ),
    chart=WorkloadChart(kind="bars", figures=("layer_s",)),
    limits=(
        WorkloadLimit(
            name="one_layer", text="One layer on random weights; embedding, head and sampling of the model are not in it."
        ),
        WorkloadLimit(
            name="cold_weights",
            text="The cache is flushed before the layer, as the layers before it would do; a part on its own finds in the cache "
            "what the one part before it left there, and nothing of earlier ones.",
        ),
        WorkloadLimit(
            name="host_clock", when="cpu",
            text="Mechanics: on a processor times are by the host's clock, and the parts of the compiled layer cannot be "
            "measured one by one.",
        ),
    ),
    on_cpu="mechanics_only",
    budget_s=8.0,
    most_s=300.0,
)  # fmt: skip
WORKLOADS = (TRANSFORMER_LAYER,)
