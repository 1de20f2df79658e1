// The Streamlit component of a chart. It is served together with chart.js, which defines Chart.

let library;  // Plotly, loaded once a page
const shown = new WeakMap();  // the chart of each parent element, which a redraw keeps

function load(url) {
  library ??= new Promise((done, failed) => {
    if (globalThis.Plotly) return done(globalThis.Plotly);
    // The HTML page of a page with charts names the script already; another page is left for one with charts without it.
    const named = [...document.scripts].find((script) => script.getAttribute("src") === url && !script.dataset.failed);
    const script = named ?? document.createElement("script");
    script.addEventListener("load", () => done(globalThis.Plotly));
    script.addEventListener("error", () => { library = undefined; script.dataset.failed = "yes"; failed(new Error(`its script could not be loaded (${url})`)); });
    if (named) return undefined;
    script.src = url;
    document.head.append(script);
    return undefined;
  });
  return library;
}

// Charts in sight are drawn first, and the others when the browser has nothing else to do.
async function turn(box) {
  const { top, bottom } = box.getBoundingClientRect();
  if (bottom < 0 || top > innerHeight) await new Promise((done) => (window.requestIdleCallback ?? setTimeout)(done, { timeout: 1000 }));
}

// Redraw in turn. What was given meanwhile replaces what was waiting.
async function redraw(one) {
  if (one.waits) return;
  one.waits = true;
  await turn(one.box);
  one.waits = false;
  one.chart.draw(one.given);
}

export function mount({ data, parentElement, setStateValue }) {
  let one = shown.get(parentElement);
  if (!one) {
    const box = parentElement.querySelector(".chart-box");
    one = { box, chart: null, given: null, waits: false };
    shown.set(parentElement, one);
    load(data.library).then(async (plotly) => {
      await turn(box);
      one.chart = new Chart(box, plotly);
      one.chart.draw(one.given);
    }).catch((error) => { box.textContent = `This chart cannot be drawn: ${error.message}`; });
  }
  one.box.style.height = `${data.height}px`;
  one.box.setAttribute("aria-label", data.alt);  // also before it is drawn
  if (!one.chart) one.box.setAttribute("role", "img");
  const select = (key) => setStateValue("clicked", { key, at: Date.now() });
  one.given = { ...data, figure: JSON.parse(data.figure), select: data.clickable ? select : null };
  if (one.chart) redraw(one);
  // Streamlit also calls this when only the data changed. The chart is removed when its element has left the page.
  return () => setTimeout(() => {
    if (parentElement.isConnected) return;
    one.chart?.remove();
    shown.delete(parentElement);
  });
}
