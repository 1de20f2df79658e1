"""What the app's process imports loads neither torch nor triton nor CUDA: a page is there in a second."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "triton", "cuda", "cupti")


def _packages(*names: str) -> list[str]:
    """Every module below kernelviz/<name>, by its dotted name."""
    found = []
    for name in names:
        for path in sorted((ROOT / "kernelviz" / name).rglob("*.py")):
            dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            if (
                not dotted.endswith("__main__") and dotted != "kernelviz.ui.server.main"
            ):  # main runs the app when imported
                found.append(dotted)
    return found


def _imports_of_pages() -> list[str]:
    """What page scripts and the entry scripts import; they are run by Streamlit, not imported."""
    scripts = [*(ROOT / "pages").glob("*.py"), ROOT / "app.py", ROOT / "kernelviz" / "ui" / "server" / "main.py"]
    found: set[str] = set()
    for script in (s for s in scripts if s.exists()):
        for node in ast.walk(ast.parse(script.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module)
    return sorted(found - {"__future__"})


@pytest.mark.parametrize(
    ("what", "modules"),
    [
        ("core to bench", _packages("core", "metrics", "hardware", "store", "formats", "bench")),
        ("the server's side of the worker", ["kernelviz.worker.supervisor", "kernelviz.worker.plugin_description"]),
        ("the worker's side, until a session is opened", ["kernelviz.worker.child"]),
        ("ui, plots, cli and api", [*_packages("ui", "plots", "cli"), "kernelviz.api"]),
        ("pages", _imports_of_pages()),
    ],
)
def test_nothing_heavy_is_imported(what: str, modules: list[str]) -> None:
    code = (
        "import importlib, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "from kernelviz.ops import catalogue\n"
        "assert catalogue()\n"
        f"sys.exit(' '.join(m for m in {HEAVY!r} if m in sys.modules) or None)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"{what}: {run.stderr[-2000:]}"


def test_the_guard_imports_the_standard_library_only() -> None:
    tree = ast.parse((ROOT / "kernelviz" / "worker" / "guard.py").read_text())
    names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    names |= {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names


def _modules() -> dict[str, Path]:
    """Every Python module of kernelviz and every page, by its dotted name."""
    files = [*(ROOT / "kernelviz").rglob("*.py"), *(ROOT / "pages").glob("*.py")]
    return {".".join(f.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): f for f in files}


def test_no_two_modules_import_each_other() -> None:
    """Imports inside of functions and for type checking included."""
    modules = _modules()
    imports: dict[str, set[str]] = {}
    for name, file in modules.items():
        used = imports.setdefault(name, set())
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                used |= {a.name for a in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                named = {f"{node.module}.{a.name}" for a in node.names}
                # `from package import module` imports the module; any other name comes from the package itself.
                used |= named & modules.keys() or {node.module}
    assert len(imports) > 300
    assert [(a, b) for a in imports for b in imports[a] if a < b and a in imports.get(b, ())] == []


def test_no_module_is_longer_than_400_lines() -> None:
    lengths = {name: len(file.read_text().splitlines()) for name, file in _modules().items()}
    assert {name: lines for name, lines in lengths.items() if lines > 400} == {}
