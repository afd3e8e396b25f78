// Follows runs: fetches the page again as long as it says so, and replaces what it shows. Chosen runs stay chosen, and what is open stays open.
"use strict";

const main = () => document.querySelector("main");

async function follow() {
  const started = performance.now();
  if (!document.hidden) {
    try {
      const answer = await fetch(location.href);
      if (!answer.ok) throw new Error(answer.status);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const ticked = [...document.querySelectorAll("main input:checked")].map(input => input.id);
      const open = [...document.querySelectorAll("main details[open]")].map(one => one.id);
      main().replaceWith(document.importNode(fresh.querySelector("main"), true));
      ticked.forEach(id => { if (document.getElementById(id)) document.getElementById(id).checked = true; });
      open.forEach(id => { if (document.getElementById(id)) document.getElementById(id).open = true; });
      document.body.style.opacity = 1;
    } catch {
      document.body.style.opacity = 0.5; // the server has ended, or is not reached
    }
  }
  if (main().dataset.live) setTimeout(follow, 3000 + 4 * (performance.now() - started)); // most of the time is others'
}

if (main().dataset.live) setTimeout(follow, 3000);
