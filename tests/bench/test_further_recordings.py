"""The recorded runs and the code that are too large for the package: arranged, packed, fetched, shown and removed."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import arrange_recordings
import msgspec
import pytest
import sample_code
import sample_runs as samples
from msgspec.structs import replace
from open_page import open_page
from rehearsed_bench import RehearsedBench

import kernelviz as kv
import kernelviz.bench
from kernelviz.bench import further_recordings as use_case
from kernelviz.bench.gallery import recorded_runs
from kernelviz.cli import main
from kernelviz.core import BadField, DocumentError
from kernelviz.core.code import digest_of
from kernelviz.core.recordings import RecordingsFile
from kernelviz.formats import code_file, compact, recorded_times, recordings_file, shipped_runs

OTHER_CARD = "NVIDIA Further 100"
FURTHER = "further-add"


@pytest.fixture
def arranged(tmp_path: Path) -> Path:
    """The folder of further recordings, of one run on another card, with its code."""
    run = sample_code.run(id=FURTHER)
    device = replace(run.environment.device, name=OTHER_CARD)
    recorded = tmp_path / "recorded"
    recorded.mkdir()
    run = replace(run, environment=replace(run.environment, device=device))
    (recorded / f"{FURTHER}.kvz").write_bytes(compact.encode(run))
    (tmp_path / "shipped").mkdir()
    arrange_recordings.arrange([recorded], tmp_path / "shipped", tmp_path / "further")
    return tmp_path / "further"


def read_again() -> None:
    shipped_runs.read_again()


@pytest.fixture
def offered(arranged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordingsFile]:
    """The package as from a wheel, without a checkout around it, which names an archive that a server here has."""
    data = recordings_file.pack(arranged)
    (tmp_path / "archive.zip").write_bytes(data)
    with_name = msgspec.json.decode(
        (tmp_path / "shipped" / recordings_file.DESCRIPTION).read_bytes(), type=RecordingsFile
    )

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers = {"/archive.zip": data, "/short.zip": data[:100]}
            self.send_response(200 if self.path in answers else 404)
            self.end_headers()
            self.wfile.write(answers.get(self.path, b"not here"))

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    archive = replace(with_name, url=f"http://127.0.0.1:{server.server_port}/archive.zip")
    monkeypatch.setattr(recordings_file, "_CHECKOUT", tmp_path / "no-checkout")
    monkeypatch.setattr(recordings_file, "described", lambda: archive)
    monkeypatch.setenv("KERNELVIZ_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(recordings_file.VARIABLE, raising=False)
    monkeypatch.setattr(use_case, "_last", [])
    read_again()
    yield archive
    server.shutdown()
    thread.join()
    server.server_close()
    monkeypatch.undo()
    read_again()


def test_equal_folders_give_equal_archives_and_code_is_packed_once(arranged: Path, tmp_path: Path) -> None:
    archive = msgspec.json.decode(
        (tmp_path / "shipped" / recordings_file.DESCRIPTION).read_bytes(), type=RecordingsFile
    )
    data = recordings_file.pack(arranged)
    assert (archive.size_bytes, archive.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert (archive.runs, archive.code_of, archive.cards) == (1, 1, (OTHER_CARD,))
    file = (arranged / "code" / "add.kvc").read_bytes()
    assert code_file.contents_of(file).keys() == {content.digest for content in sample_code.run().code or ()}
    # A run of a second card with the same code adds its name only.
    arrange_recordings.arrange([tmp_path / "recorded"], tmp_path / "shipped", arranged)
    assert (arranged / "code" / "add.kvc").read_bytes() == file
    assert recordings_file.pack(arranged) == data
    # Code that the run does not name any more, once it was recorded again, is taken out.
    again = compact.decode((tmp_path / "recorded" / f"{FURTHER}.kvz").read_bytes())
    named = [(result, (result.code or ())[:1]) for result in again.results]
    named = [(result, tuple(replace(one, artifacts=one.artifacts[:1]) for one in code)) for result, code in named]
    results = tuple(replace(result, code=code) if code else result for result, code in named)
    kept = {artifact.digest for _, code in named for one in code for artifact in one.artifacts}
    code = tuple(content for content in sample_code.run().code or () if content.digest in kept)
    assert 0 < len(code) < len(sample_code.run().code or ())
    (tmp_path / "recorded" / f"{FURTHER}.kvz").write_bytes(compact.encode(replace(again, results=results, code=code)))
    arrange_recordings.arrange([tmp_path / "recorded"], tmp_path / "shipped", arranged)
    assert code_file.contents_of((arranged / "code" / "add.kvc").read_bytes()).keys() == {one.digest for one in code}


def test_a_damaged_file_of_code_is_refused() -> None:
    file = code_file.encode({digest_of(b"abc"): b"abc"}, ["run"])
    assert code_file.contents_of(file) == {digest_of(b"abc"): b"abc"}
    for damaged in (b"", file[:3], file[:20], file[:-4], b"KVZ1" + file[4:]):
        with pytest.raises(DocumentError):
            code_file.contents_of(damaged)
    other = code_file.encode({digest_of(b"abc"): b"abd"}, ["run"])
    with pytest.raises(DocumentError, match="not what its digests name"):
        code_file.contents_of(other)


def test_what_is_fetched_is_in_lists_and_its_code_can_be_read_until_it_is_removed(
    offered: RecordingsFile, capsys: pytest.CaptureFixture[str]
) -> None:
    assert FURTHER not in shipped_runs.names()
    assert main(["recordings"]) == 0
    said = capsys.readouterr().out
    assert "not here: code of 1 recorded run (sources" in said
    assert "and 1 further run, on NVIDIA Further 100" in said
    assert offered.url in said
    assert kv.recordings().missing == offered
    arrived: list[float] = []
    state = use_case.fetch(on_progress=arrived.append)
    assert arrived[-1] == 1
    assert (state.missing, state.fetched) == (None, True)
    assert FURTHER in shipped_runs.names()
    digests = {content.digest for content in sample_code.run().code or ()}
    assert shipped_runs.code_digests(FURTHER) == digests
    assert shipped_runs.code(FURTHER).keys() == digests
    bench = RehearsedBench(())
    assert [one.run.device for one in recorded_runs(bench) if one.run.id == FURTHER] == [OTHER_CARD]
    folder = recordings_file.folder()
    assert folder is not None
    light = bench.history.times(FURTHER)
    assert light == recorded_times.without_samples(bench.load(FURTHER))
    (folder / recorded_times.FILE).write_bytes(b"of another version")
    recorded_times._known.cache_clear()
    assert bench.history.times(FURTHER) == light, "derived from the run, because the file cannot be read"
    assert FURTHER in bench.history.code.runs_with_code()
    (artifact, *_) = bench.history.code.of_case(bench.load(FURTHER), sample_code.VARIANT, kind="source")
    assert artifact.text() == sample_code.SOURCE
    assert main(["recordings", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["fetched"], told["archive"]["sha256"]) == (True, offered.sha256)
    assert main(["recordings", "fetch"]) == 0
    assert "nothing was fetched: the recordings are here" in capsys.readouterr().err
    assert main(["recordings", "remove"]) == 0
    assert capsys.readouterr().err == "removed\n"
    assert FURTHER not in shipped_runs.names()
    assert kv.remove_recordings() is False


def test_a_file_that_was_downloaded_elsewhere_is_unpacked(offered: RecordingsFile, tmp_path: Path) -> None:
    assert kv.fetch_recordings(str(tmp_path / "archive.zip")).fetched
    assert FURTHER in shipped_runs.names()


def test_a_folder_for_several_users_is_read_and_not_removed(
    offered: RecordingsFile, arranged: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(recordings_file.VARIABLE, str(arranged))
    read_again()
    state = use_case.further_recordings()
    assert (state.folder, state.fetched, state.missing) == (arranged, False, None)
    assert FURTHER in shipped_runs.names()
    assert state.no_folder is None
    monkeypatch.setenv(recordings_file.VARIABLE, str(arranged / "elsewhere"))
    assert use_case.further_recordings().missing == offered
    assert main(["recordings"]) == 0
    assert "elsewhere, which is no folder that can be read; it is not used" in capsys.readouterr().err.replace(
        "\n", " "
    )
    monkeypatch.setenv(recordings_file.VARIABLE, str(arranged))
    assert use_case.remove() is False
    assert (arranged / f"{FURTHER}.kvz").is_file()


@pytest.mark.parametrize(
    ("source", "error", "said"),
    [
        ("other.zip", use_case.NotFetched, "it is not the file of recordings of this version"),
        ("short.zip", use_case.NotFetched, "it is not the file of recordings of this version"),
        ("ADDRESS/short.zip", use_case.NotFetched, "ended after 100 of"),
        ("http://[x", use_case.NotFetched, "recordings fetch --from FILE"),
        ("~nouser/x", BadField, "it cannot be read"),
        ("", BadField, "it cannot be read"),
        ("missing.zip", BadField, "it cannot be read"),
        ("ADDRESS/elsewhere", use_case.NotFetched, "recordings fetch --from FILE"),
        ("http://127.0.0.1:9/archive.zip", use_case.NotFetched, "recordings fetch --from FILE"),
        ("file:///etc/hostname", BadField, "--from"),
    ],
)
def test_what_cannot_be_fetched_says_why_and_leaves_nothing(
    offered: RecordingsFile, tmp_path: Path, source: str, error: type[Exception], said: str
) -> None:
    data = (tmp_path / "archive.zip").read_bytes()
    (tmp_path / "other.zip").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    (tmp_path / "short.zip").write_bytes(data[:100])
    address = offered.url.removesuffix("/archive.zip")
    named = (
        source.replace("ADDRESS", address)
        if not source.endswith(".zip") or ":" in source or "ADD" in source
        else str(tmp_path / source)
    )
    with pytest.raises(error, match=said):
        use_case.fetch(named)
    assert not list((tmp_path / "home").rglob("*.kvz"))
    assert use_case.further_recordings().missing == offered


def test_a_folder_that_cannot_be_written_is_named(offered: RecordingsFile, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where the folder should be")
    with pytest.raises(use_case.NotFetched, match="set KERNELVIZ_HOME to a folder that can be written"):
        use_case.fetch()


def test_a_server_follows_what_another_process_fetches_and_removes(offered: RecordingsFile, tmp_path: Path) -> None:
    assert FURTHER not in shipped_runs.names()
    into = recordings_file.fetched_folder(offered)
    recordings_file.unpack((tmp_path / "archive.zip").read_bytes(), into)
    assert into.stat().st_mode & 0o777 == 0o755, "others may read it"
    assert FURTHER in shipped_runs.names()
    assert shipped_runs.code(FURTHER)
    assert [one.run.id for one in recorded_runs(RehearsedBench(())) if one.run.id == FURTHER] == [FURTHER]
    recordings_file.unpack((tmp_path / "archive.zip").read_bytes(), into)  # as a process that began at the same time
    assert [path.name for path in into.parent.iterdir()] == [into.name]
    shutil.rmtree(into)
    assert FURTHER not in shipped_runs.names()
    assert shipped_runs.code_digests("h200-layernorm") == frozenset()


def test_of_a_run_in_both_folders_that_of_the_package_counts(
    offered: RecordingsFile, arranged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (arranged / f"{FURTHER}.kvz").rename(arranged / "h200-softmax.kvz")
    (arranged / "code" / "damaged.kvc").write_bytes(b"KVC1 and nothing")
    monkeypatch.setenv(recordings_file.VARIABLE, str(arranged))
    assert shipped_runs.lines()["h200-softmax"].op == "softmax"
    assert shipped_runs.load("h200-softmax").plan.op == "softmax"
    assert shipped_runs.code_digests("h200-softmax") == frozenset()


@pytest.mark.parametrize("named", ["~nouser/x", "/nonexistent"])
def test_a_variable_that_names_no_folder_breaks_nothing(
    offered: RecordingsFile, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(recordings_file.VARIABLE, named)
    state = use_case.further_recordings()
    assert (str(state.no_folder), state.missing) == (named, offered)
    monkeypatch.setattr(kernelviz.bench, "current", lambda: RehearsedBench((samples.CPU,)))
    assert any("is no folder that can be read" in str(one.value) for one in open_page({}, "gallery").warning)


@pytest.mark.parametrize("name", ["../outside.kvz", "/etc/x.kvz", "code/../../x.kvc", "run.py", "a\nb.kvz"])
def test_a_member_with_another_kind_of_name_is_refused(tmp_path: Path, name: str) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("fine.kvz", b"x")
        archive.writestr(name, b"x")
    with pytest.raises(DocumentError, match="no name of a recorded run"):
        recordings_file.unpack(data.getvalue(), tmp_path / "into")
    assert list(tmp_path.iterdir()) == []


def test_the_gallery_fetches_what_is_missing(offered: RecordingsFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernelviz.bench, "current", lambda: RehearsedBench((samples.CPU,)))
    page = open_page({}, "gallery")
    (button,) = (b for b in page.button if b.key == "fetch_recordings")
    assert any("archive.zip" in str(caption.value) for caption in page.caption)
    button.click().run()
    for thread in threading.enumerate():
        if thread.name == "fetch-recordings":
            thread.join(30)
    current = use_case.fetching()
    assert current is not None
    assert (current.ended, current.error, current.fraction) == (True, None, 1.0)
    page.run()
    assert not [b for b in page.button if b.key == "fetch_recordings"]
    assert FURTHER in [
        link.proto.query_string.partition("run=")[2] for link in page.get("page_link")
    ] or FURTHER in str([html.proto.body for html in page.get("html")])


def test_the_gallery_says_why_nothing_was_fetched_and_offers_it_again(
    offered: RecordingsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernelviz.bench, "current", lambda: RehearsedBench((samples.CPU,)))
    gone = replace(offered, url=offered.url.replace("archive.zip", "gone.zip"))
    monkeypatch.setattr(recordings_file, "described", lambda: gone)
    use_case.start_fetching()
    for thread in threading.enumerate():
        if thread.name == "fetch-recordings":
            thread.join(30)
    page = open_page({}, "gallery")
    assert [b.key for b in page.button if b.key == "fetch_recordings"]
    assert "404" in str(page.error[0].value)


def test_the_package_describes_the_recordings_of_this_checkout() -> None:
    """REMEDY: python tests/gpu/arrange_recordings.py"""
    assert recordings_file.described() == arrange_recordings.described(arrange_recordings.FURTHER)
    state = use_case.further_recordings()
    assert (state.folder, state.fetched, state.missing) == (arrange_recordings.FURTHER, False, None)


def test_users_can_unpack_the_archive_of_this_checkout(tmp_path: Path) -> None:
    recordings_file.unpack(recordings_file.pack(arrange_recordings.FURTHER), tmp_path / "into")
    files = [path.relative_to(arrange_recordings.FURTHER) for path in arrange_recordings.FURTHER.rglob("*.kv?")]
    assert files
    assert all((tmp_path / "into" / file).is_file() for file in files)
    (tmp_path / "into" / "README.txt").write_text("what nobody could unpack")
    with pytest.raises(DocumentError, match="no name of a recorded run"):
        recordings_file.pack(tmp_path / "into")


def test_the_code_of_recorded_runs_is_that_which_their_results_name() -> None:
    for file in sorted((arrange_recordings.FURTHER / recordings_file.CODE).iterdir()):
        head = code_file.head_of(file.read_bytes())
        runs = [shipped_runs.load(run) for run in head.runs]
        named = {a.digest for run in runs for r in run.results for code in r.code or () for a in code.artifacts}
        assert head.digests <= named, file.name
        assert {run.plan.op for run in runs} == {file.name.removesuffix(code_file.ENDING)}
