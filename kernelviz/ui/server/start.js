// Runs before Streamlit's own script, while the browser reads the HTML page.

(() => {
  // Streamlit would otherwise look for its server below the path of the page first (/roofline/_stcore/health), which is a 404.
  const root = new URL("..", document.currentScript.src);
  // It would also ask for its configuration before it opens its WebSocket, and wait behind all scripts. With the part that it needs
  // first, it opens the WebSocket at once and asks later. Only this server's own pages may send it messages.
  const HOST_CONFIG = { allowedOrigins: [root.origin], useExternalAuthToken: false };
  window.__streamlit = { ...window.__streamlit, BACKEND_BASE_URL: root.href, HOST_CONFIG };

  // Streamlit writes a link to Bench as "?run=…". A browser would resolve it against the present page when it copies the link or
  // opens it in a new tab, so it gets its whole address as soon as somebody points at it or reaches it by keyboard.
  const complete = (event) => {
    const link = event.target instanceof Element ? event.target.closest('a[href^="?"]') : null;
    if (link) link.setAttribute("href", new URL(link.getAttribute("href"), root).href);
  };
  for (const kind of ["pointerover", "pointerdown", "focusin"]) {
    document.addEventListener(kind, complete, { capture: true, passive: true });
  }

  // A list of links (kernelviz/ui/gallery/links.py) is plain HTML. Its links open as Streamlit's own do, within the loaded page:
  // Streamlit draws the page of the address when the browser reports a step in its history. What a button of the list shows is at
  // the top of the page.
  document.addEventListener("click", (event) => {
    if (!(event.target instanceof Element)) return;
    if (event.target.closest('[class*="st-key-charts_of_"] button')) document.querySelector("[data-testid=stMain]")?.scrollTo(0, 0);
    const link = event.target.closest('[data-testid=stHtml] a[href*="run="]');
    if (!link || link.origin !== location.origin || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    history.pushState(null, "", new URL(link.getAttribute("href"), root));
    dispatchEvent(new PopStateEvent("popstate"));
  });

  // The page Bench has a form at its left, which arrives from the server after the first elements. Its space is kept free until
  // then (pages.css), so that nothing moves.
  const page = location.pathname.slice(root.pathname.length).replace(/\/+$/, "");
  if (page !== "" && page !== "bench") return;
  const html = document.documentElement;
  html.classList.add("awaits-form");
  const arrival = new MutationObserver(() => {
    if (document.querySelector("[data-testid=stSidebar]")) ended();
  });
  const ended = () => {
    arrival.disconnect();
    html.classList.remove("awaits-form");
  };
  arrival.observe(html, { childList: true, subtree: true });
  setTimeout(ended, 20000);
})();
