// The script of the offline page. chart.js, which defines Chart, stands before it in the file.
// Text of the run is set only by textContent and setAttribute, so it is never parsed as HTML.
(async () => {
  const at = (id) => document.getElementById(id);
  sortable();
  copyable();
  if (!at("data")) return; // times of another tool: a table, no charts
  let data;
  try {
    // The page's content security policy contains the hash of this script, so no other script can run.
    const script = document.createElement("script");
    script.textContent = await unpacked("plotly");
    document.head.append(script);
    data = JSON.parse(await unpacked("data"));
    if (typeof Plotly === "undefined") throw new Error("the drawing library did not start");
  } catch (error) {
    at("without").hidden = false;
    at("why").textContent = String(error);
    return;
  }
  const chosen = { l2: data.l2[0], show: data.usual, against: data.axes[0] || "", size: data.sizes.length - 1, of: 0 };
  let picked = -1; // the size that was chosen by a click
  const dark = matchMedia("(prefers-color-scheme: dark)");

  select("l2", data.l2, data.l2);
  select("show", data.show, data.show);
  select("against", data.axes, data.axes);
  select("size", data.sizes.map((_, i) => i), data.sizes);
  select("of", [], []);
  at("views").hidden = false;
  const charts = new Map([...document.querySelectorAll(".chart")].map((box) => [box.id, new Chart(box, Plotly)]));
  dark.addEventListener("change", draw);
  draw();

  function select(name, values, words) {
    const box = at(name);
    box.closest("label").hidden = values.length < 2;
    fill(box, values, words);
    box.value = chosen[name];
    box.addEventListener("change", () => {
      chosen[name] = name === "size" ? Number(box.value) : box.value;
      draw();
    });
  }

  function fill(box, values, words) {
    box.replaceChildren(...values.map((value, i) => {
      const option = document.createElement("option");
      option.value = value;
      option.textContent = words[i];
      return option;
    }));
  }

  function draw() {
    const { l2, show, against, size } = chosen;
    for (const part of document.querySelectorAll("[data-l2]")) part.hidden = part.dataset.l2 !== l2;
    // A click on a point chooses its size.
    chart("by_size", `${l2}/by/${show}/${against}`, { select: choose, selected: picked === chosen.size ? data.keys[picked] : null });
    chart("roofline", `${l2}/roof/${size}`);
    chart("bars", `${l2}/bars/${size}`);
    chart("all", `${l2}/all`);
    for (const place of document.querySelectorAll("[data-size]")) place.textContent = data.sizes[size] || "";
    lines("lines", (data.lines[`${l2}/${size}`] || []).map(([mark, words, trust]) => ({
      mark, name: data.variants[mark], words, trust })));
    samples();
  }

  function choose(key) {
    picked = data.keys.indexOf(key);
    if (picked >= 0) chosen.size = at("size").value = picked;
    draw();
  }

  function samples() {
    const { l2, size } = chosen;
    const known = data.variants.map((_, i) => i).filter((i) => data.charts[`${l2}/order/${size}/${i}`]);
    const spread = `${l2}/spread/${size}`;
    at("samples").hidden = !data.charts[spread];
    if (!data.charts[spread]) return;
    chart("spread", spread);
    at("of").closest("label").hidden = known.length < 2;
    fill(at("of"), known, known.map((i) => data.variants[i]));
    if (!known.includes(Number(chosen.of))) chosen.of = known[0] ?? 0;
    at("of").value = chosen.of;
    at("order").hidden = !known.length;
    if (known.length) chart("order", `${l2}/order/${size}/${chosen.of}`);
    lines("order_lines", (data.lines[`${l2}/${size}/${chosen.of}`] || []).map((words) => ({ words })));
  }

  function chart(id, key, further = {}) {
    const figure = data.charts[key], box = at(id);
    box.hidden = !figure;
    if (!figure) return;
    const about = { ...data.about, title: `${data.about.title}: ${data.words[key]}`, file: `${data.about.file}-${id}` };
    charts.get(id).draw({ figure, alt: data.words[key], about, ...further });
  }

  function lines(id, all) {
    at(id).replaceChildren(...all.map(({ mark, name, words, trust }) => {
      const item = document.createElement("li");
      const sign = mark === undefined ? null : at("marks").content.querySelector(`[data-mark="${mark}"]`);
      if (sign) item.append(sign.firstElementChild.cloneNode(true));
      if (name) {
        const bold = document.createElement("b");
        bold.textContent = `${name} `;
        item.append(bold);
      }
      item.append(words);
      if (trust) {
        const small = document.createElement("small");
        small.textContent = trust;
        item.append(small);
      }
      return item;
    }));
  }

  async function unpacked(id) {
    const bytes = Uint8Array.from(atob(at(id).textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  // A click on a heading sorts by its column: numbers by value, unknown values last. A second click reverses the order.
  function sortable() {
    for (const table of document.querySelectorAll("table[id]")) {
      [...table.tHead.rows[0].cells].forEach((heading, column) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = heading.textContent;
        heading.replaceChildren(button);
        button.addEventListener("click", () => sort(table, heading, column));
      });
    }
  }

  function sort(table, heading, column) {
    const down = heading.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = (row) => {
      const cell = row.cells[column], words = cell.textContent;
      if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
      return words === "\u2013" ? null : words;
    };
    const order = (a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === null || y === null) return (x === null) - (y === null);
      const found = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
      return down ? -found : found;
    };
    table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
  }

  function copyable() {
    const button = at("copy");
    if (!button) return; // a run of another tool, which has no command that measures it again
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(at("command").textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(at("command"));
        button.textContent = "Selected: press Ctrl+C";
      }
    });
  }
})();
