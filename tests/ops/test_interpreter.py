"""Every Triton kernel in Triton's interpreter, fp32 and fp16, odd sizes, within the bound of its op: never a wider one."""

from pathlib import Path

import pytest
from cases import compiled_by, interpreted_problems, ops_of, shard_of, wrong_at
from interpreter_process import interpreted_lines

HERE = Path(__file__).parent
Lines = dict[str, dict[str, object]]
CASES = [
    pytest.param(
        shard_of(op, v),
        f"{v.name} | {p.key}",
        wrong_at(op, v, p.sizes),
        marks=pytest.mark.xdist_group(f"interpreter-{shard_of(op, v)}"),
    )
    for op, v in compiled_by("triton")
    for p in interpreted_problems(op, v)
]
_interpreted: dict[int, Lines] = {}


@pytest.fixture
def interpreted(request: pytest.FixtureRequest) -> Lines:
    """What the process said that interpreted a shard; run once for all its cases."""
    pytest.importorskip("triton")
    shard = request.node.callspec.params["shard"]
    if shard not in _interpreted:
        lines = interpreted_lines(HERE / "interpreted.py", *ops_of(shard))
        _interpreted[shard] = {line["case"]: line for line in lines}
    return _interpreted[shard]


@pytest.mark.parametrize(("shard", "case", "wrong"), CASES)
def test_agrees_with_the_reference(shard: int, case: str, wrong: bool, interpreted: Lines) -> None:
    """Within the bound; but what is published wrong is found wrong, for the reason that is known."""
    found = interpreted[case]
    if found["passed"] is None:
        answered = [line for name, line in interpreted.items() if name.split(" | ")[0] == case.split(" | ")[0]]
        assert any(line["passed"] for line in answered), "it refuses every size"
        pytest.skip(str(found["message"]))
    assert not found["raised"], found["message"]
    assert found["passed"] != wrong, f"{found['message']} (largest error {found['worst_of_bound']} of the bound)"
    assert found.get("explained") is not False, "its outputs are not those of the mistake that is known of it"
