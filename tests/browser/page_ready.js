// Notes when a page is ready: every mark of every chart is drawn, a chart answers the mouse, the first rows of the table are in the
// document, and the last task of 50 ms or more has ended. `wanted`: {charts, table, code}, how many charts, whether a table, and
// whether the lines of code.
(() => {
  const noted = (window.noted = { tasks: [], shift: 0, shifts: [], drawn: 0, hover: 0, rows: 0 });
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) noted.tasks.push([startTime, startTime + duration]);
  }).observe({ type: "longtask", buffered: true });
  new PerformanceObserver((list) => {
    for (const { hadRecentInput, value } of list.getEntries()) if (!hadRecentInput) noted.shift += value;
  }).observe({ type: "layout-shift", buffered: true });
  const MARKS = ".points path, path.js-line, .heatmaplayer image, .annotation";  // an empty chart has a sentence
  const hovered = (chart) => {
    const layer = chart.querySelector(".nsewdrag"), mark = chart.querySelector(".points path");
    if (!layer || !mark) return false;
    const { x, y, width, height } = mark.getBoundingClientRect();
    const at = { clientX: x + width / 2, clientY: y + height / 2, bubbles: true, view: window };
    layer.dispatchEvent(new MouseEvent("mouseover", at));
    layer.dispatchEvent(new MouseEvent("mousemove", at));
    return Boolean(chart.querySelector(".hoverlayer")?.firstElementChild);
  };
  const look = () => {
    const charts = [...document.querySelectorAll(".js-plotly-plot")];
    const boxes = document.querySelectorAll(".chart-box, [data-testid=stPlotlyChart]").length;
    const drawn = charts.filter((chart) => chart.querySelector(MARKS));
    const code = !wanted.code || document.querySelector(".code-box .cm-line");
    if (!noted.drawn && code && drawn.length >= Math.max(wanted.charts, boxes) && document.querySelector("[data-testid=stMain] p, .js-plotly-plot")) {
      noted.drawn = performance.now();
    }
    if (noted.drawn && !noted.hover && (!drawn.some((chart) => chart.querySelector(".points path")) || drawn.some(hovered))) noted.hover = performance.now();
    if (!noted.rows && (!wanted.table || document.querySelector("[data-testid=stDataFrame] table [role=gridcell]"))) noted.rows = performance.now();
    if (!noted.hover || !noted.rows) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})();
