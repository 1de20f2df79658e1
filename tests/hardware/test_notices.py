"""Each thing that hampers measuring is a sentence with a remedy, made from planted facts; a sound machine gets none."""

from __future__ import annotations

import errno
import os
import shutil
from collections import namedtuple
from pathlib import Path

import msgspec
import pytest
import sample_runs as samples

from kernelviz.hardware import notices as room
from kernelviz.hardware.discovery import unusable as why_unusable
from kernelviz.hardware.notices import Neighbour, Notice, disks, folders, mig, neighbours, tracing, unusable
from kernelviz.hardware.toolchain import TorchBuild

H200 = samples.H200
Usage = namedtuple("Usage", "total used free")


def said(notice: Notice | None) -> str:
    assert notice is not None
    assert notice.sentence
    assert notice.remedy, "a notice without a remedy"
    return f"{notice.sentence}. {notice.remedy}"


def test_a_driver_that_is_too_old_names_both_versions_and_the_remedy() -> None:
    reason = why_unusable("535.183", "12.2", (9, 0), TorchBuild("2.13.0+cu130", "13.0"))
    words = said(unusable(msgspec.structs.replace(H200, usable=False, reason=reason)))
    for part in ("driver 535.183", "CUDA 12.2", "driver 580 or newer", "update the driver"):
        assert part in words


@pytest.mark.parametrize(("device", "program"), [(H200, "C compiler"), (samples.CPU, "C++ compiler")])
def test_no_compiler_says_what_is_lost_and_how_to_get_it(
    device: object, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    words = said(room.toolchain(device))  # type: ignore[arg-type]
    assert program in words
    assert "torch.compile" in words
    assert "apt install g" in words


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("kineto; CuptiTracer.shared: cuptiError: INSUFFICIENT_PRIVILEGES", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("kineto; CuptiTracer.shared: MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", "nsys"),
        ("kineto; CuptiTracer.shared: ModuleNotFoundError: No module named 'cupti'", "pip install cupti-python"),
    ],
)
def test_cupti_that_cannot_be_used_says_what_takes_its_place(line: str, remedy: str) -> None:
    words = said(tracing(line))
    assert "torch.profiler" in words
    assert remedy in words


def test_a_tracer_that_works_and_one_not_yet_known_need_no_words() -> None:
    assert tracing("cupti") is None
    assert tracing(None) is None


def test_a_slice_is_held_against_its_own_roofs() -> None:
    by_name = msgspec.structs.replace(H200, uuid="MIG-1234")
    for notice in (mig(by_name, None), mig(H200, (1, 1))):
        assert "Calibrate" in said(notice)
    assert mig(H200, (0, 0)) is None
    assert mig(H200, None) is None


def test_programs_of_others_are_named_and_what_a_container_hides_is_not_guessed() -> None:
    words = said(neighbours([Neighbour(7, "python"), Neighbour(8, None), Neighbour(1, "us")], {1}))
    assert "python (pid 7), unknown program (pid 8)" in words
    assert neighbours([Neighbour(1, "us")], {1}) is None
    assert neighbours([Neighbour(7, "python")], {1}) is None  # pids of the host: ours is not among them
    assert neighbours(None, {1}) is None


def test_a_disk_that_is_nearly_full_names_the_folder_and_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(100, 90, 5 * 2**20))
    (notice,) = disks({"TRITON_CACHE_DIR": tmp_path / "not" / "made" / "yet"})
    assert "5 MiB left" in said(notice)
    assert "TRITON_CACHE_DIR" in notice.remedy


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    (notice,) = disks({"KERNELVIZ_HOME": tmp_path})
    assert str(tmp_path) in said(notice)
    assert "KERNELVIZ_HOME" in notice.remedy


def test_folders_follow_their_variables(tmp_path: Path) -> None:
    found = folders({"TRITON_CACHE_DIR": "/t", "TORCHINDUCTOR_CACHE_DIR": "/i", "KERNELVIZ_CACHE": "/k"}, tmp_path)
    assert [str(found[v]) for v in found if v != "KERNELVIZ_HOME"] == ["/t", "/i", "/k"]
    assert found["KERNELVIZ_HOME"] == tmp_path


def test_a_sound_machine_gets_no_notice(tmp_path: Path) -> None:
    assert room.notices(samples.CPU, None, tmp_path) == ()


def test_a_disk_that_fills_while_compiling_is_a_failure_with_a_remedy() -> None:
    from kernelviz.measure.faults import failure

    try:
        try:
            raise OSError(errno.ENOSPC, "No space left on device", "/cache/x")
        except OSError as cause:
            raise RuntimeError("compiling failed") from cause
    except RuntimeError as error:
        found = failure(error, calling=False)
    assert found.stage == "compile"
    assert "the disk is full" in found.message
    assert "TRITON_CACHE_DIR" in found.message
