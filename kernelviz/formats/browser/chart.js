// One chart in a page: drawn by Plotly, redrawn in place, usable by mouse, touch and keyboard, saved as a picture.
// Pages and offline pages share this module. Texts get into the page by textContent and setAttribute only, so they are never
// parsed as HTML. The colours are the custom properties --chart-* of the box.

const CONFIG = { displayModeBar: false, scrollZoom: false, responsive: false, doubleClick: false };
const NARROW_PX = 500;
const PICTURE_PX = 960;
const PICTURE_SCALE = 2;
const ZOOM = 0.6;
const HOVER_MS = 80;  // Plotly draws the text of at most one point in 50 ms, and sends no event for a point that it is told.
const HINT = "Arrow keys move between the points.";
const TOOLS = [
  ["zoom in", "+", "Zoom in"],
  ["zoom out", "\u2212", "Zoom out"],
  ["whole", "\u21ba", "Show everything"],
  ["full", "", "Full screen"],
];
const COPY = [["image", "Image"], ["data", "Data (tab-separated)"], ["markdown", "Markdown table"]];
const SAVE = [["png", "PNG"], ["svg", "SVG"]];
const hiddenLines = new Map();  // by chart: the names of the lines that were hidden by a click in the legend

export class Chart {
  #box;
  #plotly;
  #plot = element("div", "plot");
  #tools = element("div", "chart-tools");
  #copy;
  #save;
  #spoken = element("div", "chart-spoken");
  #given = null;
  #hidden = new Set();
  #selected = null;
  #drawn = false;
  #at = null;
  #width = 0;
  #fitting = 0;
  #speaking = 0;
  #resized = new ResizeObserver(() => this.#fit());

  constructor(box, plotly) {
    this.#box = box;
    this.#plotly = plotly;
    box.classList.add("chart-box");
    box.tabIndex = 0;
    box.setAttribute("role", "application");
    box.setAttribute("aria-roledescription", "chart");
    this.#spoken.setAttribute("role", "status");
    this.#tools.setAttribute("role", "toolbar");
    this.#tools.setAttribute("aria-label", "This chart");
    for (const [name, sign, title] of TOOLS) {
      const button = toolButton(sign, title, () => this.#use(name));
      button.dataset.tool = name;
      this.#tools.append(button);
    }
    this.#copy = new Menu("Copy", "Copy this chart", COPY, (name) => this.#use(name));
    this.#save = new Menu("Save", "Save this chart", SAVE, (name) => this.#use(name));
    // Many fonts have no sign for it.
    const corners = vector("svg", { width: 11, height: 11, viewBox: "0 0 12 12", "aria-hidden": "true" });
    corners.append(vector("path", { d: "M1 4V1h3M8 1h3v3M11 8v3H8M4 11H1V8", fill: "none", stroke: "currentColor", "stroke-width": 1.5 }));
    this.#tools.lastChild.append(corners);
    this.#tools.lastChild.before(this.#copy.place, this.#save.place);
    this.#tools.addEventListener("keydown", (event) => this.#step(event));
    box.replaceChildren(this.#plot, this.#tools, this.#spoken);
    box.addEventListener("keydown", (event) => this.#key(event));
    box.addEventListener("focus", () => { this.#spoken.textContent = HINT; });
    box.addEventListener("blur", () => this.#leave());
    box.addEventListener("fullscreenchange", () => this.#redraw());
    this.#resized.observe(box);
  }

  // Draw or redraw. `figure`: data and layout. `alt`: what the chart shows, for screen readers. `selected`: the customdata of the
  // selected points, null for none. `select(key)` is called with the new selection; without it, points cannot be selected.
  // `name`: of the chart, so that its hidden lines stay hidden in another run and where a page draws the chart in a new element.
  // `zoom`: with buttons for it. `about`: what a saved picture says: title, facts, link (if undefined, the address) and file name.
  draw(given) {
    this.#given = given;
    this.#selected = given.selected ?? null;
    if (given.name) this.#hidden = hiddenLines.get(given.name) ?? hiddenLines.set(given.name, new Set()).get(given.name);
    this.#box.setAttribute("aria-label", given.alt);
    const hidden = {
      "zoom in": !given.zoom, "zoom out": !given.zoom, "whole": !given.zoom,
      "full": !document.fullscreenEnabled,
    };
    for (const button of this.#tools.children) if (button.dataset.tool) button.hidden = Boolean(hidden[button.dataset.tool]);
    const points = given.figure.data.some((trace) => isShown(trace) && pointsOf(trace).length) ? ["data", "markdown"] : [];
    this.#copy.offer([...(navigator.clipboard?.write && window.ClipboardItem ? ["image"] : []), ...points]);
    this.#shown().forEach((button, i) => { button.tabIndex = i ? -1 : 0; });
    return this.#redraw();
  }

  remove() {
    this.#resized.disconnect();
    if (this.#drawn) this.#plotly.purge(this.#plot);
  }

  async #redraw() {
    const height = this.#height();
    this.#plot.style.height = `${height}px`;
    this.#width = this.#box.clientWidth;
    const layout = this.#layout(this.#width, height);
    await this.#plotly.react(this.#plot, this.#traces(), layout, CONFIG);
    if (this.#drawn) return;
    this.#drawn = true;
    this.#plot.on("plotly_click", (event) => this.#choose(event.points[0]));
    this.#plot.on("plotly_restyle", () => this.#remember());
  }

  #height() {
    return document.fullscreenElement === this.#box ? innerHeight - 40 : this.#given.figure.layout.height;
  }

  #colour(name) {
    return getComputedStyle(this.#box).getPropertyValue(`--chart-${name}`).trim();
  }

  #layout(width, height) {
    const narrow = width < NARROW_PX, { layout } = this.#given.figure;
    const font = { family: this.#colour("font"), color: this.#colour("ink"), size: narrow ? 10 : 12 };
    const own = structuredClone(layout);
    // On a phone, the text beside a bar would not fit into the chart.
    if (narrow) for (const note of own.annotations || []) note.font = { ...note.font, size: 10 };
    const hoverlabel = { align: "left", bgcolor: this.#colour("paper"), bordercolor: this.#colour("line"), font: { ...font } };
    return { ...own, font, height, autosize: true, clickmode: "event", hoverlabel };
  }

  // A selected point is larger, the other bars are paler. Other points stay as they are, because their colours mean something.
  #traces() {
    const data = this.#named(structuredClone(this.#given.figure.data)), chosen = this.#selected;
    const places = data.map((trace) => (chosen === null ? [] : indices(trace, chosen)));
    if (!places.some((found) => found.length)) return data;
    return data.map((trace, i) => {
      if (!trace.customdata) return trace;
      if (trace.type === "bar") {
        return { ...trace, selectedpoints: places[i], selected: { marker: { opacity: 1 } }, unselected: { marker: { opacity: 0.4 } } };
      }
      const size = typeof trace.marker?.size === "number" ? trace.marker.size : 7;
      return {
        ...trace, selectedpoints: places[i], selected: { marker: { size: size * 1.8, opacity: 1 } },
        unselected: { marker: { opacity: 1 } },
      };
    });
  }

  // Plotly keeps what a click in the legend changed by the uid of a trace, or without one by its number, which another run changes.
  #named(data) {
    const counts = new Map();
    for (const trace of data) {
      const name = `${trace.type} ${trace.name ?? ""}`, count = counts.get(name) ?? 0;
      counts.set(name, count + 1);
      trace.uid = [...`${name} ${count}`].map((letter) => letter.codePointAt(0).toString(36)).join("");  // part of a class
      if (isNamedLine(trace) && this.#hidden.has(trace.name)) trace.visible = "legendonly";
    }
    return data;
  }

  // Which lines the legend has hidden. A line that this chart does not have stays as it was.
  #remember() {
    for (const trace of this.#plot.data.filter(isNamedLine)) {
      if (trace.visible === "legendonly") this.#hidden.add(trace.name);
      else this.#hidden.delete(trace.name);
    }
  }

  #choose(point) {
    const key = keyOf(point?.customdata);
    if (key === null || !this.#given.select) return;
    this.#change(key === this.#selected ? null : key);
  }

  #change(selected) {
    this.#selected = selected;
    this.#redraw();
    this.#given.select(selected);
  }

  #fit() {
    const width = this.#box.clientWidth;
    if (!this.#drawn || !width || width === this.#width) return;
    this.#width = width;
    cancelAnimationFrame(this.#fitting);
    this.#fitting = requestAnimationFrame(() => this.#redraw());
  }

  // Keyboard: the arrows move from point to point, Enter selects, Escape ends the selection.
  #key(event) {
    if (event.target !== this.#box || !this.#drawn || event.ctrlKey || event.metaKey || event.altKey) return;
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (event.key in steps) {
      event.preventDefault();
      this.#move(...steps[event.key]);
    } else if ((event.key === "Enter" || event.key === " ") && this.#at) {
      event.preventDefault();
      const { curve, point } = this.#at, { customdata } = this.#plot.data[curve];
      this.#choose({ customdata: Array.isArray(customdata) ? customdata[point] : customdata });
    } else if (event.key === "Escape" && (this.#at || this.#selected !== null)) {
      this.#leave();
      if (this.#selected !== null && this.#given.select) this.#change(null);
    }
  }

  #move(group, step) {
    const groups = groupsOf(this.#plot.calcdata);
    if (!groups.length) return;
    let line = this.#at ? groups.findIndex((g) => g.id === this.#at.id) : 0, place;
    if (line < 0 || !this.#at) {
      [line, place] = [0, 0];
    } else {
      const now = groups[line].points.findIndex((p) => p.key === this.#at.key), { x } = this.#at;
      line = (line + group + groups.length) % groups.length;
      const { points } = groups[line];
      const near = (p) => Math.abs(p.x - x);
      place = group ? points.reduce((best, p, i) => (near(p) < near(points[best]) ? i : best), 0)
        : Math.min(Math.max(now + step, 0), points.length - 1);
    }
    const { id, curve, points } = groups[line];
    this.#at = { id, curve, ...points[place] };
    this.#plotly.Fx.hover(this.#plot, [{ curveNumber: curve, pointNumber: this.#at.point }]);
    clearTimeout(this.#speaking);
    this.#speaking = setTimeout(() => this.#speak(), HOVER_MS);
  }

  // What the keyboard has reached, for screen readers: the point's own text and its place, or what the hover shows.
  #speak() {
    if (!this.#at) return;
    const { curve, point } = this.#at, { hovertext } = this.#plot.data[curve];
    const own = Array.isArray(hovertext) ? hovertext[point] : hovertext, { xaxis, hovermode } = this.#plot._fullLayout;
    if (hovermode === "x unified" && typeof own === "string") {
      const x = this.#plot.data[curve].x[point];
      const title = this.#plot._fullLayout.meta?.x?.title ?? xaxis.title.text ?? "x";
      const place = `${title} ${typeof x === "number" ? x.toLocaleString("en") : x}`;
      this.#spoken.textContent = [own, place].map(withoutTags).join(", ");
      return;
    }
    const lines = [...this.#plot.querySelectorAll(".hoverlayer .hovertext text")].flatMap((text) =>
      text.children.length ? [...text.children].map((line) => line.textContent) : [text.textContent]);
    this.#spoken.textContent = lines.filter(Boolean).join(", ");
  }

  #leave() {
    if (!this.#at) return;
    this.#at = null;
    this.#plotly.Fx.unhover(this.#plot);
    this.#spoken.textContent = "";
  }

  #shown() {
    return [...this.#tools.querySelectorAll(".chart-tool")].filter((button) => !button.hidden);
  }

  // The buttons are one stop of the Tab key; the arrows move between them.
  #step(event) {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key], buttons = this.#shown();
    const now = buttons.indexOf(document.activeElement), next = buttons[now + move];
    if (!move || !next) return;
    event.preventDefault();
    buttons[now].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  async #use(tool) {
    const { about, figure } = this.#given, { file } = about;
    try {
      if (tool === "png") save(await this.#png(), `${file}.png`);
      else if (tool === "svg") save(new Blob([await this.#svg()], { type: "image/svg+xml" }), `${file}.svg`);
      else if (COPY.some(([name]) => name === tool)) {
        const points = () => tableOf(figure, withoutTags);
        if (tool === "image") await navigator.clipboard.write([new ClipboardItem({ "image/png": this.#png() })]);
        else if (tool === "data") await copyText(tabSeparated(points()));
        else await copyText(markdownTable(points(), { ...about, link: about.link ?? location.href }));
        this.#spoken.textContent = "Copied.";
        this.#copy.done("Copied \u2713");
      } else if (tool === "full") await (document.fullscreenElement ? document.exitFullscreen() : this.#box.requestFullscreen());
      else await this.#zoom(tool);
    } catch (error) {
      this.#spoken.textContent = `This did not work: ${error.message}`;
    }
  }

  #zoom(tool) {
    const changes = {}, { _fullLayout } = this.#plot;
    for (const name of Object.keys(_fullLayout).filter((n) => /^[xy]axis\d*$/.test(n) && !_fullLayout[n].fixedrange)) {
      const [low, high] = _fullLayout[name].range.map(Number);
      if (tool === "whole") {
        const { range } = this.#given.figure.layout[name] ?? {};
        changes[`${name}.${range ? "range" : "autorange"}`] = range ? [...range] : true;
      } else if (Number.isFinite(low) && Number.isFinite(high)) {
        const middle = (low + high) / 2, half = ((high - low) / 2) * (tool === "zoom in" ? ZOOM : 1 / ZOOM);
        changes[`${name}.range`] = [middle - half, middle + half];
      }
    }
    return this.#plotly.relayout(this.#plot, changes);
  }

  // A picture has the title above the chart, and below it the device, the date and the link.
  async #svg() {
    const { about, figure } = this.#given, { height } = figure.layout;
    const layout = this.#layout(PICTURE_PX, height);
    const options = { format: "svg", width: PICTURE_PX, height, imageDataOnly: true };
    const drawn = await this.#plotly.toImage({ data: this.#traces(), layout, config: CONFIG }, options);
    const chart = new DOMParser().parseFromString(drawn, "image/svg+xml").documentElement;
    const family = this.#colour("font"), ink = this.#colour("ink"), soft = this.#colour("soft");
    const picture = vector("svg", { xmlns: SVG, width: PICTURE_PX, "font-family": family });
    const paper = vector("rect", { width: "100%", height: "100%", fill: this.#colour("paper") });
    picture.append(paper);
    let y = 10;
    const write = (words, size, weight, fill) => {
      for (const line of wrapped(words, `${weight} ${size}px ${family}`, PICTURE_PX - 24)) {
        y += size * 1.35;
        const text = vector("text", { x: 12, y, "font-size": size, "font-weight": weight, fill });
        text.textContent = line;
        picture.append(text);
      }
    };
    write(about.title, 18, 600, ink);
    write(about.facts, 13, 400, soft);
    y += 12;
    chart.setAttribute("y", y);
    picture.append(chart);
    y += height;
    write(about.link ?? location.href, 12, 400, soft);
    picture.setAttribute("height", Math.ceil(y + 14));
    picture.setAttribute("viewBox", `0 0 ${PICTURE_PX} ${Math.ceil(y + 14)}`);
    return new XMLSerializer().serializeToString(picture);
  }

  async #png() {
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(await this.#svg())}`;
    await image.decode();
    const canvas = element("canvas");
    canvas.width = image.width * PICTURE_SCALE;
    canvas.height = image.height * PICTURE_SCALE;
    const context = canvas.getContext("2d");
    context.scale(PICTURE_SCALE, PICTURE_SCALE);
    context.drawImage(image, 0, 0);
    return new Promise((done, failed) => {
      canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("the browser made no picture"))), "image/png");
    });
  }
}

const SVG = "http://www.w3.org/2000/svg";

function isNamedLine(trace) {
  return Boolean(trace.name) && Boolean(trace.mode?.includes("lines"));
}

function element(tag, name) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  return made;
}

function vector(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) if (name !== "xmlns") made.setAttribute(name, value);
  return made;
}

function save(blob, name) {
  const link = element("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// The text in lines that fit into the width.
function wrapped(words, font, width) {
  const pen = element("canvas").getContext("2d"), lines = [];
  if (!words) return lines;
  pen.font = font;
  const fits = (text) => pen.measureText(text).width <= width;
  // A link is one word and may be longer than a line.
  const parts = (word) => {
    let end = word.length;
    while (end > 1 && !fits(word.slice(0, end))) end -= 1;
    return end < word.length ? [word.slice(0, end), ...parts(word.slice(end))] : [word];
  };
  for (const word of words.split(" ").flatMap(parts)) {
    const longer = lines.length ? `${lines[lines.length - 1]} ${word}` : word;
    if (lines.length && fits(longer)) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

function keyOf(customdata) {
  const value = Array.isArray(customdata) ? customdata[0] : customdata;
  return value === undefined || value === null ? null : String(value);
}

// Plotly's texts have tags, and characters of foreign texts as entities.
function withoutTags(text) {
  const signs = { lt: "<", gt: ">", quot: '"', "#x27": "'", amp: "&" };
  return text.replace(/<br>/g, ", ").replace(/<[^>]*>/g, "").replace(/&(lt|gt|quot|#x27|amp);/g, (_, name) => signs[name]);
}

function indices(trace, key) {
  const { customdata } = trace;
  if (!Array.isArray(customdata)) return keyOf(customdata) === key ? (trace.x || []).map((_, i) => i) : [];
  return customdata.flatMap((value, i) => (keyOf(value) === key ? [i] : []));
}

// What the arrow keys move over: the points of each trace, or the cells of each row of a heat map, where a hover has something to say.
function groupsOf(calculated) {
  const groups = [];
  for (const [curve, points] of (calculated || []).entries()) {
    const trace = points[0]?.trace;
    if (!trace || trace.visible !== true || trace.hoverinfo === "skip") continue;
    if (trace.type === "heatmap") {
      for (const [row, cells] of (points[0].z || []).entries()) {
        const known = [...cells.keys()].filter((column) => cells[column] !== undefined && cells[column] !== null);
        const made = known.map((column) => ({ key: `${row}/${column}`, point: [row, column], x: column }));
        if (made.length) groups.push({ id: `${curve}/${row}`, curve, points: made });
      }
      continue;
    }
    const known = [...points.entries()].filter(([, p]) => Number.isFinite(p.p ?? p.x) && Number.isFinite(p.s ?? p.y));
    const made = known.map(([i, p]) => ({ key: String(i), point: i, x: p.p ?? p.x }));
    if (made.length) groups.push({ id: String(curve), curve, points: made });
  }
  return groups;
}
