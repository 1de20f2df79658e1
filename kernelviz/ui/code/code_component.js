// The Streamlit component that shows code. It is served together with code_view.js, which defines CodeView.

let library;  // CodeMirror, loaded once a page
const shown = new WeakMap();  // the view of each parent element, which a redraw keeps

function load(url) {
  library ??= new Promise((done, failed) => {
    if (globalThis.CodeMirror) return done(globalThis.CodeMirror);
    // The HTML page of the page Code names the script already; from another page one comes here without it.
    const named = [...document.scripts].find((script) => script.getAttribute("src") === url && !script.dataset.failed);
    const script = named ?? document.createElement("script");
    script.addEventListener("load", () => done(globalThis.CodeMirror));
    script.addEventListener("error", () => { library = undefined; script.dataset.failed = "yes"; failed(new Error(`its script could not be loaded (${url})`)); });
    if (named) return undefined;
    script.src = url;
    document.head.append(script);
    return undefined;
  });
  return library;
}

export function mount({ data, parentElement }) {
  let one = shown.get(parentElement);
  if (!one) {
    const box = parentElement.querySelector(".code-box");
    one = { box, view: null, given: null };
    shown.set(parentElement, one);
    load(data.library).then((loaded) => {
      one.view = new CodeView(box, loaded);
      return one.view.draw(one.given);
    }).catch((error) => { box.textContent = `The code cannot be shown: ${error.message}`; });
  }
  one.box.style.height = `${data.height}px`;
  one.given = data;
  one.view?.draw(data);
  return () => setTimeout(() => {
    if (parentElement.isConnected) return;
    one.view?.remove();
    shown.delete(parentElement);
  });
}
