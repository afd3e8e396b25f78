// Follows runs: fetches the page again as long as it says so, and changes what differs, so that nothing that the reader
// has opened, chosen or scrolled to is lost.
"use strict";

const main = () => document.querySelector("main");

function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeName !== fresh.nodeName || !old.childNodes.length || old.childNodes.length !== fresh.childNodes.length) {
    old.replaceWith(fresh);
    return;
  }
  for (const { name, value } of fresh.attributes) if (name !== "open") old.setAttribute(name, value);
  [...old.childNodes].forEach((child, place) => morph(child, [...fresh.childNodes][place]));
}

async function follow() {
  const started = performance.now();
  if (!document.hidden) {
    try {
      const answer = await fetch(location.href);
      if (!answer.ok) throw new Error(answer.status);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const ticked = [...document.querySelectorAll("main input:checked")].map(input => input.id);
      morph(main(), document.importNode(fresh.querySelector("main"), true));
      ticked.forEach(id => { if (document.getElementById(id)) document.getElementById(id).checked = true; });
      document.body.classList.remove("lost");
    } catch {
      document.body.classList.add("lost"); // the server has ended, or is not reached
    }
  }
  if (main().dataset.live) setTimeout(follow, 3000 + 4 * (performance.now() - started)); // most of the time is others'
}

document.addEventListener("change", event => {
  const { target } = event;
  if (target.form?.classList.contains("at-once") && target.tagName === "SELECT") target.form.requestSubmit();
  if (target.classList.contains("all"))
    target.closest(target.dataset.of).querySelectorAll("input[name=run]").forEach(box => { box.checked = target.checked; });
  if (target.name === "theme") localStorage.setItem("theme", target.id);
});

const theme = document.getElementById(localStorage.getItem("theme"));
if (theme) theme.checked = true;
if (main().dataset.live) setTimeout(follow, 3000);
