"""Refusals in a few words: how many variants cannot be chosen, and what they need."""

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from kernelviz.core.notices import Notice
from kernelviz.core.reasons import NeedMissing, NoCompute, NoDirection, NoDtype, NotAdmitted, Refusal, SizeTooLarge
from kernelviz.text.text import Text

_NEEDS: Mapping[str, str] = MappingProxyType(
    {
        "cuda": "CUDA",
        "gpu_not_chosen": "CUDA",
        "cpu_only": "the processor",
        "no_triton": "Triton",
        "no_nvrtc": "NVRTC",
        "no_liger": "Liger",
        "no_sm_89": "fp8",
        "no_sm_90": "Hopper",
        "no_sm_90a": "Hopper",
        "no_c_compiler": "a C compiler",
        "no_cxx_compiler": "a C++ compiler",
        "no_python_headers": "Python's headers",
        "two_hosts": "two hosts",
    }
)
"""What a variant needs, by the kind of the notice that says that it is missing."""

_NAMED: Mapping[str, str] = MappingProxyType(
    {"no_package": "package", "no_package_of_size": "package", "no_program": "program"}
)
"""Where the notice names itself what is needed: the datum that has the name."""

_UNKNOWN = "what is missing here"


def _need(cause: Notice) -> str:
    named = _NAMED.get(cause.kind)
    return str(cause.data[named]) if named is not None else _NEEDS.get(cause.kind, _UNKNOWN)


def format_refusals(refusals: Iterable[Refusal]) -> Text:
    """How many variants cannot be chosen and why, the most frequent reason first.

    >>> cuda, liger = (NeedMissing(notice=Notice("needs", {"cause": Notice(k)})) for k in ("cuda", "no_liger"))
    >>> str(format_refusals([cuda, liger, cuda])), str(format_refusals([NoDtype(dtype="fp32", has=("bf16",))]))
    ('2 need CUDA, 1 needs Liger', '1 has no fp32 kernel')
    """
    counts = Counter(map(_verb, refusals))
    return Text(", ".join(f"{n} {(one if n == 1 else more)}" for (one, more), n in counts.most_common()))


def _verb(refusal: Refusal) -> tuple[str, str]:
    """The end of the sentence for one variant, and for several."""
    match refusal:
        case NeedMissing():
            notice = refusal.notice
            cause = notice.data.get("cause") if notice is not None and notice.kind == "needs" else notice
            need = _need(cause) if isinstance(cause, Notice) else _UNKNOWN
            return f"needs {need}", f"need {need}"
        case NoDtype():
            return f"has no {refusal.dtype} kernel", f"have no {refusal.dtype} kernel"
        case NoCompute():
            return f"does not compute in {refusal.compute}", f"do not compute in {refusal.compute}"
        case NoDirection():
            return f"has no {refusal.direction} pass", f"have no {refusal.direction} pass"
        case SizeTooLarge():
            return f"takes {refusal.axis} up to {refusal.most} only", f"take {refusal.axis} up to {refusal.most} only"
        case NotAdmitted():
            return "is not for such sizes", "are not for such sizes"
