"""The card of a run in the Share box: a preview, and buttons that copy it as PNG or save it as SVG or PNG.

The browser turns the SVG into a PNG, so that the server needs no drawing library.
"""

from collections.abc import Sequence

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.card import card
from kernelviz.core import KernelvizError, Run
from kernelviz.metrics import foreign_times
from kernelviz.metrics.figures import Headline, figure_of
from kernelviz.plots.card import HEIGHT, WIDTH
from kernelviz.ui.shared.text import plain

_HTML = """
<div class="card-actions">
  <button type="button" data-act="copy">Copy as PNG</button>
  <button type="button" data-act="png">Save PNG</button>
  <button type="button" data-act="svg">Save SVG</button>
  <span role="status" aria-live="polite"></span>
</div>
"""
_CSS = """
.card-actions { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; font: inherit; }
button { font: inherit; color: inherit; background: transparent; border: 1px solid var(--st-border-color);
  border-radius: 0.4rem; padding: 0.3rem 0.7rem; cursor: pointer; }
button:hover, button:focus-visible { border-color: var(--st-primary-color); color: var(--st-primary-color); }
button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
"""
_JS = """
const SCALE = 2;  // as sharp as a screen of double resolution

function picture(svg, width, height) {
  return new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = width * SCALE;
      canvas.height = height * SCALE;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no picture"))), "image/png");
    };
    image.onerror = () => reject(new Error("no picture"));
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
  });
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

export default function ({ data, parentElement }) {
  const status = parentElement.querySelector("[role=status]");
  const png = () => picture(data.svg, data.width, data.height);
  const acts = {
    svg: async () => save(new Blob([data.svg], { type: "image/svg+xml" }), `${data.name}.svg`),
    png: async () => save(await png(), `${data.name}.png`),
    copy: async () => {
      // A page without HTTPS on another host has no clipboard.
      if (!navigator.clipboard?.write) throw new Error("This page cannot use the clipboard. Save the PNG instead.");
      await navigator.clipboard.write([new ClipboardItem({ "image/png": png() })]);
      return "Copied.";
    },
  };
  for (const button of parentElement.querySelectorAll("button")) {
    button.onclick = async () => {
      status.textContent = "";
      try {
        status.textContent = (await acts[button.dataset.act]()) || "";
      } catch (error) {
        status.textContent = error.message || String(error);
      }
    };
  }
}
"""

_actions = st.components.v2.component("kernelviz_card", html=_HTML, css=_CSS, js=_JS)


def card_of_run(bench: Bench, run: Run, variants: Sequence[str], link: str) -> None:
    """Preview and buttons of the card with the visible variants, in the colour scheme of the page. Nothing without a time.

    `link`: where the run can be opened; empty if only this machine can open it.
    """
    headline: Headline = "warm" if st.session_state.get("l2") == "warm" else "cold"
    if foreign_times.alone(run) or not any(figure_of(r.timing, headline) for r in run.results):
        return
    dark = st.context.theme.type == "dark"
    try:
        svg = card(bench, run, variants=variants, l2=headline, link=link, scheme="dark" if dark else "light")
    except KernelvizError as error:
        st.caption(plain(error))
        return
    st.markdown("**Card**: one picture of this run for chat and slides.")
    st.image(svg, width="stretch", alt=f"Card of the run: {run.plan.op} on {run.environment.device.name}")
    _actions(key="card_actions", data={"svg": svg, "name": f"kernelviz-{run.id}", "width": WIDTH, "height": HEIGHT})
