// Words of the glossary: marked where they first occur in a section, explained on hover, focus and tap.
//
// The section #glossary has all words and their meanings. One box shows a meaning to the eye; screen
// readers read a copy of it as the mark's description, as browsers read nothing in a folded section.
"use strict";

const SKIPPED = "a, button, code, h1, h2, h3, h4, label, summary, svg, table, #explorer, #glossary, #methods-text, [role=tablist]";
const LINGER = 200;  // milliseconds in which the pointer can reach the box

const meanings = new Map();
for (const name of document.querySelectorAll("#glossary dt"))
  for (const form of name.dataset.forms.split("|")) meanings.set(form.toLowerCase(), name.nextElementSibling);

function findWords() {
  const forms = [...meanings.keys()].sort((a, b) => b.length - a.length)
    .map((form) => form.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`(?<![\\p{L}\\p{N}_-])(?:${forms.join("|")})(?![\\p{L}\\p{N}_-])`, "giu");
}

const copies = Object.assign(document.createElement("div"), { hidden: true });

function describe(meaning) {
  const id = `says-${meaning.id}`;
  if (!copies.querySelector(`#${id}`))
    copies.append(Object.assign(document.createElement("span"), { id, textContent: meaning.textContent }));
  return id;
}

function makeMark(word, meaning) {
  const mark = Object.assign(document.createElement("button"),
    { type: "button", className: "term", textContent: word });
  mark.setAttribute("aria-describedby", describe(meaning));
  return mark;
}

// Mark each meaning once below an element.
function markWords(section, words) {
  const walker = document.createTreeWalker(section, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, (node) =>
    node.nodeType === Node.TEXT_NODE ? NodeFilter.FILTER_ACCEPT
      : node.matches(SKIPPED) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_SKIP);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  const seen = new Set();
  for (const text of texts) {
    const parts = [];
    let end = 0;
    for (const found of text.data.matchAll(words)) {
      const meaning = meanings.get(found[0].toLowerCase());
      if (seen.has(meaning)) continue;
      seen.add(meaning);
      parts.push(text.data.slice(end, found.index), makeMark(found[0], meaning));
      end = found.index + found[0].length;
    }
    if (parts.length) text.replaceWith(...parts, text.data.slice(end));
  }
}

const box = Object.assign(document.createElement("div"), { className: "tip term-box", hidden: true });
box.setAttribute("aria-hidden", "true");  // the description says the same
let shown = null, closing = 0;

function hideMeaning() {
  clearTimeout(closing);
  box.hidden = true;
  shown = null;
}

function showMeaning(mark) {
  clearTimeout(closing);
  if (shown === mark) return;
  shown = mark;
  const meaning = document.getElementById(mark.getAttribute("aria-describedby").slice("says-".length));
  const name = Object.assign(document.createElement("strong"), { textContent: meaning.previousElementSibling.textContent });
  box.replaceChildren(name, ` – ${meaning.textContent}`);
  box.hidden = false;
  // Below the word, or above it where there is no room; never beyond the window's sides.
  const word = mark.getBoundingClientRect(), size = box.getBoundingClientRect();
  const width = document.documentElement.clientWidth;
  const above = word.bottom + size.height + 4 > innerHeight && word.top > size.height + 4;
  box.style.left = `${Math.max(4, Math.min(word.left, width - size.width - 4)) + scrollX}px`;
  box.style.top = `${(above ? word.top - size.height - 2 : word.bottom + 2) + scrollY}px`;
}

function hideSoon() {
  clearTimeout(closing);
  closing = setTimeout(() => { if (document.activeElement !== shown) hideMeaning(); }, LINGER);
}

if (meanings.size) {
  const words = findWords();
  for (const section of document.querySelectorAll("main > section:not(#glossary)")) markWords(section, words);
  document.body.append(copies, box);
  const markOf = (event) => event.target.closest?.(".term");
  document.addEventListener("pointerover", (event) => {
    const mark = markOf(event);
    if (mark) showMeaning(mark);
    else if (box.contains(event.target)) clearTimeout(closing);
    else if (shown) hideSoon();
  });
  document.addEventListener("focusin", (event) => { if (markOf(event)) showMeaning(markOf(event)); });
  document.addEventListener("focusout", (event) => { if (markOf(event)) hideMeaning(); });
  document.addEventListener("click", (event) => {
    if (markOf(event)) showMeaning(markOf(event));
    else if (!box.contains(event.target)) hideMeaning();
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideMeaning(); });
}
