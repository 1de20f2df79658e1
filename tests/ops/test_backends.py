"""Backends: each is one module, which says what its variants need and who compiles them."""

from __future__ import annotations

import importlib.util
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from kernelviz.core.backends import BACKENDS
from kernelviz.core.backends.backend import Backend
from kernelviz.core.notices import Notice
from kernelviz.core.reasons import NeedMissing
from kernelviz.hardware.toolchain import no_package
from kernelviz.measure.compile_ahead.selection import compiles_without_gpu
from kernelviz.metrics.library_comparison import OWN
from kernelviz.ops import catalogue, variant
from kernelviz.text.notices import describe_notice
from kernelviz.text.refusals import format_refusals

ROOT = Path(__file__).parents[2]


def test_each_module_has_a_backend_of_its_name() -> None:
    for name, backend in BACKENDS.items():
        assert importlib.util.find_spec(f"kernelviz.core.backends.{name}") is not None
        assert bool(backend.module) == bool(backend.installation), name
    assert {v.backend for op in catalogue().values() for v in op.variants} <= set(BACKENDS)
    assert set(OWN) == {"triton", "gluon", "cuda", "cpp", "helion"}


def test_gluon_kernels_are_compiled_ahead_and_not_interpreted() -> None:
    chosen = catalogue()["matmul"].variant_named("gluon_warp_specialised")
    assert compiles_without_gpu(chosen)
    assert BACKENDS["triton"].interpreted
    assert not BACKENDS["gluon"].interpreted
    assert "interpreter" in BACKENDS["gluon"].not_interpreted


def test_a_module_that_is_missing_is_named_with_its_installation() -> None:
    missing = Backend(
        name="x", title="X", written_here=True, module="triton.experimental.no_such", installation="pip install x"
    )
    notice = no_package(missing)
    assert notice is not None
    described = describe_notice(notice)
    assert str(described.sentence) == "X, which is not installed"
    assert str(described.remedy) == "install it with pip install x"
    assert no_package(Backend(name="x", title="X", written_here=True, module="no_such_package", installation="y"))
    pytest.importorskip("triton")
    assert no_package(BACKENDS["gluon"]) is None


@pytest.mark.parametrize(("name", "extra", "size"), [("cutlass", "cutlass", "6.1"), ("helion", "helion", "4.4")])
def test_an_optional_backend_names_its_extra_and_its_size(name: str, extra: str, size: str) -> None:
    backend = BACKENDS[name]
    notice = no_package(replace(backend, module="no_such_package"))
    assert notice is not None
    described = describe_notice(notice)
    assert str(described.sentence) == f"{backend.title}, which is not installed"
    assert f"pip install 'kernelviz[{extra}]'" in str(described.remedy)
    assert f"its wheel has {size}" in str(described.remedy)
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    assert all(requirement.partition(">")[0] in backend.installation for requirement in extras[extra])


def test_a_program_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    backend = replace(BACKENDS["cutlass"], module="kernelviz.core")
    notice = no_package(backend)
    assert notice is not None
    described = describe_notice(notice)
    assert str(described.sentence) == "nvcc, which is not installed or not on PATH"
    assert "CUDA toolkit" in str(described.remedy)
    refused = NeedMissing(notice=Notice("needs", {"cause": notice}))
    assert str(format_refusals([refused])) == "1 needs nvcc"
    program = tmp_path / "nvcc"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert no_package(backend) is None


@pytest.mark.parametrize(
    ("backend", "needs", "message"), [("glu", (), "backend 'glu'"), ("gluon", ("cutlas",), "need 'cutlas'")]
)
def test_an_unknown_backend_or_need_is_refused_where_it_is_written(
    backend: str, needs: tuple[str, ...], message: str
) -> None:
    def bind() -> None:
        """A variant."""

    with pytest.raises(ValueError, match=message):
        variant(backend=backend, needs=needs)(bind)  # type: ignore[arg-type]


def test_variants_of_a_compiler_have_targets() -> None:
    def bind() -> None:
        """A variant."""

    assert variant(backend="gluon", needs=("gluon",))(bind).targets == ("sm_80", "sm_90", "sm_100")  # type: ignore[arg-type]
    assert variant(backend="torch")(bind).targets == ()  # type: ignore[arg-type]
