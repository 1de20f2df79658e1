// The Streamlit component of the tools of every page (page_tools.py): theme, keyboard shortcuts, order of the Tab key.

const OFF = "kernelviz-shortcuts-off", THEME = "kernelviz-theme";  // in localStorage
// Icons are names of the font that Streamlit brings.
const THEMES = [["Light", "light_mode", "Light theme"], ["Dark", "dark_mode", "Dark theme"], ["System", "contrast", "Theme of the system"]];
const PHONE = "(max-width: 768px)";  // where Streamlit hides its navigation
// The Tab key takes these areas one after another. In the document, the form stands before the navigation.
const AREAS = ["[data-testid=stSkipToContent]", ".st-key-phone_nav", "[data-testid=stHeader]", ".st-key-page_tools",
  "[data-testid=stSidebar]", "[data-testid=stMain]"];
const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex]";
let tools = null;  // the newest ones; a page that is drawn anew may replace their elements

const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const visible = (e) => e.getClientRects().length > 0 && getComputedStyle(e).visibility === "visible";

// ---- theme

const chosenTheme = () => localStorage.getItem(THEME) ?? "System";
const streamlitKey = (path) => `stActiveTheme-${path}-v2`;

// Streamlit keeps the theme for each path, and reads it when a page is loaded. Its own menu, which is hidden, changes it in place.
async function setTheme(name) {
  localStorage.setItem(THEME, name);
  for (const path of [location.pathname, ...tools.data.paths]) localStorage.setItem(streamlitKey(path), JSON.stringify(name));
  showTheme();
  const menu = document.querySelector("[data-testid=stMainMenuButton]"), focused = document.activeElement;
  menu?.click();
  await new Promise((done) => setTimeout(done));
  const item = document.querySelector(`[data-testid=stMainMenuItem-theme-${name}]`);
  if (!item) { location.reload(); return; }
  item.click();
  menu.click();
  await new Promise((done) => setTimeout(done));
  focused?.focus({ preventScroll: true });
}

function showTheme() {
  for (const input of all(".theme input", tools.root)) input.checked = input.value === chosenTheme();
}

function nextTheme() {
  const now = THEMES.findIndex(([name]) => name === chosenTheme());
  setTheme(THEMES[(now + 1) % THEMES.length][0]);
}

function buildThemes(box) {
  if (box.querySelector("input")) return;
  for (const [name, icon, text] of THEMES) {
    const label = document.createElement("label"), input = document.createElement("input"), picture = document.createElement("span");
    Object.assign(input, { type: "radio", name: "kernelviz-theme", value: name });
    input.setAttribute("aria-label", text);
    input.addEventListener("change", () => setTheme(name));
    picture.setAttribute("aria-hidden", "true");
    picture.textContent = icon;
    label.title = text;
    label.append(input, picture);
    box.append(label);
  }
}

// ---- shortcuts

const ACTIONS = {
  list: () => (tools.dialog.open ? tools.dialog.close() : tools.dialog.showModal()),
  theme: nextTheme,
  press: (selector) => { const target = all(selector).find((e) => !e.disabled); target?.click(); return Boolean(target); },
  focus: (selector) => { const target = all(selector).find(visible); target?.focus(); return Boolean(target); },
  open: (path) => {
    const links = all("[data-testid=stTopNavLink], .st-key-phone_nav a");
    links.find((a) => new URL(a.href).pathname === path)?.click();
  },
};

function actionOf(key) {
  for (const { shortcuts } of tools.data.groups) {
    for (const { keys, action, target } of shortcuts) {
      const n = keys.indexOf(key);
      if (n >= 0) return () => ACTIONS[action](target.replace("{n}", n + 1));
    }
  }
  return null;
}

function isTyping(event) {
  const target = event.composedPath()[0];
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || (target.matches("input, textarea, select") && !target.matches("[type=checkbox], [type=radio]"));
}

function onKey(event) {
  if (!tools?.root.isConnected || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.key === "Tab") { onTab(event); return; }
  if (isTyping(event) || event.repeat || event.key.length !== 1) return;
  const listed = event.key === "?", action = actionOf(event.key);
  if (!action) return;
  const busy = all("dialog[open], [role=dialog], [role=listbox], [role=menu]").some(visible);
  if (!listed && (busy || localStorage.getItem(OFF))) return;
  event.preventDefault();
  event.stopPropagation();  // Streamlit reads "r" as a wish to draw the page again
  action();
}

function buildList(box, groups) {
  box.replaceChildren(...groups.flatMap(({ name, shortcuts }) => {
    const heading = document.createElement("div"), list = document.createElement("dl");
    heading.className = "group";
    heading.textContent = name;
    for (const { keys, text } of shortcuts) {
      const key = document.createElement("dt"), what = document.createElement("dd");
      key.textContent = keys.length > 1 ? `${keys[0]} \u2013 ${keys.at(-1)}` : keys;
      what.textContent = text;
      list.append(key, what);
    }
    return [heading, list];
  }));
}

// ---- the Tab key

function stopsOf(root) {
  const own = all(FOCUSABLE, root).concat(root.matches("a[href]") ? [root] : []);
  const inner = root.matches("[data-testid=stMain]") ? ".st-key-page_tools, .st-key-phone_nav" : null;
  const one = (e) => e.type !== "radio" || e.checked || !all(`input[name="${CSS.escape(e.name)}"]:checked`).length;
  return own.filter((e) => e.tabIndex >= 0 && !e.disabled && visible(e) && one(e) && !e.closest("[inert]") && !(inner && e.closest(inner)));
}

function onTab(event) {
  const active = document.activeElement, back = event.shiftKey;
  const roots = AREAS.map((selector) => document.querySelector(selector));
  const at = roots.findIndex((root) => root?.contains(active));
  if (at < 0) return;
  const own = stopsOf(roots[at]), step = back ? -1 : 1;
  if (active === roots[at] && !back && own[0] && own[0] !== active) {  // after "Skip to main content"
    event.preventDefault();
    own[0].focus();
    return;
  }
  if (active !== (back ? own[0] : own.at(-1))) return;
  for (let next = at + step; next >= 0 && next < roots.length; next += step) {
    const stops = roots[next] ? stopsOf(roots[next]) : [];
    if (!stops.length) continue;
    event.preventDefault();
    stops.at(back ? -1 : 0).focus();
    return;
  }
}

// ---- phone

// The form covers a phone's whole window: Run shows the page that it fills.
function onClick(event) {
  if (!matchMedia(PHONE).matches || !event.target.closest?.(".st-key-run button")) return;
  setTimeout(() => document.querySelector("[data-testid=stSidebarCollapseButton] button")?.click(), 300);
}

// The bar is drawn after the tools. Bring the link of the open page into sight, and say which one it is.
function showBar(attempts = 120) {
  const bar = document.querySelector(".st-key-phone_nav"), links = bar ? all("a", bar) : [];
  if (links.length < tools.data.paths.length) {
    if (attempts > 0) requestAnimationFrame(() => showBar(attempts - 1));
    return;
  }
  bar.setAttribute("role", "navigation");
  bar.setAttribute("aria-label", "Pages");
  const here = links[tools.data.present];  // none on a page that does not exist
  for (const link of links) link === here ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  if (!here) return;
  const { left, width } = here.getBoundingClientRect(), box = bar.getBoundingClientRect();
  bar.scrollLeft += left - box.left - (box.width - width) / 2;
}

// Before Streamlit's own listeners.
addEventListener("keydown", onKey, { capture: true });
addEventListener("click", onClick, { capture: true });

export function mount({ data, parentElement }) {
  const root = parentElement, on = root.querySelector(".on"), first = tools === null;
  tools = { data, root, dialog: root.querySelector("dialog") };
  buildThemes(root.querySelector(".theme"));
  showTheme();
  buildList(root.querySelector(".groups"), data.groups);
  root.querySelector(".keys").onclick = ACTIONS.list;
  on.checked = !localStorage.getItem(OFF);
  on.onchange = () => (on.checked ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "1"));
  showBar();
  // A path that Streamlit has not seen yet, for example with a slash at its end.
  const stored = localStorage.getItem(streamlitKey(location.pathname));
  if (first && stored !== null && stored !== JSON.stringify(chosenTheme()) && localStorage.getItem(THEME)) setTheme(chosenTheme());
}
