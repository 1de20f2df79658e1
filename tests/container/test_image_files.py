"""Dockerfile, compose.yaml and .dockerignore fit the code: paths, ports, variables, pins, and what gets into the image.

That an image of them works is shown by check_image.sh, which takes minutes and root.
"""

from __future__ import annotations

import fnmatch
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath

import msgspec
import pytest
import sample_runs as samples
from streamlit import config

from kernelviz.store.store import Store
from kernelviz.ui.server.routes import events_path, health, routes

ROOT = Path(__file__).parents[2]
COMPOSE = (ROOT / "compose.yaml").read_text()
DEPLOY = (ROOT / "docs" / "deploy.md").read_text()

READ_BY_OTHERS = {
    "PATH": "every shell and execvp",
    "PYTHONUNBUFFERED": "Python (python --help-env)",
    "NVIDIA_DRIVER_CAPABILITIES": "NVIDIA's container toolkit (its user guide, 'Driver Capabilities')",
}


def _instructions() -> list[tuple[str, str]]:
    """(instruction, arguments) of the Dockerfile, continued lines joined, comments left out."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def _of(word: str) -> list[str]:
    return [rest for found, rest in _instructions() if found == word]


def _environment() -> dict[str, str]:
    return dict(pair.split("=", 1) for rest in _of("ENV") for pair in shlex.split(rest))


def _health_command() -> list[str]:
    (line,) = _of("HEALTHCHECK")
    command: list[str] = json.loads(line[line.index("CMD ") + 4 :])
    return command


def test_it_runs_as_a_user_of_a_fixed_uid_from_before_the_volumes_on() -> None:
    assert _of("USER") == ["kernelviz"]
    (made,) = [rest for rest in _of("RUN") if "useradd" in rest]
    uid = re.search(r"--uid (\d+) .* kernelviz\b", made)
    assert uid is not None
    assert int(uid[1]) > 999
    assert f"uid={uid[1]},gid={uid[1]}" in COMPOSE
    assert f"uid and gid {uid[1]}" in DEPLOY
    order = [word for word, _ in _instructions()]
    assert order.index("USER") > max(i for i, word in enumerate(order) if word == "RUN"), "a RUN could not write"


def test_tini_starts_the_command_that_serves_on_the_port_that_is_published() -> None:
    assert [json.loads(e) for e in _of("ENTRYPOINT")] == [["tini", "--"]]
    (command,) = [json.loads(c) for c in _of("CMD")]
    assert command[:2] == ["kernelviz", "serve"]
    options = dict(zip(command[2::2], command[3::2], strict=True))
    assert options == {"--host": "0.0.0.0", "--port": _of("EXPOSE")[0]}
    assert f"'127.0.0.1', {options['--port']}," in _health_command()[-1]


@contextmanager
def _answering(path: str, status: int) -> Iterator[int]:
    """The port of a server that answers that path with that status, any other with 404."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == path else 404)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def _checked(port: int, **environment: str) -> int:
    """The exit code of the health check as it stands in the Dockerfile, but for the port."""
    program, *options, code = _health_command()
    assert program == "python"
    asked = [sys.executable, *options, code.replace("8501", str(port))]
    # A proxy of the environment must not be asked for what is on this very machine.
    env = {**os.environ, "http_proxy": "http://127.0.0.1:9", **environment}
    return subprocess.run(asked, env=env, stderr=subprocess.DEVNULL, timeout=30, check=False).returncode


def test_the_health_check_asks_the_codes_route() -> None:
    (path,) = [route.path for route in routes() if route.endpoint is health]
    with _answering(path, 200) as port:
        assert _checked(port) == 0
        assert _checked(port, STREAMLIT_SERVER_BASE_URL_PATH="lab/kv") == 1
    assert _checked(port) == 1, "nobody answers"
    with _answering(f"/lab/kv{path}", 200) as port:
        assert _checked(port, STREAMLIT_SERVER_BASE_URL_PATH="/lab/kv/") == 0
    with _answering(path, 503) as port:
        assert _checked(port) == 1


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"{package} is not installed")
    return Path(spec.origin).parent


def _is_streamlit_option(name: str) -> bool:
    known = {"STREAMLIT_" + re.sub(r"(?<!^)(?=[A-Z])", "_", o.replace(".", "_")) for o in config.get_config_options()}
    return name in {option.upper().replace("__", "_") for option in known}


def _reads(name: str) -> bool:
    if name.startswith("KERNELVIZ_"):
        return any(f'environ.get("{name}"' in p.read_text() for p in (ROOT / "kernelviz").rglob("*.py"))
    if name.startswith("TRITON_"):
        return f'"{name}"' in (_folder("triton") / "knobs.py").read_text()
    if name.startswith("TORCHINDUCTOR_"):
        inductor = _folder("torch") / "_inductor" / "runtime"
        return any(f'"{name}"' in p.read_text() for p in inductor.glob("*.py"))
    if name.startswith("STREAMLIT_"):
        return _is_streamlit_option(name)
    return name in READ_BY_OTHERS


@pytest.mark.parametrize("name", sorted(_environment()))
def test_every_variable_is_read_by_someone(name: str) -> None:
    assert _reads(name)


def test_a_variable_that_nobody_reads_would_be_found() -> None:
    for name in ("KERNELVIZ_HOMES", "TRITON_CACHE_DIRS", "TORCHINDUCTOR_CACHES", "STREAMLIT_SERVER_ADRESS", "OTHER"):
        assert not _reads(name)


def test_compose_sets_only_options_that_streamlit_has() -> None:
    named = re.findall(r"^\s+(STREAMLIT_\w+):", COMPOSE, re.MULTILINE)
    assert named
    assert all(map(_is_streamlit_option, named))


def test_data_and_caches_are_on_volumes_and_compose_mounts_each() -> None:
    (declared,) = [json.loads(v) for v in _of("VOLUME")]
    places = {v for k, v in _environment().items() if k.startswith(("KERNELVIZ_", "TRITON_", "TORCHINDUCTOR_"))}
    locks = _environment()["KERNELVIZ_RUNTIME_DIR"]
    for place in places - {locks}:
        assert any(PurePosixPath(place).is_relative_to(v) for v in declared), place
    mounted = re.findall(r"^    - \w+:(/[\w/]+)$", COMPOSE, re.MULTILINE)
    assert sorted(mounted) == sorted([*declared, locks])


def test_compose_publishes_on_loopback_only() -> None:
    published = re.findall(r'^ +- "?([^"\s]*:\d+)"?$', COMPOSE, re.MULTILINE)
    assert COMPOSE.count("ports:") == 1
    assert published == [f"127.0.0.1:${{KERNELVIZ_PORT:-{_of('EXPOSE')[0]}}}:{_of('EXPOSE')[0]}"]
    assert "network_mode" not in COMPOSE
    assert "privileged" not in COMPOSE


def test_compose_without_a_gpu_takes_torch_from_where_the_readme_says() -> None:
    url = re.search(r"TORCH_INDEX_URL: (\S+)", COMPOSE)
    assert url is not None
    assert f"--index-url {url[1]}" in (ROOT / "README.md").read_text()
    assert _of("ARG").count("TORCH_INDEX_URL=") == 1


def test_what_the_dockerfile_takes_from_the_pins_is_there() -> None:
    for name, file in re.findall(r"grep '\^([\w-]+)==' (?:/tmp/)?(requirements\S*\.txt)", "\n".join(_of("RUN"))):
        assert re.search(rf"^{name}==\S+$", (ROOT / file).read_text(), re.MULTILINE), f"{name} in {file}"
    pins = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if not line.startswith(("#", "-e "))]
    assert pins
    assert all("==" in line for line in pins)


def _ignored(path: str) -> bool:
    """By .dockerignore's rules: the last pattern that fits the path or a folder above it decides."""
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    names = [path, *(str(p) for p in PurePosixPath(path).parents if str(p) != ".")]
    out = False
    for rule in rules:
        pattern = rule.removeprefix("!")
        forms = [pattern, pattern.removeprefix("**/")]
        if any(n.count("/") == f.count("/") and fnmatch.fnmatch(n, f) for n in names for f in forms) or (
            pattern.startswith("**/") and any(fnmatch.fnmatch(PurePosixPath(n).name, forms[1]) for n in names)
        ):
            out = not rule.startswith("!")
    return out


@pytest.mark.parametrize(
    "path",
    [
        ".git/HEAD",
        ".venv/bin/python",
        "tests/conftest.py",
        ".mypy_cache/x",
        "docs/deploy.md",
        ".streamlit/secrets.toml",
        "kernelviz/ops/__pycache__/op.cpython-311.pyc",
        "kernelviz.db",
        ".env",
        "dist/kernelviz.whl",
        "key.pem",
    ],
)
def test_nothing_else_gets_into_the_build(path: str) -> None:
    assert _ignored(path)


def test_all_that_is_copied_gets_into_the_build() -> None:
    copied = [source for rest in _of("COPY") for source in rest.split()[:-1]]
    assert {"kernelviz", "pages", "app.py", ".streamlit", "requirements.txt"} <= set(copied)
    for source in copied:
        assert (ROOT / source).exists(), source
        files = [ROOT / source] if (ROOT / source).is_file() else [ROOT / source / "config.toml"]
        if source in ("kernelviz", "pages"):
            files = [p for p in (ROOT / source).rglob("*") if p.is_file() and "__pycache__" not in p.parts]
        assert [p for p in files if _ignored(p.relative_to(ROOT).as_posix())] == []


def test_the_wheel_finds_its_files_among_the_copied() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    copied = {source for rest in _of("COPY") for source in rest.split()[:-1]}
    included = re.search(r"wheel\.force-include\]\n(.*?)\n\n", project, re.DOTALL)
    assert included is not None
    assert {line.split('"')[1] for line in included[1].splitlines()} <= copied
    assert {"README.md", "LICENSE", "pyproject.toml"} <= copied


@pytest.mark.parametrize("base", ["", "lab/kv"])
def test_the_proxys_rule_for_events_fits_the_route(base: str) -> None:
    (rule,) = re.findall(r"location ~ (\S+) \{[^}]*proxy_buffering off;", DEPLOY)
    path = events_path("20261121-090000-abcdef")
    assert re.search(rule, f"/{base}{path}" if base else path)
    assert not re.search(rule, "/api/health")


def _commands_of(section: str) -> list[str]:
    """The lines of the shell blocks below a heading of docs/deploy.md."""
    text = DEPLOY.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return [
        line
        for block in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
    ]


def _run_inside(line: str, folder: Path) -> None:
    """Run the Python or the rm of a `docker compose exec` or `run` on this folder instead of the volume."""
    words = [word.replace(_environment()["KERNELVIZ_HOME"], str(folder)) for word in shlex.split(line)]
    command = words[words.index("gpu") + 1 :]
    subprocess.run([sys.executable, *command[1:]] if command[0] == "python" else command, check=True, timeout=60)


def test_the_backup_names_the_database_and_is_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNELVIZ_DATABASE_URL", raising=False)
    monkeypatch.setenv("KERNELVIZ_HOME", str(tmp_path / "home"))
    run = samples.run(op="add", sizes=[{"n": 1024}], dtype="fp32", id="before")
    lines = _commands_of("Data, caches, backups")
    stop, start = lines.index("docker compose stop gpu"), lines.index("docker compose start gpu")
    store = Store.open()
    (made,) = (tmp_path / "home").glob("*.db")
    assert f"{_environment()['KERNELVIZ_HOME']}/{made.name}" in DEPLOY
    store.runs.create(run)
    for line in lines[:stop]:  # while the server runs
        if " exec " in line:
            _run_inside(line, tmp_path / "home")
        else:  # `docker compose cp` of the file, whose name has the date
            assert " cp gpu:" in line
            shutil.copy(tmp_path / "home" / "backup.db", tmp_path / "copy.db")
    store.runs.create(msgspec.structs.replace(run, id="after"))
    # As a server leaves its files that was killed: with a log beside the database.
    for file in (tmp_path / "home").iterdir():
        (tmp_path / "killed").mkdir(exist_ok=True)
        shutil.copy(file, tmp_path / "killed")
    store.close()
    assert (tmp_path / "killed" / f"{made.name}-wal").stat().st_size > 0
    for line in lines[stop + 1 : start]:
        if " run " in line:
            _run_inside(line, tmp_path / "killed")
        else:
            assert re.search(r" cp \S+ gpu:/var/lib/kernelviz/backup.db$", line)
            shutil.copy(tmp_path / "copy.db", tmp_path / "killed" / "backup.db")
    assert not (tmp_path / "killed" / "backup.db").exists()
    restored = Store.open(tmp_path / "killed")
    assert [row.id for row in restored.runs.rows(9)] == ["before"]
    assert restored.runs.load("before") == run
    restored.close()


def test_compose_passes_the_settings_of_pip_to_each_build() -> None:
    assert "--mount=type=secret,id=pip" in "\n".join(_of("RUN"))
    services = COMPOSE.partition("\nservices:\n")[2].partition("\nvolumes:\n")[0]
    builds = re.findall(r"^    build:\n((?:      .*\n)+)", services, re.MULTILINE)
    assert services.count("    build:") == len(builds) == 2
    assert all("      secrets: [pip]\n" in build for build in builds)
    assert re.search(r"^secrets:\n  pip:\n    file: \$\{KERNELVIZ_PIP_CONFIG:-/dev/null\}$", COMPOSE, re.MULTILINE)
    assert "KERNELVIZ_PIP_CONFIG=" in DEPLOY


def test_the_service_of_a_profile_is_stopped_with_its_profile() -> None:
    (profile,) = re.findall(r"^    profiles: \[(\w+)\]$", COMPOSE, re.MULTILINE)
    for text in (DEPLOY, COMPOSE):
        assert f"docker compose --profile {profile} down" in text


def test_the_check_of_the_image_builds_and_runs_it_by_one_runtime() -> None:
    script = Path(__file__).with_name("check_image.sh").read_text()
    for command in ("buildah bud", "buildah run"):
        (line,) = [line for line in script.splitlines() if line.strip().startswith(f"{command} ")]
        assert "--runtime runc" in line, command


def test_the_script_is_bash() -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    subprocess.run([bash, "-n", str(Path(__file__).with_name("check_image.sh"))], check=True, timeout=30)
