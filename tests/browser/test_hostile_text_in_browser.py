"""In a real browser nothing interprets the texts of documents, backups, file names, plug-ins, other processes and addresses.

Each text holds what Markdown, HTML, LaTeX and Plotly's own markup would turn into an element or a request to another server,
which listens here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

import hostile_documents as hostile
import msgspec
import pytest
from acting import at_rest, move, wait_until_done
from foreign_server import listening
from playwright.sync_api import Browser, Page
from servers import ROOT, served
from waiting import expect

from kernelviz.bench.history import History
from kernelviz.hardware.cpu import cpu
from kernelviz.store import Store
from kernelviz.worker.device_lock import DeviceLock, Holder

pytestmark = [pytest.mark.xdist_group("browser-1"), pytest.mark.timeout(300)]
PLUGIN = '''
from kernelviz.ops import Launch, variant


@variant(op="add", backend="torch")
def planted_words(x_N, y_N) -> Launch:
    """{text}"""
    return lambda: x_N + y_N


@variant(op="add", backend="torch")
def planted_exception(x_N, y_N) -> Launch:
    """{text}"""
    raise ValueError("""{text}""")
'''
INTERPRETED = """(host) => {
  const found = [];
  for (const e of document.querySelectorAll("*")) {
    const text = (e.textContent ?? "").trim();
    for (const a of e.attributes)
      if (["src", "href", "xlink:href", "srcset", "style", "action", "data"].includes(a.name) && a.value.includes(host))
        found.push(`${e.tagName} with ${a.name} ${a.value}`);
    if (e.classList.contains("katex")) found.push("LaTeX: " + text);
    if (e.classList.contains("planted")) found.push("HTML: " + e.outerHTML.slice(0, 200));
    if (["EM", "STRONG", "CODE", "H1", "DEL"].includes(e.tagName) && text.startsWith("qq7"))
      found.push("Markdown: " + e.outerHTML);
    if (e.classList.contains("stMarkdownColoredText") && text.startsWith("qq7")) found.push("colour: " + text);
    if (e.tagName === "tspan" && /bold|italic/.test(e.getAttribute("style") ?? "") && text.startsWith("qq7"))
      found.push("Plotly's markup: " + e.outerHTML);
    if (e.children.length === 0 && /🎉/u.test(text)) found.push("emoji: " + text);
    if (e.role === "img" && text === "pest_control") found.push("icon: " + e.outerHTML);
  }
  return found;
}"""
"""What the page made of a text, if it interpreted it. The signs of each kind begin with a word that stands nowhere else."""


@dataclass(frozen=True, slots=True)
class Listener:
    """A foreign server: its host and port, and the paths that it was asked for."""

    host: str
    asked: list[str]

    @property
    def text(self) -> str:
        url = f"http://{self.host}"
        return (
            f"![p]({url}/p.png) [l]({url}/l) <{url}/auto> <img src='{url}/i.png'> <a href='{url}/a'>k</a> <b>qq7b</b> "
            f"<b class='planted'>h</b> <script src='{url}/s.js'></script> $x^2$ :red[qq7] *qq7e* **qq7s** `qq7c` :pest_control: "
            f":material/pest_control: :tada: {url}/bare www.{self.host} qq7@{self.host}.org"
        )


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    with listening() as (host, asked):
        yield Listener(host, asked)


@dataclass(frozen=True, slots=True)
class Attacked:
    """A server whose store and plug-in hold the texts, and the two runs of documents."""

    url: str
    folder: Path
    a: str
    b: str


@pytest.fixture(scope="module")
def attacked(listener: Listener, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    folder = tmp_path_factory.mktemp("<b class='planted'>h $x$ *qq7* [l](x")
    plugin = folder / "<b class='planted'>k $x$.py"
    plugin.write_text(PLUGIN.format(text=listener.text))
    store = Store.open(folder / "home")
    history = History(store)
    content = json.loads(hostile.hostile(listener.text))
    own = json.loads(json.dumps(content))
    own["environment"]["device"]["uuid"] = cpu().uuid  # shown as a run of this machine
    a, b = (history.take_in_all(json.dumps(one).encode())[0] for one in (content, own))
    backup = folder / "records.jsonl"
    backup.write_bytes(hostile.hostile_backup(listener.text, cpu()))
    assert sum(history.take_in_backup(backup).lines.values()) > 6
    store.close()
    with served(ROOT / "app.py", folder, KERNELVIZ_PLUGINS=str(plugin)) as url:
        yield Attacked(url, folder, a, b)


@pytest.fixture
def watched(page: Page, attacked: Attacked, listener: Listener) -> Iterator[tuple[Page, list[str]]]:
    """The page, and every request to another host than the server's."""
    own, foreign = urlsplit(attacked.url).netloc, list[str]()
    page.on("request", lambda r: foreign.append(r.url) if urlsplit(r.url).netloc not in (own, "") else None)
    yield page, foreign
    assert foreign == []
    assert listener.asked == []


def test_the_browser_asks_the_listener_if_a_page_interprets_the_text(browser: Browser, listener: Listener) -> None:
    page = browser.new_context().new_page()
    page.set_content(f"<p>{listener.text}</p>")
    found = page.evaluate(INTERPRETED, listener.host)
    page.context.close()
    assert {"/i.png", "/s.js"} <= set(listener.asked)
    assert len(found) >= 4
    listener.asked.clear()


def test_no_text_is_interpreted_on_any_page(
    watched: tuple[Page, list[str]], attacked: Attacked, listener: Listener
) -> None:
    page, _ = watched
    a, b = attacked.a, attacked.b
    words, shown = quote(listener.text, safe=""), 0
    loaded = (f"?run={a}", f"?run={words}&op={words}", f"{words}")
    for path in loaded:
        page.goto(f"{attacked.url}/{path}")
        page.get_by_test_id("stApp").wait_for()
        at_rest(page)
        shown += nothing_is_interpreted(page, listener, path)
    # A page that this tab has not shown builds its elements in the same way without a load.
    moved = (
        f"?run={b}&with={a}&show=winner", f"?run={b}&tab=samples", "history?lists=trends", f"history?run={a}",
        f"roofline?runs={a},{b}", f"compare?a={a}&b={b}", "device", "method", "gallery",
    )  # fmt: skip
    for path in moved:
        move(page, f"/{path}")
        assert page.title().startswith(path.partition("?")[0].capitalize() or "Bench")
        shown += nothing_is_interpreted(page, listener, path)
    assert shown >= 5, "the texts are not on the pages"


def nothing_is_interpreted(page: Page, listener: Listener, path: str) -> bool:
    """Check the open page; return whether the texts are on it."""
    assert page.evaluate(INTERPRETED, listener.host) == [], path[:60]
    assert page.get_by_test_id("stException").all_inner_texts() == [], path[:60]
    return listener.host in page.locator("body").inner_text()


def test_no_text_of_a_file_a_plug_in_or_another_process_is_interpreted(
    watched: tuple[Page, list[str]], attacked: Attacked, listener: Listener
) -> None:
    page, _ = watched
    page.goto(f"{attacked.url}/history")
    page.locator("[class*=st-key-upload_popover]").get_by_role("button", name="Upload").first.click()
    refused = attacked.folder / "![p](x) <b class='planted'>h $x$ *qq7* :red[qq7].json"
    refused.write_text(json.dumps({"schema": listener.text, "kernelviz": listener.text}))
    page.locator("input[type=file]").set_input_files(refused)
    expect(page.locator(".st-key-upload_outcomes")).to_contain_text("could not be imported")
    assert page.evaluate(INTERPRETED, listener.host) == []

    (attacked.folder / "run").mkdir(exist_ok=True)  # a worker makes it, but there may have been none yet
    lock = DeviceLock(cpu().uuid, attacked.folder / "run")
    assert lock.acquire(lambda holder: None, lambda: True)
    lock._note(msgspec.json.encode(Holder(pid=1, user=listener.text, command=listener.text, since=listener.text)))
    variants = "torch_eager,planted_words,planted_exception"
    page.goto(f"{attacked.url}/?op=add&variants={variants}&dtype=fp32&n=4096&budget=0.1")
    page.locator(".st-key-run").get_by_role("button", name="Run").click()
    expect(page.locator("body")).to_contain_text(f"{listener.host}/bare", timeout=60_000)
    at_rest(page)
    assert page.evaluate(INTERPRETED, listener.host) == []
    lock.release()
    lock.close()
    wait_until_done(page)
    at_rest(page)
    assert page.evaluate(INTERPRETED, listener.host) == []
    page.locator("[data-testid=stTable], [data-testid=stDataFrame]").first.scroll_into_view_if_needed()
    expect(page.locator("body")).to_contain_text("ValueError")
