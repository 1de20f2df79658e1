"""The newest roof of each kind is kept: sizes and levels beside each other, and what an older version measured is void."""

from pathlib import Path

from kernelviz.core.run import Level, Roof, RoofName
from kernelviz.store import Store


def test_sizes_levels_and_units_stand_beside_each_other(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    asked: list[tuple[RoofName, Level, int]] = [("read", "dram", 2**27), ("read", "dram", 2**29), ("read", "l2", 2**24)]
    for day in ("2026-01-01", "2026-01-02"):
        for name, level, size in asked:
            roof = Roof(name=name, level=level, moved_bytes=size, bandwidth_bytes_per_s=1e12, measured_at=day)
            store.roofs.put("gpu", roof)
        store.roofs.put(
            "gpu",
            Roof(name="matmul", precision="bf16", unit="tensor", rate_flop_per_s=1e14, moved_bytes=8, measured_at=day),
        )
        store.roofs.put("gpu", Roof(name="fma", precision="bf16", unit="vector", rate_flop_per_s=1e13, measured_at=day))
        store.roofs.put("gpu", Roof(name="launch", what="torch_call", time_s=1e-6, measured_at=day))
        store.roofs.put("gpu", Roof(name="launch", what="graph_launch", time_s=1e-6, measured_at=day))
    found = store.roofs.newest("gpu")
    store.close()
    assert [(r.name, r.level, r.moved_bytes) for r in found[:3]] == asked
    assert {r.measured_at for r in found[:3]} == {"2026-01-02"}
    assert [(r.name, r.unit, r.what) for r in found[3:]] == [
        ("matmul", "tensor", None), ("fma", "vector", None), ("launch", None, "torch_call"), ("launch", None, "graph_launch"),
    ]  # fmt: skip


def test_a_roof_without_level_or_unit_is_void_once_there_is_one_with_it(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    old = (
        Roof(name="read", bandwidth_bytes_per_s=1e12),
        Roof(name="copy", bandwidth_bytes_per_s=1e12),
        Roof(name="matmul", precision="bf16", rate_flop_per_s=1e14),
    )
    for roof in old:
        store.roofs.put("gpu", roof)
    assert store.roofs.newest("gpu") == old
    new = (
        Roof(name="read", level="dram", moved_bytes=2**29, bandwidth_bytes_per_s=2e12),
        Roof(name="matmul", precision="bf16", unit="tensor", rate_flop_per_s=2e14),
    )
    for roof in new:
        store.roofs.put("gpu", roof)
    found = store.roofs.newest("gpu")
    store.close()
    assert found == (old[1], *new)


def test_a_roof_that_is_brought_later_but_was_measured_earlier_is_not_the_current_one(tmp_path: Path) -> None:
    """As when an old backup is restored."""
    store = Store.open(tmp_path)
    new, old = (
        Roof(name="read", level="dram", moved_bytes=2**29, bandwidth_bytes_per_s=1e12, measured_at=f"{year}-01-01")
        for year in (2026, 2025)
    )
    store.roofs.put("gpu", new)
    assert store.roofs.put("gpu", old, only_new=True)
    current, every, all_of_them = store.roofs.newest("gpu"), store.roofs.of_device("gpu"), store.roofs.every()
    store.close()
    assert current == (new,)
    assert every == (old, new)
    assert all_of_them == (("gpu", old), ("gpu", new))
