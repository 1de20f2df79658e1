"""What is installed: lazy imports, pins that fit ranges, and a wheel that serves from anywhere."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import sysconfig
import time
import tomllib
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]

APP_IMPORTS = """
import importlib, pkgutil, sys
import kernelviz
skipped = ("kernelviz.measure", "kernelviz.worker.child", "kernelviz.worker.__main__", "kernelviz.__main__")
def walk(package):
    for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        kernel_file = found.name.startswith("kernelviz.ops.") and found.name.count(".") > 2
        # Imported only by the process that measures: by the name of a runner, or inside of functions.
        runner = found.name.startswith("kernelviz.workloads.") and found.name.split(".")[-1].startswith("torch_")
        if found.name in skipped or kernel_file or runner or found.name == "kernelviz.ui.server.main":
            continue
        module = importlib.import_module(found.name)
        if found.ispkg:
            walk(module)
walk(kernelviz)
seen = sorted(m for m in sys.modules if m.split(".")[0] == "kernelviz")
assert {"kernelviz.bench", "kernelviz.cli.commands", "kernelviz.api", "kernelviz.ui.server.routes"} <= set(seen), seen
"""


def _loaded(code: str) -> set[str]:
    """Top-level modules that are loaded after `code` has run in a fresh process."""
    asked = f"{code}\nimport sys; print(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def test_importing_the_package_loads_nothing_else() -> None:
    heavy = {"torch", "triton", "streamlit", "plotly", "pandas", "numpy", "sqlalchemy", "typer", "rich", "msgspec"}
    assert not _loaded("import kernelviz; dir(kernelviz); kernelviz.__version__") & heavy


def test_its_names_come_when_they_are_used() -> None:
    loaded = _loaded("import kernelviz as kv; kv.plots.latency_by_size; assert 'plots' in dir(kv)")
    assert "plotly" in loaded
    assert not loaded & {"torch", "triton", "streamlit", "sqlalchemy"}
    assert not _loaded("import kernelviz as kv; kv.run; kv.load; kv.Report") & {"torch", "triton", "streamlit"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    import kernelviz

    with pytest.raises(AttributeError, match="no attribute 'runn'"):
        _ = kernelviz.runn


def test_all_that_the_app_imports_loads_neither_torch_nor_triton() -> None:
    assert not _loaded(APP_IMPORTS) & {"torch", "triton", "cuda", "cupti"}


def _project() -> dict[str, Requirement]:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    return {canonicalize_name(r.name): r for r in map(Requirement, listed)}


def _pinned(name: str) -> dict[str, Requirement]:
    lines = (ROOT / name).read_text().splitlines()
    kept = [line.partition("#")[0].strip() for line in lines]
    return {canonicalize_name(r.name): r for r in (Requirement(t) for t in kept if t and not t.startswith("-e"))}


def _version(requirement: Requirement) -> str:
    (pin,) = requirement.specifier
    assert pin.operator == "==", f"{requirement} is no exact pin"
    return pin.version


def test_every_dependency_is_pinned_inside_its_range() -> None:
    ranges, pins = _project(), _pinned("requirements.txt")
    assert ranges.keys() == pins.keys()
    for name, pin in pins.items():
        allowed = ranges[name]
        assert allowed.specifier.contains(_version(pin)), f"{pin} is outside {allowed}"
        assert allowed.extras == pin.extras, name
        assert str(allowed.marker) == str(pin.marker), name
    assert (ROOT / "requirements.txt").read_text().rstrip().endswith("\n-e .")
    for pin in _pinned("requirements-dev.txt").values():
        assert _version(pin)


# Requires-Dist of torch-2.13.0-cp312-cp312-manylinux_2_28_x86_64.whl, the CUDA build on PyPI (its METADATA, 2026-11-21).
TORCH_WANTS = {
    "torch": "2.13.0",
    "cuda-toolkit": "==13.0.3",
    "cuda-bindings": ">=13.0.3,<14",
    "triton": "==3.7.1",
}


def test_pins_fit_what_the_cuda_build_of_torch_wants() -> None:
    pins = _pinned("requirements.txt")
    assert _version(pins["torch"]) == TORCH_WANTS["torch"], "record what the new torch wants, then change this"
    for name in ("cuda-toolkit", "cuda-bindings", "triton"):
        assert Requirement(f"{name}{TORCH_WANTS[name]}").specifier.contains(_version(pins[name])), name
    # The tracer must be the one of CUDA 13.0, whose CUPTI torch loads.
    assert _version(pins["cupti-python"]).startswith("13.0.")
    assert pins["cuda-toolkit"].extras >= {"nvrtc", "cudart", "crt", "cccl", "cupti"}


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = folder.glob("*.whl")
    return made


@pytest.mark.xdist_group("wheel")
def test_the_wheel_carries_the_app_its_pages_and_every_kernel_source(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        inside = set(opened.namelist())
        metadata = next(n for n in inside if n.endswith("/METADATA"))
        assert "License-Expression: Apache-2.0" in opened.read(metadata).decode()
    for needed in ("kernelviz/py.typed", "kernelviz/_site/app.py", "kernelviz/_site/.streamlit/config.toml"):
        assert needed in inside
    tracked = subprocess.run(
        ["git", "ls-files", "kernelviz", "pages"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if tracked.returncode != 0:
        pytest.skip("this is no checkout: there is no list of files to compare with")
    for name in tracked.stdout.splitlines():
        if (ROOT / name).is_file() and not name.startswith("kernelviz/formats/browser/source/"):  # it builds the bundle
            assert (f"kernelviz/_site/{name}" if name.startswith("pages/") else name) in inside
    foreign = [n for n in inside if n.startswith(("tests/", "pages/", "docs/")) or n.endswith((".pyc", ".txt~"))]
    assert foreign == []


@pytest.fixture(scope="session")
def elsewhere(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh venv with the wheel, and with the packages of this one as its dependencies."""
    venv = tmp_path_factory.mktemp("elsewhere") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True, timeout=120)
    python = venv / "bin" / "python"
    purelib = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    # A .pth adds a folder without reading the .pth files in it, so an editable install of this checkout stays out.
    (Path(purelib) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--force-reinstall", str(wheel)], check=True, capture_output=True, timeout=240)
    return venv


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def _answer(url: str, server: subprocess.Popen[bytes], log: Path, until_s: float = 90.0) -> str:
    """The first answer of a server that is starting; fails with its log when it dies or is silent for too long."""
    deadline = time.monotonic() + until_s
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return str(answer.read().decode())
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
    pytest.fail(f"{url} gave no answer (exit code {server.poll()}):\n{log.read_text()[-4000:]}")


@pytest.fixture
def served(elsewhere: Path, tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[bytes], Path]]:
    """`kernelviz serve` of the installed wheel, from a folder that has traps in it."""
    folder = tmp_path / "some folder"
    folder.mkdir()
    # A module of the same name as one of the standard library must not be taken from where one happens to stand.
    (folder / "random.py").write_text("raise SystemExit('the wrong random')\n")
    (folder / "kernelviz").mkdir()
    port, log = _free_port(), tmp_path / "log"
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    environment |= {"KERNELVIZ_HOME": str(tmp_path / "home"), "KERNELVIZ_RUNTIME_DIR": str(tmp_path / "runtime")}
    with log.open("wb") as written:
        server = subprocess.Popen(
            [elsewhere / "bin" / "kernelviz", "serve", "--port", str(port)],
            cwd=folder, env=environment, stdout=written, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            yield f"http://127.0.0.1:{port}", server, log
        finally:
            server.terminate()
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


@pytest.mark.xdist_group("wheel")
def test_the_installed_wheel_serves_from_another_folder(
    served: tuple[str, subprocess.Popen[bytes], Path], elsewhere: Path
) -> None:
    address, server, log = served
    page = _answer(address, server, log)
    assert "<title>" in page
    assert "devices" in _answer(f"{address}/api/health", server, log)
    assert _answer(f"{address}/_stcore/health", server, log) == "ok"
    where = subprocess.run(
        [elsewhere / "bin" / "python", "-c", "import kernelviz; print(kernelviz.__file__)"],
        cwd=elsewhere, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert str(elsewhere) in where, "the wheel was to be tested, not this checkout"


@pytest.mark.xdist_group("wheel")
def test_the_installed_command_finds_its_ops_and_its_site(elsewhere: Path, tmp_path: Path) -> None:
    environment = os.environ | {"KERNELVIZ_HOME": str(tmp_path), "PYTHONPATH": ""}
    command = [str(elsewhere / "bin" / "kernelviz"), "ops"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    for name in ("add", "matmul", "rmsnorm"):
        assert re.search(rf"^{name}\b", done.stdout, re.MULTILINE)
    code = "from kernelviz.cli import serve; print(serve.app_folder())"
    site = subprocess.run(
        [elsewhere / "bin" / "python", "-c", code],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    assert site.endswith("kernelviz/_site")
    assert (Path(site) / "pages" / "bench.py").is_file()
    told = subprocess.run(
        [*command[:-1], "recordings"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert "`kernelviz recordings fetch` fetches them from https://" in told, "the wheel has no folder docs"


MOST_WHEEL_BYTES = 12_000_000


@pytest.mark.xdist_group("wheel")
def test_the_wheel_is_small_enough_to_install_everywhere(wheel: Path) -> None:
    """REMEDY: recorded runs go to docs/recordings, see tests/gpu/arrange_recordings.py."""
    assert wheel.stat().st_size <= MOST_WHEEL_BYTES


def test_in_a_checkout_the_site_is_the_checkout() -> None:
    from kernelviz.cli import serve

    assert serve.app_folder() == ROOT
    command = serve.command("127.0.0.1", 8599)
    assert command[-6:] == ["run", str(ROOT / "app.py"), "--server.address", "127.0.0.1", "--server.port", "8599"]
    assert "--browser.serverAddress" not in serve.command("0.0.0.0", 8501)
    assert serve.command("192.0.2.1", 8501)[-2:] == ["--browser.serverAddress", "192.0.2.1"]
