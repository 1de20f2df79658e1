"""Files of kernel tests that passed with the code as it is are not run again, and any change of that code runs them."""

from __future__ import annotations

import passed_record
import pytest


def test_most_files_are_on_record() -> None:
    """Else every run of the tests runs them, for eight minutes of processor time."""
    missing = [file.name for file in passed_record.files() if file not in passed_record.on_record()]
    most = passed_record.MOST_MISSING * len(passed_record.files())
    assert len(missing) <= most, f"write the record: python tests/ops/passed_record.py ({', '.join(missing)})"


def test_only_what_decides_a_test_changes_its_digest() -> None:
    def code(text: str, suffix: str = ".py") -> str:
        return passed_record.code_hash(suffix, text)

    text = '"""Doc."""\n\n@variant(largest={"n": 7})\ndef f(x):\n    """Doc."""\n    return x + 1  # why\n'
    assert code(text) == code(text.replace("Doc.", "Other.").replace("# why", ""))
    for before, after in (("+ 1", "+ 2"), ('"n": 7', '"n": 8'), ("def f", "def g")):
        assert code(text) != code(text.replace(before, after)), after
    field, argument = "class Op:\n    n: int\n", "SCALE = Op(n=1)\n"
    with_rule = f"from kernelviz.ops.scale import best\n{field}    best: Rule | None = None\n{argument[:-2]}, best=best.scale)\n"
    assert code(field + argument) == code(with_rule), "which variant a user gets decides no test of a kernel"
    kernel = '#include "a.cuh"\nint f() { return 1; } // why\n'
    assert code(kernel, ".cu") == code(kernel.replace("// why", "/* because */"), ".cu")
    assert code(kernel, ".cu") != code(kernel.replace("return 1", "return 2"), ".cu")


@pytest.mark.parametrize(
    "changed",
    [
        "kernelviz/ops/scale/cuda.cu",
        "kernelviz/measure/gate/check.py",
        "kernelviz/core/dtypes.py",
        "tests/ops/cuda/emulator.h",
    ],
)
def test_a_change_of_a_kernel_or_of_what_judges_it_finds_no_file_on_record(
    changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {file.name: passed_record.digest_of(file) for file in passed_record.files()}
    assert set(passed_record.on_record(known)) == set(passed_record.files())
    file, read = passed_record.ROOT / changed, passed_record.read_text
    assert file.is_file()
    addition = "\nother = 1\n" if file.suffix == ".py" else "\nint other;\n"
    monkeypatch.setattr(passed_record, "read_text", lambda path: read(path) + (addition if path == file else ""))
    passed_record._shared.cache_clear()
    try:
        assert passed_record.on_record(known) == {}
    finally:
        monkeypatch.undo()
        passed_record._shared.cache_clear()


def test_a_change_of_a_file_of_tests_runs_those_that_import_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {file.name: passed_record.digest_of(file) for file in passed_record.files()}
    file, read = passed_record.HERE / "test_one_block.py", passed_record.read_text
    monkeypatch.setattr(passed_record, "read_text", lambda path: read(path) + ("\nother = 1\n" if path == file else ""))
    gone = {one.name for one in passed_record.files()} - {one.name for one in passed_record.on_record(known)}
    assert {"test_one_block.py", "test_column_vectors.py", "test_slices.py"} <= gone
    assert "test_slab_rows.py" not in gone


def test_of_the_types_only_those_decide_that_the_deciding_code_imports() -> None:
    """A type of a page, such as that of claims, sends no test of a kernel to be run again."""
    core = {path.name for path in passed_record.deciding() if path.parent == passed_record.ROOT / passed_record.CORE}
    assert {"__init__.py", "problem.py", "result.py", "dtypes.py", "errors.py"} <= core
    assert not core & {"claim.py", "code_changes.py", "units.py", "version_1.py"}


def test_a_changed_file_of_tests_is_run_and_a_sample_of_the_others() -> None:
    files = passed_record.files()
    known = {file.name: passed_record.digest_of(file) for file in files} | {files[0].name: "of another text"}
    passed = passed_record.on_record(known)
    assert set(passed) == set(files[1:])
    samples = [set(passed) - passed_record.left_out(passed, f"{number:040x}") for number in range(100)]
    assert 0.3 <= sum(map(len, samples)) / len(samples) <= 1.5, "one file in eighty"
    assert len(set().union(*samples)) > len(files) / 2, "others at each commit"
    assert passed_record.left_out(passed, "") == set(passed)


def test_code_that_no_digest_covers_is_named() -> None:
    known = ["kernelviz/core/run.py", "tests/ops/cases.py", "tests/ops/test_bounds.py", "tests/conftest.py"]
    assert passed_record.not_deciding(known) == []
    assert passed_record.not_deciding([*known, "kernelviz/text/failures.py"]) == ["kernelviz/text/failures.py"]
