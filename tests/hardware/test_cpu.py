"""The processor's facts from files as kernels write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelviz.core import BadField
from kernelviz.hardware import cpu


@pytest.fixture(autouse=True)
def no_cache_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(cpu.CACHE_VARIABLE)


def _cache(sys: Path, of_cpu: int, index: int, level: int, kind: str, size: str, sharers: str) -> None:
    folder = sys / f"devices/system/cpu/cpu{of_cpu}/cache/index{index}"
    folder.mkdir(parents=True)
    for name, text in (("level", str(level)), ("type", kind), ("size", size), ("shared_cpu_list", sharers)):
        (folder / name).write_text(text + "\n")


def test_the_last_level_is_the_highest_and_each_instance_counts_once(tmp_path: Path) -> None:
    for number, sharers in ((0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3")):
        _cache(tmp_path, number, 0, 1, "Data", "32K", str(number))
        _cache(tmp_path, number, 1, 1, "Instruction", "64M", str(number))
        _cache(tmp_path, number, 3, 3, "Unified", "16384K", sharers)
    assert cpu.last_level_cache_bytes(tmp_path) == 2 * 16 * 2**20


def test_a_machine_that_hides_its_caches_has_none_known(tmp_path: Path) -> None:
    assert cpu.last_level_cache_bytes(tmp_path) is None


def test_the_environment_can_say_how_large_the_last_level_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _cache(tmp_path, 0, 3, 3, "Unified", "16384K", "0")
    for given, size in (("2097152", 2 * 2**20), (" 2097152\n", 2 * 2**20), ("", 16 * 2**20)):
        monkeypatch.setenv(cpu.CACHE_VARIABLE, given)
        assert cpu.last_level_cache_bytes(tmp_path) == size


@pytest.mark.parametrize("given", ["0", "2 MiB", "-1", "1e6", "2²"])
def test_what_is_no_size_of_a_cache_is_refused(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _cache(tmp_path, 0, 3, 3, "Unified", "16384K", "0")
    monkeypatch.setenv(cpu.CACHE_VARIABLE, given)
    with pytest.raises(BadField, match=f"{cpu.CACHE_VARIABLE}: .*{given}.*whole number of bytes above 0.*unset it"):
        cpu.last_level_cache_bytes(tmp_path)


def test_the_name_and_its_fallback(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: AMD EPYC 9654 96-Core Processor\n")
    assert cpu.name(tmp_path) == "AMD EPYC 9654 96-Core Processor"
    assert cpu.name(tmp_path / "missing")


def test_a_containers_limit_is_the_memory(tmp_path: Path) -> None:
    limit = tmp_path / "fs/cgroup/memory.max"
    limit.parent.mkdir(parents=True)
    limit.write_text("max\n")
    whole = cpu.memory_bytes(tmp_path)
    limit.write_text("268435456\n")
    assert cpu.memory_bytes(tmp_path) == 2**28 < whole


def test_identity_follows_the_machine_and_does_not_show_its_id(tmp_path: Path) -> None:
    identity = tmp_path / "machine-id"
    identity.write_text("0123456789abcdef0123456789abcdef\n")
    first = cpu.machine_uuid(identity)
    assert first == cpu.machine_uuid(identity)
    assert "0123456789abcdef" not in first
    assert first != cpu.machine_uuid(tmp_path / "none")
    assert cpu.machine_uuid(tmp_path) == cpu.machine_uuid(tmp_path / "none"), (
        "what cannot be read is as if it were not there"
    )
