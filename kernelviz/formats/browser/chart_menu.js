// A button of a chart that opens a menu: by click, touch or keyboard (Enter, Space, arrows, Escape). Stands before chart.js.

// `items`: name and label of each action. `use(name)` is called with the chosen one.
class Menu {
  #use;
  #list = document.createElement("div");
  #outside = (event) => { if (!this.place.contains(event.target)) this.close(); };

  constructor(label, title, items, use) {
    this.#use = use;
    this.place = document.createElement("div");
    this.place.className = "chart-menu-place";
    this.label = `${label} \u25be`;
    this.button = toolButton(this.label, title, () => (this.#list.hidden ? this.#open() : this.close()));
    this.button.setAttribute("aria-haspopup", "menu");
    this.button.setAttribute("aria-expanded", "false");
    this.#list.className = "chart-menu";
    this.#list.hidden = true;
    this.#list.setAttribute("role", "menu");
    this.#list.setAttribute("aria-label", title);
    for (const [name, text] of items) {
      const item = toolButton(text, "", () => this.#choose(name));
      item.className = "chart-menu-item";
      item.dataset.tool = name;
      item.tabIndex = -1;
      item.setAttribute("role", "menuitem");
      this.#list.append(item);
    }
    this.place.append(this.button, this.#list);
    this.place.addEventListener("keydown", (event) => this.#key(event));
    this.place.addEventListener("focusout", (event) => {
      if (event.relatedTarget && !this.place.contains(event.relatedTarget)) this.close();
    });
  }

  // Which actions are offered; a menu without any is not shown.
  offer(names) {
    for (const item of this.#list.children) item.hidden = !names.includes(item.dataset.tool);
    this.place.hidden = this.button.hidden = !names.length;
  }

  // Shows that an action was done, for a moment.
  done(text) {
    this.button.textContent = text;
    setTimeout(() => { this.button.textContent = this.label; }, 1500);
  }

  close() {
    this.#list.hidden = true;
    this.button.setAttribute("aria-expanded", "false");
    document.removeEventListener("pointerdown", this.#outside, true);
  }

  #items() {
    return [...this.#list.children].filter((item) => !item.hidden);
  }

  #open() {
    this.#list.hidden = false;
    this.button.setAttribute("aria-expanded", "true");
    document.addEventListener("pointerdown", this.#outside, true);
    this.#items()[0]?.focus();
  }

  #choose(name) {
    this.close();
    this.button.focus();
    this.#use(name);
  }

  #key(event) {
    const open = !this.#list.hidden, items = this.#items(), at = items.indexOf(document.activeElement);
    if (event.key === "Escape" && open) {
      this.close();
      this.button.focus();
    } else if (event.key === "ArrowDown" && !open) this.#open();
    else if (event.key === "Tab" && open) { this.close(); return; }
    else if (open && ["ArrowDown", "ArrowUp", "Home", "End"].includes(event.key)) {
      const to = { ArrowDown: at + 1, ArrowUp: at - 1 + items.length, Home: 0, End: items.length - 1 }[event.key];
      items[to % items.length].focus();
    } else if (!(open && ["ArrowLeft", "ArrowRight"].includes(event.key))) return;
    event.preventDefault();
    event.stopPropagation();
  }
}

function toolButton(sign, title, act) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "chart-tool";
  if (title) {
    button.title = title;
    button.setAttribute("aria-label", title);
  }
  button.textContent = sign;
  button.addEventListener("click", act);
  return button;
}

// Text to the clipboard, also on a page without HTTPS, where browsers offer the old way only.
async function copyText(text) {
  if (navigator.clipboard?.writeText) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea"), before = document.activeElement;
  area.value = text;
  area.style.cssText = "position:fixed;opacity:0";
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  before?.focus();
  if (!copied) throw new Error("the browser does not allow this page to use the clipboard");
}
