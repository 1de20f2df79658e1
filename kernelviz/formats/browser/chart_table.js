// What a chart shows, as a table: one row for each point, with its interval where it has one. Axis titles, which contain the
// unit, are the headings. Stands before chart.js in one module. `layout.meta` tells where drawn coordinates are not the data:
// {x: {title, log, scale, labels, spread, omit}, y: …}: another title, natural logarithms of the data, the unit of the title in
// that of the data, the names of the positions 0, 1, …, points that are drawn beside the whole number that they stand for, or
// nothing that means anything. A trace with `meta: {table: false}` is a picture of points that another table lists.

// The headings and the rows. Cells are numbers, texts, or null. `plain` turns Plotly's text into plain text.
function tableOf({ data, layout }, plain) {
  const traces = data.filter(isShown);
  const axes = traces.map((trace) => ["x", "y"].map((letter) => axisOf(trace, letter, layout, plain)));
  const grid = traces.some((trace) => trace.type === "heatmap");
  const titles = [0, 1].map((i) => axes.filter((pair) => !pair[i].hidden).map((pair) => pair[i].title));
  const [x, y] = [0, 1].map((i) => oneOf(titles[i]) ?? "xy"[i]);
  const mixed = [0, 1].map((i) => new Set(titles[i]).size > 1);
  const across = traces.some((trace) => trace.error_x || isSpan(trace));
  const interval = traces.some((trace) => trace.error_x || trace.error_y || isSpan(trace));
  const measured = across ? x : y;
  const named = traces.every((t) => t.y?.length && t.y.every((v) => plain(String(v)).trim() === plain(t.name ?? "")));
  const omit = [Boolean(layout.meta?.x?.omit), named || Boolean(layout.meta?.y?.omit)];
  const place = (i, name, cell) => (omit[i] ? [] : [...(mixed[i] ? [name] : []), cell]);
  const headings = [
    "series", ...place(0, "x axis", x || "x"), ...place(1, "y axis", y || "y"),
    ...(grid ? ["value"] : []), ...(interval ? [`${measured || "value"}, from`, `${measured || "value"}, to`] : []),
  ];
  const rows = traces.flatMap((trace, i) => pointsOf(trace).map(({ at, xs, ys, value, low, high }) => {
    const [ax, ay] = axes[i], own = across ? ax : ay;
    return [
      nameOf(trace, at, plain), ...place(0, ax.title, ax.value(xs)), ...place(1, ay.title, ay.value(ys)),
      ...(grid ? [value ?? null] : []), ...(interval ? [own.value(low ?? null), own.value(high ?? null)] : []),
    ];
  }));
  return { headings, rows };
}

// A bar from `base` to another value, as on a timeline.
function isSpan(trace) {
  return trace.orientation === "h" && trace.base !== undefined;
}

// A trace with points that a hover explains, or a named line, such as a roof. Others are decoration.
function isShown(trace) {
  if (trace.visible === false || trace.visible === "legendonly" || trace.meta?.table === false) return false;
  return trace.hoverinfo !== "skip" || (trace.type !== "bar" && trace.mode === "lines" && Boolean(trace.name));
}

function oneOf(titles) {
  return new Set(titles).size === 1 ? titles[0] : undefined;
}

// The name of the trace, or of the point if the trace has none. Of a mark of several variants ("not measured"), both.
function nameOf(trace, at, plain) {
  const name = plain(trace.name ?? ""), label = Array.isArray(trace.text) ? trace.text[at] : "";
  const own = typeof label === "string" ? plain(label) : "";
  return name && own && trace.mode === "markers" ? `${own}: ${name}` : name || own;
}

function axisOf(trace, letter, layout, plain) {
  const key = `${letter}axis${(trace[`${letter}axis`] ?? letter).slice(1)}`, axis = layout[key] ?? {};
  const meta = layout.meta?.[key.replace("axis", "")] ?? {};
  const { tickvals = [], ticktext = [] } = axis;
  const values = (trace[letter] ?? []).filter((v) => v !== null && v !== undefined);
  const labelled = axis.type !== "log" && ticktext.length > 0 && values.every((v) => tickvals.includes(v));
  const value = (drawn) => {
    if (drawn === null || drawn === undefined) return null;
    const v = meta.spread && typeof drawn === "number" ? Math.round(drawn) : drawn;
    if (meta.scale) return tidy(v / meta.scale);
    if (meta.log) return Number(Math.exp(v).toPrecision(6));
    if (meta.labels && Number.isInteger(v) && v in meta.labels) return plain(String(meta.labels[v]));
    if (labelled) return plain(String(ticktext[tickvals.indexOf(v)]));
    return typeof v === "number" ? v : plain(String(v)).trim();
  };
  // A position on an axis that is not drawn is no value: the row of marks of failed cases, for example.
  const hidden = axis.visible === false;
  return { hidden, title: plain(meta.title ?? axis.title?.text ?? ""), value: hidden ? () => null : value };
}

function pointsOf(trace) {
  if (trace.type === "heatmap") {
    return (trace.z ?? []).flatMap((row, r) => [...row].flatMap((value, c) =>
      (value === null || value === undefined ? [] : [{ at: c, xs: trace.x?.[c] ?? c, ys: trace.y?.[r] ?? r, value }])));
  }
  const count = Math.max(trace.x?.length ?? 0, trace.y?.length ?? 0), error = trace.error_x ?? trace.error_y;
  return Array.from({ length: count }, (_, at) => {
    const xs = trace.x?.[at] ?? null, ys = trace.y?.[at] ?? null;
    const base = Array.isArray(trace.base) ? trace.base[at] : trace.base, middle = trace.error_x ? xs : ys;
    if (isSpan(trace) && typeof base === "number" && typeof xs === "number") return { at, xs, ys, low: base, high: base + xs };
    const up = error?.array?.[at], down = error?.arrayminus?.[at] ?? up;
    const known = typeof middle === "number" && typeof up === "number" && typeof down === "number" && (up || down);
    return known ? { at, xs, ys, low: tidy(middle - down), high: tidy(middle + up) } : { at, xs, ys };
  }).filter(({ xs, ys }) => xs !== null && ys !== null);
}

// The figure has six digits, so a sum of two of its numbers has no more.
function tidy(number) {
  return Number(number.toPrecision(6));
}

// Tab-separated values for a spreadsheet, which would take a text with such a beginning for a formula.
function tabSeparated({ headings, rows }) {
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    return (/^[=+\-@\t\r]/.test(value) ? `'${value}` : value).replace(/\s+/g, " ");
  };
  return [headings, ...rows].map((line) => line.map(cell).join("\t")).join("\n");
}

// A table in Markdown, with the title, the facts (device, date) and the link above it.
function markdownTable({ headings, rows }, { title, facts, link }) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const cell = (value) => (typeof value === "number" ? String(value) : literal(value ?? "").replaceAll("|", "\\|"));
  const right = headings.map((_, i) => rows.length > 0 && rows.every((row) => row[i] === null || typeof row[i] === "number"));
  const about = [`**${literal(title)}**`, literal(facts), link ? `<${link.replace(/[<>\s]/g, encodeURIComponent)}>` : ""];
  const table = [line(headings.map(cell)), line(right.map((number) => (number ? "--:" : "---"))), ...rows.map((row) => line(row.map(cell)))];
  return `${about.filter(Boolean).join("  \n")}\n\n${table.join("\n")}\n`;
}

// Text on one line as Markdown shows it: as it is if no character of it means anything, else as a code span.
function literal(text) {
  const one = String(text).replace(/\s+/g, " ").trim();
  if (/^[\p{L}\p{N}\p{No} .,:;=()%×·/±^≥≤–→←▲▼✕≈⊘?-]*$/u.test(one)) return one;
  const fence = "`".repeat(Math.max(0, ...(one.match(/`+/g) ?? []).map((run) => run.length)) + 1);
  const pad = one.startsWith("`") || one.endsWith("`") ? " " : "";
  return fence + pad + one + pad + fence;
}
