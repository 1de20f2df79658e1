// The script of the offline page of code. code_view.js, which defines CodeView, stands before it in the file.
(async () => {
  const at = (id) => document.getElementById(id);
  const box = at("view");
  try {
    // The page's content security policy contains the hash of this script, so no other script can run.
    const script = document.createElement("script");
    script.textContent = await unpack(at("codemirror").textContent);
    document.head.append(script);
    if (typeof CodeMirror === "undefined") throw new Error("the library did not start");
    const view = new CodeView(at("code"), CodeMirror);
    const show = () => view.draw({ packed: at(`view-${box.value}`).textContent, alt: box.selectedOptions[0].textContent });
    box.addEventListener("change", show);
    at("choice").hidden = box.options.length < 2;
    await show();
  } catch (error) {
    at("without").hidden = false;
    at("why").textContent = String(error);
  }
})();
