// Code beside code: the panes of a kernel, whose lines are linked by their source lines, or the difference of two texts.
// Pages and offline pages share this module. Texts get into the page by CodeMirror and textContent only, so they are never parsed as
// HTML. The colours are the custom properties --code-* of the box.

const NARROW_PX = 700;
const MARKS = {
  tensor: ["TC", "tensor core instruction"],
  wide_load: ["L16", "load of 16 bytes or more by a thread"],
  wide_store: ["S16", "store of 16 bytes or more by a thread"],
  spill: ["SP", "access to local memory (spilled registers)"],
  copy: ["CP", "asynchronous copy"],
};
const MATCH_MARGIN_PX = 60;  // to the right of a match beside which the text was scrolled
const CONTEXT = 3;  // equal lines beside a change
const LEAST_ALIKE = 0.5;  // of two lines that replace each other: the differing characters are marked only if so much is the same
const PHRASES = { Find: "Find in this text", next: "Next", previous: "Previous", all: "All", "match case": "Match case", "by word": "Whole words", regexp: "Regular expression", "$ unchanged lines": "$ equal lines" };

export class CodeView {
  #box;
  #library;
  #given = null;
  #content = null;
  #narrow = null;
  #shown = 0;
  #panes = [];
  #merge = null;
  #equal = false;
  #pinned = null;
  #status = part("div", "code-status", { role: "status" });
  #link;
  #resized = new ResizeObserver(() => this.#fit());

  constructor(box, library) {
    this.#box = box;
    this.#library = library;
    this.#link = linkField(library);
    box.classList.add("code-box");
    this.#resized.observe(box);
  }

  // Draw. `packed`: the content as base64 of gzip of JSON (formats/code_view.py). `alt`: what is shown, for screen readers.
  async draw(given) {
    if (this.#given?.packed === given.packed) return;
    this.#given = given;
    this.#box.setAttribute("role", "group");
    this.#box.setAttribute("aria-label", given.alt);
    const text = await unpack(given.packed);
    if (this.#given !== given) return;  // another one was given meanwhile
    this.#content = JSON.parse(text);
    this.#shown = Math.max(0, (this.#content.panes?.length ?? 1) - 1);
    this.#build();
  }

  remove() {
    this.#resized.disconnect();
    this.#clear();
  }

  #fit() {
    const narrow = this.#box.clientWidth < NARROW_PX;
    if (this.#content && narrow !== this.#narrow) this.#build();
  }

  #clear() {
    this.#merge?.destroy();
    for (const pane of this.#panes) pane.editor?.destroy();
    this.#merge = null;
    this.#panes = [];
    this.#pinned = null;
  }

  #build() {
    this.#clear();
    this.#narrow = this.#box.clientWidth < NARROW_PX;
    this.#status.textContent = "";
    if (this.#content.mode === "diff") this.#buildDiff();
    else this.#buildPanes();
  }

  // One kernel: its texts side by side, or on a phone one at a time.

  #buildPanes() {
    const { panes } = this.#content;
    const grid = part("div", "code-panes");
    grid.style.setProperty("--code-columns", this.#narrow ? 1 : panes.length);
    this.#panes = panes.map((pane, number) => this.#pane(pane, number));
    grid.replaceChildren(...this.#panes.map((pane) => pane.place));
    this.#box.replaceChildren(...(this.#narrow && panes.length > 1 ? [this.#tabs()] : []), grid, this.#status, this.#legend());
    this.#show(this.#narrow ? this.#shown : -1);
    if (panes.length > 1) this.#say(this.#content.hint);
  }

  #pane(pane, number) {
    const { EditorView } = this.#library;
    const place = part("section", "code-pane", { "aria-label": pane.title });
    const head = part("div", "code-head");
    const title = part("strong", "");
    title.textContent = pane.title;
    head.append(title);
    const body = part("div", "code-editor");
    const own = { ...pane, number, place, index: indexOf(pane.chain, this.#content.chains), linked: "" };
    const lines = pane.text.split("\n");
    own.marks = marksOf(pane, lines.length);
    own.editor = new EditorView({
      parent: body,
      doc: pane.text,
      extensions: [
        this.#common(pane.title, pane.language, pane.numbers),
        ...this.#gutters(own),
        this.#link.extension,
        EditorView.updateListener.of((update) => {
          if (update.view.hasFocus && (update.selectionSet || update.focusChanged)) this.#pin(own);
        }),
        EditorView.domEventHandlers({
          mousemove: (event, view) => { this.#hover(own, view, event); },
          mouseleave: () => { this.#restore(); },
        }),
      ],
    });
    head.append(button("Find", `Find in ${pane.title}`, () => { this.#library.openSearchPanel(own.editor); }));
    if (pane.loops?.length) head.append(button("Main loop", `Go to the next main loop in ${pane.title}`, () => this.#next(own, own.loopStarts())));
    if (pane.marks?.length) head.append(button("Next mark", `Go to the next marked instruction in ${pane.title}`, () => this.#next(own, pane.marks.map(([line]) => line + 1))));
    own.loopStarts = () => pane.loops.map(([first]) => first + 1);
    if (pane.note) {
      const note = part("p", "code-note");
      note.textContent = pane.note;
      place.append(head, note, body);
    } else {
      place.append(head, body);
    }
    return own;
  }

  #tabs() {
    const list = part("div", "code-tabs", { role: "tablist", "aria-label": "Text that is shown" });
    this.#panes.forEach((pane, number) => {
      const tab = button(pane.short, pane.title, () => this.#show(number));
      tab.setAttribute("role", "tab");
      list.append(tab);
    });
    list.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      this.#show((this.#shown + step + this.#panes.length) % this.#panes.length);
      list.children[this.#shown].focus();
    });
    return list;
  }

  // Show one pane; -1: all of them.
  #show(number) {
    if (number >= 0) this.#shown = number;
    this.#panes.forEach((pane, i) => { pane.place.hidden = number >= 0 && i !== number; });
    for (const [i, tab] of [...(this.#box.querySelector(".code-tabs")?.children ?? [])].entries()) {
      tab.setAttribute("aria-selected", String(i === number));
      tab.tabIndex = i === number ? 0 : -1;
    }
  }

  #legend() {
    const used = new Set(this.#content.panes.flatMap((pane) => (pane.marks ?? []).map(([, mark]) => mark)));
    const legend = part("p", "code-legend");
    const entries = Object.entries(MARKS).filter(([name]) => used.has(name)).map(([, [sign, meaning]]) => `${sign} ${meaning}`);
    if (this.#content.panes.some((pane) => pane.loops?.length)) entries.push("\u2503 main loop");
    if (this.#content.panes.some((pane) => pane.control)) entries.push(this.#content.control_legend);
    if (this.#content.panes.length > 1) entries.push("\u25b8 linked line, \u25b9 call that was inlined");
    legend.textContent = entries.join(" \u00b7 ");
    return legend;
  }

  // What every editor has: it is read only, but can be focused, searched, and read by arrow keys.
  #common(title, language, numbers) {
    const { EditorState, EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers, search, searchKeymap, standardKeymap } = this.#library;
    return [
      EditorState.readOnly.of(true),
      EditorState.phrases.of(PHRASES),
      EditorView.editable.of(false),
      EditorView.contentAttributes.of({ tabindex: "0", "aria-label": title, "aria-readonly": "true" }),
      numbers === null ? [] : lineNumbers({ formatNumber: (n) => (numbers ? String(numbers[n - 1] ?? "") : String(n)) }),
      drawSelection(),
      highlightActiveLine(),
      search({ top: true, scrollToMatch: (match, view) => { view.scrollDOM.scrollLeft = 0; return EditorView.scrollIntoView(match, { y: "center", xMargin: MATCH_MARGIN_PX }); } }),
      backToTheLeft(EditorView),
      keymap.of([...searchKeymap, ...standardKeymap]),
      languageOf(this.#library, language),
      coloursOf(this.#library),
    ];
  }

  #gutters(pane) {
    const { gutter } = this.#library;
    const signs = signsOf(this.#library);
    const byLine = (view, block, of) => of[view.state.doc.lineAt(block.from).number - 1] ?? null;
    const loops = (pane.loops ?? []).length ? spread(pane.loops, pane.text.split("\n").length) : null;
    return [
      ...(this.#content.panes.length > 1 ? [this.#link.gutter] : []),
      ...(pane.control ? [gutter({ class: "code-control", lineMarker: (view, block) => signs(byLine(view, block, pane.control), ""), initialSpacer: () => signs(longest(pane.control), "") })] : []),
      ...(pane.marks.some(Boolean) ? [gutter({ class: "code-marks", lineMarker: (view, block) => { const mark = byLine(view, block, pane.marks); return mark ? signs(...MARKS[mark]) : null; }, initialSpacer: () => signs("L16", "") })] : []),
      ...(loops ? [gutter({ class: "code-loops", lineMarker: (view, block) => signs(byLine(view, block, loops), "main loop"), initialSpacer: () => signs(longest(loops), "") })] : []),
    ];
  }

  // Links between the lines of the panes.

  #hover(pane, view, event) {
    const at = view.posAtCoords({ x: event.clientX, y: event.clientY }, false);
    this.#relate(pane, view.state.doc.lineAt(at).number, false);
  }

  #restore() {
    if (this.#pinned) this.#relate(...this.#pinned, false);
    else this.#unlink();
  }

  #pin(pane) {
    const { state } = pane.editor;
    this.#pinned = [pane, state.doc.lineAt(state.selection.main.head).number];
    this.#relate(...this.#pinned, true);
  }

  #unlink() {
    for (const pane of this.#panes) this.#set(pane, [], []);
  }

  // Mark the lines of all panes that come from the same source line. `follow`: show one of them, best a marked instruction.
  #relate(pane, line, follow) {
    const { chains } = this.#content;
    const chain = chains[pane.chain[line - 1]] ?? [];
    const source = this.#panes.find((one) => one.key === "source");
    const main = chain.find((id) => source?.index.has(id)) ?? chain[0];
    const counts = [];
    for (const other of this.#panes) {
      const strong = main === undefined ? [] : other.index.get(main) ?? [];
      const weak = other.key === "source" ? chain.filter((id) => id !== main).flatMap((id) => other.index.get(id) ?? []).sort((a, b) => a - b) : [];
      this.#set(other, other === pane && pane.key === "source" ? [] : strong, weak);
      if (other !== pane && chain.length) counts.push(`${strong.length.toLocaleString("en")} ${strong.length === 1 ? "line" : "lines"} of ${other.short}`);
      if (follow && other !== pane && strong.length && !other.place.hidden) {
        reveal(this.#library, other.editor, strong.find((one) => other.marks[one - 1]) ?? strong[0]);
      }
    }
    this.#say(this.#describe(pane, line, chain, counts));
  }

  #describe(pane, line, chain, counts) {
    const { origins, files, unknown } = this.#content;
    const name = ([file, number]) => `${files[file].split("/").at(-1)} line ${number}`;
    const said = chain.length
      ? [chain.map((id) => name(origins[id])).join(", inlined at ") + (counts.length ? `: ${counts.join(", ")}` : "")]
      : [`${pane.short} line ${line}: ${unknown}`];
    const mark = pane.marks[line - 1];
    if (mark) said.push(MARKS[mark][1]);
    const loop = (pane.loops ?? []).find(([first, last]) => first < line && line <= last + 1);
    if (loop) said.push(loop[2] ? `main loop of warp role ${loop[2]}` : "main loop");
    if (pane.control?.[line - 1]) said.push(`control codes ${pane.control[line - 1]}`);
    return said.join(" \u00b7 ");
  }

  #set(pane, strong, weak) {
    const key = `${strong}|${weak}`;
    if (key === pane.linked) return;
    pane.linked = key;
    pane.editor.dispatch({ effects: this.#link.set.of({ strong, weak }) });
  }

  #say(text) {
    if (this.#status.textContent !== text) this.#status.textContent = text;
  }

  // Move to the next of these lines behind the cursor, or to the first one.
  #next(pane, lines) {
    const { editor } = pane, { state } = editor;
    const present = state.doc.lineAt(state.selection.main.head).number;
    const line = lines.find((one) => one > present) ?? lines[0];
    editor.focus();
    editor.dispatch({ selection: { anchor: state.doc.line(line).from }, effects: this.#library.EditorView.scrollIntoView(state.doc.line(line).from, { y: "center" }) });
  }

  // Two texts.

  #buildDiff() {
    const { a, b, changes, language } = this.#content;
    const head = part("div", "code-head");
    const place = part("div", "code-diff");
    const equal = part("label", "code-equal");
    const box = part("input", "", { type: "checkbox" });
    box.checked = this.#equal;
    box.addEventListener("change", () => { this.#equal = box.checked; this.#build(); this.#box.querySelector(".code-equal input").focus(); });
    equal.append(box, " Show equal lines");
    this.#box.replaceChildren(head, place, this.#status);
    if (!changes.length) {
      this.#say("The two texts are equal.");
    } else {
      this.#say(this.#content.summary);
    }
    if (this.#narrow) this.#buildUnified(place, head);
    else this.#buildMerge(place, head, a, b, changes, language);
    head.append(equal);
  }

  #buildMerge(place, head, a, b, changes, language) {
    const { EditorView, MergeView, goToNextChunk, goToPreviousChunk, openSearchPanel, panels } = this.#library;
    const searchPlaces = [part("div", "code-search"), part("div", "code-search")];
    const titles = part("div", "code-titles");
    for (const [i, side] of [a, b].entries()) {
      const title = part("div", "");
      const text = part("strong", "");
      text.textContent = side.title;
      title.append(text, searchPlaces[i]);
      titles.append(title);
    }
    const { ranges, refined } = this.#changes(a.text, b.text, changes);
    const side = (one, i) => ({
      doc: one.text,
      extensions: [
        EditorView.decorations.of(refined[i]),
        EditorView.lineWrapping,  // beside the other text there is no room to scroll to the side
        this.#common(one.title, language, one.numbers),
        panels({ topContainer: searchPlaces[i] }),
        this.#signs(i ? 2 : 0, i ? 3 : 1, changes, i ? "+" : "\u2212"),
      ],
    });
    const merged = part("div", "code-merge");
    place.append(titles, merged);
    const merge = new MergeView({
      a: side(a, 0), b: side(b, 1), parent: merged, highlightChanges: false, gutter: false,
      collapseUnchanged: this.#equal ? undefined : { margin: CONTEXT, minSize: 2 * CONTEXT },
      diffConfig: { override: () => ranges },
    });
    this.#merge = merge;
    const move = (command) => () => { merge.b.focus(); command({ state: merge.b.state, dispatch: (transaction) => merge.b.dispatch(transaction) }); this.#bring(merge.b); };
    head.append(
      button("Next change", "Go to the next change", move(goToNextChunk)), button("Previous change", "Go to the previous change", move(goToPreviousChunk)),
      button("Find in A", "Find in A", () => openSearchPanel(merge.a)), button("Find in B", "Find in B", () => openSearchPanel(merge.b)),
    );
  }

  #bring(editor) {
    editor.dispatch({ effects: this.#library.EditorView.scrollIntoView(editor.state.selection.main.head, { y: "center" }) });
  }

  // The changes of lines as ranges of characters. `refined`: for each side, marks of the characters that differ where lines of A are
  // replaced by as many similar lines of B. A line that only one side has needs no more than its sign.
  #changes(a, b, changes) {
    const { Change, Decoration } = this.#library;
    const startsA = startsOf(a), startsB = startsOf(b);
    const at = (starts, text, line) => (line < starts.length ? starts[line] : text.length);
    const line = (starts, text, number) => text.slice(starts[number], number + 1 < starts.length ? starts[number + 1] - 1 : text.length);
    const marks = [[], []], changed = Decoration.mark({ class: "code-changed" });
    for (const [aFirst, aEnd, bFirst, bEnd] of changes) {
      if (aEnd - aFirst !== bEnd - bFirst) continue;
      for (let i = 0; i < aEnd - aFirst; i++) {
        const parts = this.#refined(line(startsA, a, aFirst + i), line(startsB, b, bFirst + i));
        for (const one of parts) {
          if (one.toA > one.fromA) marks[0].push(changed.range(startsA[aFirst + i] + one.fromA, startsA[aFirst + i] + one.toA));
          if (one.toB > one.fromB) marks[1].push(changed.range(startsB[bFirst + i] + one.fromB, startsB[bFirst + i] + one.toB));
        }
      }
    }
    const ranges = changes.map(([aFirst, aEnd, bFirst, bEnd]) => new Change(at(startsA, a, aFirst), at(startsA, a, aEnd), at(startsB, b, bFirst), at(startsB, b, bEnd)));
    return { ranges, refined: marks.map((of) => Decoration.set(of)) };
  }

  // The differing parts of two lines; none if they have too little in common.
  #refined(a, b) {
    const parts = this.#library.presentableDiff(a, b, { scanLimit: 200 });
    const differing = parts.reduce((sum, one) => sum + one.toA - one.fromA + one.toB - one.fromB, 0);
    return differing <= (1 - LEAST_ALIKE) * (a.length + b.length) ? parts : [];
  }

  // A sign beside each changed line, so that a change is not said by colour alone.
  #signs(first, end, changes, sign) {
    const { gutter } = this.#library;
    const signs = signsOf(this.#library);
    const changed = new Set(changes.flatMap((change) => Array.from({ length: change[end] - change[first] }, (_, i) => change[first] + i)));
    return gutter({
      class: "code-signs",
      lineMarker: (view, block) => (changed.has(view.state.doc.lineAt(block.from).number - 1) ? signs(sign, "") : null),
      initialSpacer: () => signs("+", ""),
    });
  }

  // On a phone: the lines of both in one column.
  #buildUnified(place, head) {
    const { a, b, changes, language } = this.#content;
    const { Decoration, EditorView, RangeSetBuilder, gutter, openSearchPanel } = this.#library;
    const lines = unified(a.text.split("\n"), b.text.split("\n"), changes, this.#equal);
    const signs = signsOf(this.#library);
    const title = part("div", "code-titles one");
    for (const [sign, side] of [["\u2212", a], ["+", b]]) {
      const text = part("strong", "");
      text.textContent = `${sign} ${side.title}`;
      title.append(text);
    }
    const marked = EditorView.decorations.of((view) => {
      const builder = new RangeSetBuilder();
      for (const { from, to } of view.visibleRanges) {
        for (let at = from; at <= to;) {
          const line = view.state.doc.lineAt(at), kind = lines[line.number - 1][0];
          if (kind !== " ") builder.add(line.from, line.from, Decoration.line({ class: { "-": "code-removed", "+": "code-added", "~": "code-skipped" }[kind] }));
          at = line.to + 1;
        }
      }
      return builder.finish();
    });
    const editor = new EditorView({
      parent: place,
      doc: lines.map(([, text]) => text).join("\n"),
      extensions: [
        this.#common(`${a.title} and ${b.title}`, language, null), marked, EditorView.lineWrapping,
        gutter({ class: "code-signs", lineMarker: (view, block) => { const kind = lines[view.state.doc.lineAt(block.from).number - 1][0]; return "+-".includes(kind) ? signs(kind === "-" ? "\u2212" : "+", "") : null; }, initialSpacer: () => signs("+", "") }),
      ],
    });
    const pane = { editor, place };
    this.#panes = [pane];
    const starts = lines.flatMap(([kind], i) => ("+-".includes(kind) && !"+-".includes(lines[i - 1]?.[0] ?? " ") ? [i + 1] : []));
    place.prepend(title);
    head.append(button("Next change", "Go to the next change", () => { if (starts.length) this.#next(pane, starts); }), button("Find", "Find in both texts", () => openSearchPanel(editor)));
  }
}

// By source place, the numbers of the lines (from 1) that come from it.
function indexOf(chain, chains) {
  const index = new Map();
  chain.forEach((number, line) => {
    for (const id of new Set(chains[number] ?? [])) {
      if (!index.has(id)) index.set(id, []);
      index.get(id).push(line + 1);
    }
  });
  return index;
}

// The state and the gutter that mark linked lines.
function linkField(library) {
  const { Decoration, EditorView, GutterMarker, RangeSetBuilder, StateEffect, StateField, gutter } = library;
  const set = StateEffect.define();
  const strongLine = Decoration.line({ class: "code-linked" }), weakLine = Decoration.line({ class: "code-call" });
  const signs = signsOf(library);
  const empty = { deco: Decoration.none, strong: new Set(), weak: new Set() };
  const field = StateField.define({
    create: () => empty,
    update(value, transaction) {
      for (const effect of transaction.effects) {
        if (!effect.is(set)) continue;
        const strong = new Set(effect.value.strong), weak = new Set(effect.value.weak.filter((line) => !strong.has(line)));
        const builder = new RangeSetBuilder();
        for (const line of [...strong, ...weak].sort((a, b) => a - b)) {
          const { from } = transaction.state.doc.line(line);
          builder.add(from, from, strong.has(line) ? strongLine : weakLine);
        }
        return { deco: builder.finish(), strong, weak };
      }
      return value;
    },
    provide: (of) => EditorView.decorations.from(of, (value) => value.deco),
  });
  return {
    set,
    extension: field,
    gutter: gutter({
      class: "code-links",
      lineMarker(view, block) {
        const { strong, weak } = view.state.field(field), line = view.state.doc.lineAt(block.from).number;
        return strong.has(line) ? signs("\u25b8", "linked line") : weak.has(line) ? signs("\u25b9", "call that was inlined") : null;
      },
      lineMarkerChange: (update) => update.startState.field(field) !== update.state.field(field),
      initialSpacer: () => signs("\u25b8", ""),
    }),
  };
}

// A function that gives a marker of a gutter: a short text with its meaning.
function signsOf({ GutterMarker }) {
  const known = new Map();
  class Sign extends GutterMarker {
    constructor(text, meaning) { super(); this.text = text; this.meaning = meaning; }
    eq(other) { return other.text === this.text; }
    toDOM() {
      const element = part("span", "");
      element.textContent = this.text;
      if (this.meaning) element.title = this.meaning;
      return element;
    }
  }
  return (text, meaning) => {
    if (!text) return null;
    if (!known.has(text)) known.set(text, new Sign(text, meaning));
    return known.get(text);
  };
}

function marksOf(pane, count) {
  const marks = new Array(count).fill(null);
  for (const [line, mark] of pane.marks ?? []) marks[line] = mark;
  return marks;
}

// Of each line the sign of the main loop that it is in.
function spread(loops, count) {
  const signs = new Array(count).fill(null);
  for (const [first, last, role] of loops) for (let line = first; line <= last; line++) signs[line] = `\u2503${role}`;
  return signs;
}

function longest(texts) {
  return texts.reduce((most, text) => ((text ?? "").length > most.length ? text : most), " ");
}

// When the search ends, the beginnings of the lines are in sight again.
function backToTheLeft(EditorView) {
  let searching = false;
  return EditorView.updateListener.of(({ view }) => {
    const now = view.dom.querySelector(".cm-search") !== null;
    if (searching && !now) view.scrollDOM.scrollLeft = 0;
    searching = now;
  });
}

// Scroll so that a line is in sight, unless it is.
function reveal({ EditorView }, editor, line) {
  const { scrollDOM, state } = editor;
  const top = editor.lineBlockAtHeight(scrollDOM.scrollTop).from, bottom = editor.lineBlockAtHeight(scrollDOM.scrollTop + scrollDOM.clientHeight).from;
  const first = state.doc.lineAt(top).number, last = state.doc.lineAt(bottom).number;
  if (first < line && line < last) return;
  editor.dispatch({ effects: EditorView.scrollIntoView(state.doc.line(line).from, { y: "center" }) });
}

// Where each line begins.
function startsOf(text) {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}

// The lines of both texts in one list, each with its sign; "~" for equal lines that are left out.
function unified(a, b, changes, equal) {
  const lines = [];
  const same = (from, to, first, last) => {
    if (equal || to - from <= 2 * CONTEXT) { for (let i = from; i < to; i++) lines.push([" ", b[i]]); return; }
    for (let i = from; !first && i < from + CONTEXT; i++) lines.push([" ", b[i]]);
    const shown = (first ? 0 : CONTEXT) + (last ? 0 : CONTEXT);
    lines.push(["~", `\u2026 ${to - from - shown} equal lines`]);
    for (let i = to - CONTEXT; !last && i < to; i++) lines.push([" ", b[i]]);
  };
  let at = 0;
  changes.forEach(([aFirst, aEnd, bFirst, bEnd], number) => {
    same(at, bFirst, number === 0, false);
    for (let i = aFirst; i < aEnd; i++) lines.push(["-", a[i]]);
    for (let i = bFirst; i < bEnd; i++) lines.push(["+", b[i]]);
    at = bEnd;
  });
  same(at, b.length, !changes.length, true);
  return lines;
}

async function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

function part(name, className, attributes = {}) {
  const element = document.createElement(name);
  if (className) element.className = className;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function button(text, title, act) {
  const element = part("button", "", { type: "button", "aria-label": title, title });
  element.textContent = text;
  element.addEventListener("click", act);
  return element;
}
