// The script of the page of a ladder. chart.js, which defines Chart, stands before it in the file.
// Text of the run is set only by textContent and setAttribute, so it is never parsed as HTML.
(async () => {
  const at = (id) => document.getElementById(id);
  let charts;
  try {
    // The page's content security policy contains the hash of this script, so no other script can run.
    const script = document.createElement("script");
    script.textContent = await unpacked("plotly");
    document.head.append(script);
    charts = JSON.parse(await unpacked("data"));
    if (typeof Plotly === "undefined") throw new Error("the drawing library did not start");
  } catch (error) {
    at("without").hidden = false;
    at("why").textContent = String(error);
    return;
  }
  const boxes = Object.entries(charts).map(([id, given]) => {
    at(id).hidden = false;
    return [new Chart(at(id), Plotly), given];
  });
  const draw = () => boxes.forEach(([chart, given]) => chart.draw({ ...given, name: given.about.title, select, selected: null }));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();

  // A click on a point goes to its rung.
  function select(key) {
    const rung = key && at(key);
    if (!rung) return;
    rung.scrollIntoView({ block: "start" });
    rung.focus({ preventScroll: true });
    draw();
  }

  async function unpacked(id) {
    const bytes = Uint8Array.from(atob(at(id).textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }
})();
