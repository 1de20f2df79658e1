// Runs before Streamlit's own script, while the browser reads the HTML page.

(() => {
  // Streamlit would otherwise look for its server below the path of the page first (/roofline/_stcore/health), which is a 404.
  const root = new URL("..", document.currentScript.src);
  window.__streamlit = { ...window.__streamlit, BACKEND_BASE_URL: root.href };

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
