"""The C++ extension of `scale`: really compiled, kept, right on a CPU, and not offered where it cannot run."""

import shutil
import sysconfig
from pathlib import Path

import pytest
import torch
from cases import odd_sizes
from checking import bind, checked, inputs_of

from kernelviz.core.errors import BadField
from kernelviz.core.run import Device
from kernelviz.hardware.discovery import missing
from kernelviz.measure.session.inputs import as_tuple
from kernelviz.ops import op_named
from kernelviz.ops.scale import extension
from kernelviz.text.notices import format_notice

# One process builds it, in a quarter of a minute; the others need not.
pytestmark = pytest.mark.xdist_group("extension")

SCALE = op_named("scale")
CPP = SCALE.variant_named("cpp_extension")
H200 = Device(id="cuda:0", kind="cuda", name="NVIDIA H200", uuid="GPU-aa")
CPU = Device(id="cpu", kind="cpu", name="CPU", uuid="CPU-1")


@pytest.fixture(scope="module", autouse=True)
def _compiler() -> None:
    reason = missing(CPP.needs, CPU)
    if reason is not None:
        pytest.skip(str(format_notice(reason)))


@pytest.mark.parametrize("dtype", SCALE.dtypes)
def test_it_agrees_with_the_reference_and_is_torchs_product(dtype: str) -> None:
    for sizes in odd_sizes(SCALE):
        problem = SCALE.problem(sizes, dtype)
        accuracy = checked(SCALE, CPP, problem)
        assert accuracy.passed, accuracy.reasons
        inputs = inputs_of(SCALE, problem)
        (theirs,) = as_tuple(bind(SCALE.variant_named("torch_eager"), problem, inputs)())
        (ours,) = as_tuple(bind(CPP, problem, inputs)())
        assert torch.equal(ours, theirs)


def test_a_launch_reads_its_input_as_it_is_when_it_is_called() -> None:
    x_N = torch.ones(8)
    launch = extension.bind_custom_scale(x_N, 0.5)
    x_N.fill_(4.0)
    assert as_tuple(launch())[0].tolist() == [2.0] * 8


def test_it_is_machine_code_kept_on_disk_and_not_built_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = extension.built()
    assert kept.read_bytes().startswith(b"\x7fELF")
    assert extension.loaded().__file__ == str(kept)

    def refuse(command: list[str], target: Path) -> None:
        raise AssertionError("built again")

    monkeypatch.setattr(extension, "_build", refuse)
    assert extension.built() == kept
    monkeypatch.setenv("CXX", "another-compiler")
    with pytest.raises(AssertionError, match="built again"):
        extension.built()


def test_a_compilers_complaint_is_the_message_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken.cpp"
    broken.write_text("int answer() { return no_such_name; }")
    monkeypatch.setattr(extension, "SOURCE", broken)
    monkeypatch.setenv("KERNELVIZ_CACHE", str(tmp_path / "cache"))
    with pytest.raises(extension.CompilationError, match="no_such_name"):
        extension.built()
    assert [p for p in (tmp_path / "cache").rglob("*") if p.is_file()] == []


def test_a_gpu_is_told_to_choose_the_processor() -> None:
    lack = missing(CPP.needs, H200)
    assert lack is not None
    assert str(format_notice(lack)) == "runs on the processor only: choose cpu as the device"
    assert CPP.slow_compile
    with pytest.raises(BadField, match="choose cpu as the device"):
        extension.bind_custom_scale(torch.empty(4, device="meta"), 0.7)


def missing_text() -> str:
    notice = missing(("cxx",), CPU)
    return "" if notice is None else str(format_notice(notice))


def test_what_a_build_lacks_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda name, scheme: str(tmp_path))
    assert "Python.h" in missing_text()
    assert "-dev" in missing_text()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "needs a C++ compiler (c++)" in missing_text()
