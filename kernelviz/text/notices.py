"""What impairs measurements on this machine, in text: for each kind of notice a sentence and a remedy, without a full stop."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from kernelviz.core import units
from kernelviz.core.notices import Datum, MigState, Notice, NoticeKind
from kernelviz.text.text import Text, join


class Description(NamedTuple):
    """A notice in text; the remedy is empty where none is known."""

    sentence: Text
    remedy: Text


MIG_STATES: Mapping[MigState, Text] = MappingProxyType(
    {
        "slice": Text("this is a slice of a GPU"),
        "divided": Text("on: this GPU is divided"),
        "off": Text("off"),
        "unknown": Text("not supported, or unknown"),
    }
)
_ALLOW_TRACING = "NVreg_RestrictProfilingToAdminUsers=0 for the driver on the host"
_END_PROFILERS = (
    "end every profiler and debugger of this process and restart kernelviz; if none runs, allow tracing with "
    f"{_ALLOW_TRACING}"
)
_UPDATE_DRIVER = "update the driver and restart kernelviz, or choose cpu as the device"
_SO = ", so times are longer and vary more"
_WAIT_OR_OTHER_GPU = "wait until they end, or choose another GPU"
_FIND_ON_HOST = "find it with nvidia-smi on the host, because this container does not see it; or choose another GPU"
_TEXTS: Mapping[NoticeKind, tuple[str, str]] = MappingProxyType(
    {
        "stated": ("{text}", ""),
        "unusable_device": ("{device} cannot be measured: {cause.sentence}", "{cause.remedy}"),
        "unlisted_gpu": ("a GPU of this machine cannot be used: {cause.sentence}", "{cause.remedy}"),
        "variants_lack": ("{variants} variants need {cause.sentence}", "{cause.remedy}"),
        "nothing_without": ("nothing can be measured on {device} without {cause.sentence}", "{cause.remedy}"),
        "needs": ("needs {cause.sentence}", "{cause.remedy}"),
        "mig_slice": (
            "this is a slice of a GPU (MIG), with {multiprocessors} multiprocessors and {memory_bytes} of memory: it has a share "
            "of the bandwidth, its neighbours share the power limit, and the data sheet of the whole GPU does not apply to it",
            "compare only with roofs measured in this slice: Calibrate, or kernelviz device --calibrate",
        ),
        "tracer_kineto": (
            "CUPTI cannot be used: {cause.sentence}; torch.profiler gives the kernels' times instead, without their grids and "
            "registers",
            "{cause.remedy}",
        ),
        "tracer_events": (
            "CUPTI cannot be used: {cause.sentence}; CUDA events give the times instead, within about a microsecond, and no "
            "kernel is named",
            "{cause.remedy}",
        ),
        "busy_machine": (
            "other programs use {percent} % of this machine's {processors} processors" + _SO,
            "wait until they end",
        ),
        "busy_host": (
            "other programs use {percent} % of this machine's {processors} processors, so calls and launches take longer (device "
            "times are not affected)",
            "wait until they end",
        ),
        "programs": (
            "other programs use this GPU ({processes})" + _SO,
            _WAIT_OR_OTHER_GPU,
        ),
        "more_programs": (
            "other programs use this GPU ({processes} and {more} more)" + _SO,
            _WAIT_OR_OTHER_GPU,
        ),
        "hidden_program": (
            "a program on the host or in another container uses this GPU" + _SO,
            _FIND_ON_HOST,
        ),
        "hidden_programs": (
            "{count} programs on the host or in other containers use this GPU" + _SO,
            "find them with nvidia-smi on the host, because this container does not see them; or choose another GPU",
        ),
        "hidden_memory": (
            "another program holds {used_bytes} of this GPU's memory" + _SO,
            _FIND_ON_HOST,
        ),
        "folder_not_writable": (
            "the folder {folder} cannot be written: {consequence_of}",
            "make it writable, or set {variable} to a folder that is",
        ),
        "disk_full": (
            "the disk of {folders} has {left_bytes} left: compiling and long runs may fill it",
            "free some space, or set {variables} to a folder on another disk",
        ),
        "disk_full_of_folders": (
            "the disk of {folders} has {left_bytes} left: compiling and long runs may fill it",
            "free some space, or set {variables} to folders on another disk",
        ),
        "store_full": (
            "nothing can be stored in {database}, because its disk is full ({error}); what is stored already can be read",
            "free some space there, and measure again what is not stored",
        ),
        "store_read_only": (
            "nothing can be stored in {database}, because it is read-only for this user ({error}); what is stored already can be "
            "read",
            "make the file and its folder writable, or set KERNELVIZ_HOME to another folder",
        ),
        "store_refuses": (
            "nothing can be stored in {database}, because its disk refuses to write ({error}); what is stored already can "
            "be read",
            "look for a limit on the size of files, a quota or a broken disk, or set KERNELVIZ_HOME to another folder",
        ),
        "no_nvml": ("the package nvidia-ml-py is not installed (pip install nvidia-ml-py)", ""),
        "no_driver_library": (
            "{file} is here, but the driver's library libnvidia-ml is not",
            "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        ),
        "no_driver": ("no NVIDIA driver is loaded on this machine", ""),
        "driver_updated": ("the NVIDIA driver was updated while it was in use", "restart this machine"),
        "driver_not_permitted": (
            "this user may not open the NVIDIA driver",
            "add the user to the group that owns /dev/nvidia*",
        ),
        "driver_error": ("the NVIDIA driver does not answer ({error})", "`nvidia-smi` may say more"),
        "gpus_hidden": ("CUDA_VISIBLE_DEVICES={value!r} hides every GPU of this machine", "unset it"),
        "no_gpu": ("the NVIDIA driver sees no GPU", ""),
        "no_torch": (
            "PyTorch is not installed",
            "install it with pip install -r requirements.txt and restart kernelviz",
        ),
        "torch_without_cuda": (
            "PyTorch {torch} is a build without CUDA",
            "replace it with pip install --force-reinstall torch=={release}",
        ),
        "driver_too_old": (
            "driver {driver} supports CUDA {supported}, torch {torch} is built for CUDA {cuda}, which needs {least_driver}",
            _UPDATE_DRIVER,
        ),
        "driver_too_old_for_nvrtc": (
            "driver {driver} supports CUDA {supported}, kernelviz compiles its own kernels for CUDA {cuda}, which needs "
            "{least_driver}",
            _UPDATE_DRIVER,
        ),
        "gpu_too_old": (
            "compute capability {capability} is older than 7.5, the least that CUDA {cuda} is built for",
            "choose another GPU, or cpu, as the device",
        ),
        "no_mig_slice": (
            "MIG mode is on and no slice is made or shown to this process",
            "make one (nvidia-smi mig -cgi 19 -C for the smallest), or turn MIG off (nvidia-smi -mig 0), and restart kernelviz",
        ),
        "gpu_not_chosen": ("CUDA: choose a GPU as the device", ""),
        "cuda": ("CUDA: {cause.sentence}", "{cause.remedy}"),
        "cpu_only": ("runs on the processor only: choose cpu as the device", ""),
        "no_triton": ("Triton", "install it with pip install triton (Linux only)"),
        "no_nvrtc": (
            "NVRTC, of which this is not installed: {lacking}",
            "install it with pip install cuda-core 'cuda-toolkit[nvrtc,cudart,crt,cccl]==13.0.*'",
        ),
        "no_liger": ("Liger's kernels", "install them with pip install 'kernelviz[liger]' (or liger-kernel==0.8.*)"),
        "no_package": ("{package}, which is not installed", "install it with {installation}"),
        "no_package_of_size": (
            "{package}, which is not installed",
            "install it with {installation}; its wheel has {download_bytes}",
        ),
        "no_program": ("{program}, which is not installed or not on PATH", "install {installation}"),
        "no_sm_89": (
            "compute capability 8.9 (Ada) or later, which multiplies 8-bit floats; this GPU has {capability}",
            "",
        ),
        "no_sm_90": ("compute capability 9.0 (Hopper) or later; this GPU has {capability}", ""),
        "no_sm_90a": (
            "compute capability 9.0 (Hopper), whose tensor core instructions (wgmma) no other GPU has; this GPU has {capability}",
            "",
        ),
        "no_c_compiler": (
            "a C compiler ({compilers}), and none is found: {builds}",
            "install one (apt install gcc, or conda install -c conda-forge gcc), or name one in CC",
        ),
        "no_cxx_compiler": (
            "a C++ compiler ({compilers}), and none is found: {builds}",
            "install one (apt install g++, or conda install -c conda-forge gxx), or name one in CXX",
        ),
        "no_python_headers": (
            "Python's headers ({file}), which are not installed: {includes}",
            "install them (apt install {package}), or use a Python that has them, such as conda's",
        ),
        "two_hosts": (
            "two hosts: it first reduces inside of each host and then between them, and a host alone has nothing between",
            "",
        ),
        "unknown_need": ("{need!r}, which this version of kernelviz does not know", ""),
        "cupti_not_allowed": (
            "this user is not allowed to trace the GPU (CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)",
            f"set {_ALLOW_TRACING}, or start the container with --cap-add=SYS_ADMIN --user root",
        ),
        "other_profiler": (
            "another profiler uses CUPTI in this process (CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)",
            "start kernelviz without nsys, ncu or a debugger around it; use these tools on `kernelviz launch` instead",
        ),
        "no_cupti": (
            "cupti-python is not installed",
            "install it with pip install cupti-python==13.0.1 and restart kernelviz",
        ),
        "other_cupti_version": (
            "the installed CUPTI and the driver do not work together",
            "install the pair that kernelviz is tested with (pip install -r requirements.txt) and restart kernelviz",
        ),
        "nothing_traced": ("nothing was traced", _END_PROFILERS),
        "cupti_error": ("{error}", _END_PROFILERS),
    }
)
_LOOK = "see that nvidia-smi lists the GPU for this user, then restart kernelviz"
"""The remedy for a GPU that the driver's library does not list, where its cause has none."""
_NAMES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "variants": {"triton": "Triton", "inductor": "torch.compile", "nvrtc": "CUDA C++", "cxx": "C++"},
        "multiprocessors": {"None": "an unknown number of"},
        "least_driver": {"None": "a newer driver"},
        "builds": {
            "triton": "Triton builds its launcher with it",
            "cxx": "it builds a C++ extension",
            "inductor": "torch.compile builds its CPU kernels with it",
        },
        "includes": {
            "triton": "Triton's launcher includes them",
            "cxx": "a C++ extension includes them",
            "inductor": "torch.compile's CPU code includes them",
        },
        "consequence_of": {
            "TRITON_CACHE_DIR": "Triton and torch.compile variants cannot be compiled",
            "TORCHINDUCTOR_CACHE_DIR": "torch.compile variants cannot be compiled",
            "KERNELVIZ_CACHE": "CUDA variants are compiled anew in every process",
            "KERNELVIZ_HOME": "runs cannot be stored",
            "TMPDIR": "compilers cannot write their temporary files",
        },
    }
)
"""The words for the names in a notice's data, by the name of the datum."""


def describe_notice(notice: Notice) -> Description:
    """The sentence and the remedy of a notice.

    >>> str(describe_notice(Notice("cuda", {"cause": Notice("no_driver")})).sentence)
    'CUDA: no NVIDIA driver is loaded on this machine'
    """
    data = {name: _format_datum(name, datum) for name, datum in notice.data.items()}
    sentence, remedy = (template.format_map(data) for template in _TEXTS[notice.kind])
    if notice.kind == "unlisted_gpu":
        remedy = remedy or _LOOK
    return Description(Text(sentence), Text(remedy))


def format_notice(notice: Notice) -> Text:
    """The sentence, and behind it the remedy if there is one.

    >>> str(format_notice(Notice("no_liger")))[:34]
    "Liger's kernels; install them with"
    """
    return join("; ", [part for part in describe_notice(notice) if str(part)])


def _format_datum(name: str, datum: Datum) -> str | Description:
    match datum:
        case Notice():
            return describe_notice(datum)
        case int() if name.endswith("_bytes"):
            return units.size_bytes(datum)
        case int() if name == "least_driver":
            return f"driver {datum} or newer"
        case tuple() if name == "processes":
            return ", ".join(_format_name(name, element) for element in datum)
        case tuple():
            return units.enumerated(dict.fromkeys(_format_name(name, element) for element in datum))
        case _:
            return _format_name(name, datum)


def _format_name(name: str, element: str | int | tuple[int, str | None] | None) -> str:
    if isinstance(element, tuple):
        process_id, program = element
        return f"{program or 'a program without a name'} (process {process_id})"
    return _NAMES.get(name, {}).get(str(element), "unknown" if element is None else str(element))
