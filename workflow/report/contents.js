// The contents beside the page, sections that fold, maps as tabs, light and dark.
//
// Without scripts, and on paper, everything is open. Folded parts are hidden "until found": the
// browser's search and links into them open them.
"use strict";

const FOLDED = "until-found";
const main = document.getElementById("main");

function setFolded(section, folded) {
  const body = section.querySelector(":scope > .body");
  if (!body) return;
  if (folded) body.setAttribute("hidden", FOLDED);
  else body.removeAttribute("hidden");
  section.classList.toggle("folded", folded);
  section.querySelector("h2 button").setAttribute("aria-expanded", String(!folded));
}

function makeFolding(section) {
  const heading = section.querySelector(":scope > h2");
  if (!heading) return;
  const body = document.createElement("div");
  body.className = "body";
  while (heading.nextSibling) body.append(heading.nextSibling);
  section.append(body);
  const button = Object.assign(document.createElement("button"), { type: "button", className: "fold" });
  button.append(...heading.childNodes);
  heading.append(button);
  button.addEventListener("click", () => setFolded(section, !section.classList.contains("folded")));
  body.addEventListener("beforematch", () => setFolded(section, false));
  setFolded(section, true);
}

// Show one of the figures of a method, or of the parts of a section, and mark its tab.
function chooseTab(tabs, figure) {
  for (const other of tabs.querySelectorAll(":scope > [data-tab]")) {
    const chosen = other === figure;
    if (chosen) other.removeAttribute("hidden");
    else other.setAttribute("hidden", FOLDED);
    const tab = document.getElementById(`tab-${other.id}`);
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
  }
}

function makeTabs(tabs) {
  const figures = [...tabs.querySelectorAll(":scope > [data-tab]")];
  if (figures.length < 2) return;
  const list = document.createElement("div");
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", tabs.getAttribute("aria-label"));
  for (const figure of figures) {
    const tab = Object.assign(document.createElement("button"),
      { type: "button", id: `tab-${figure.id}`, textContent: figure.dataset.tab });
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", figure.id);
    tab.addEventListener("click", () => chooseTab(tabs, figure));
    figure.setAttribute("role", "tabpanel");
    figure.setAttribute("aria-labelledby", tab.id);
    figure.addEventListener("beforematch", () => chooseTab(tabs, figure));
    list.append(tab);
  }
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = figures.findIndex((figure) => !figure.hasAttribute("hidden"));
    const next = figures[(at + step + figures.length) % figures.length];
    chooseTab(tabs, next);
    document.getElementById(`tab-${next.id}`).focus();
    event.preventDefault();
  });
  figures[0].before(list);
  chooseTab(tabs, figures[0]);
}

// Open whatever hides an element.
function reveal(element) {
  const section = element.closest("main > section");
  if (section) setFolded(section, false);
  for (let part = element.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
  let figure = element.closest(".tabs > [data-tab]");
  while (figure) {
    if (document.getElementById(`tab-${figure.id}`)) chooseTab(figure.parentElement, figure);
    figure = figure.parentElement.closest(".tabs > [data-tab]");
  }
}

// The element that the address names; a map's permalink names none.
function target() {
  const name = decodeURIComponent(location.hash.slice(1));
  return name && !name.includes("=") ? document.getElementById(name) : null;
}

function followLink() {
  const element = target();
  if (!element || !main.contains(element)) return;
  reveal(element);
  element.scrollIntoView();
}

for (const section of main.querySelectorAll(":scope > section:not(.open)")) makeFolding(section);
for (const tabs of main.querySelectorAll(".tabs")) makeTabs(tabs);
addEventListener("hashchange", followLink);
// A link to where one already is changes no address.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#']");
  if (link && link.hash === location.hash) followLink();
});
followLink();

const unfold = document.getElementById("unfold");
unfold.hidden = false;
unfold.addEventListener("click", () => {
  const open = unfold.textContent === "Open all";
  for (const section of main.querySelectorAll(":scope > section:not(.open)")) setFolded(section, !open);
  unfold.textContent = open ? "Fold all" : "Open all";
});

// Mark the section that is being read.
const entries = new Map([...document.querySelectorAll("nav a")]
  .map((link) => [document.getElementById(link.hash.slice(1)), link]));
const onScreen = new Set();
function markSection() {
  // At the end of the page a short section cannot reach the top: the one that was linked counts.
  const page = document.documentElement;
  const end = page.scrollHeight - page.clientHeight - Math.ceil(scrollY) <= 1;
  const linked = document.getElementById(location.hash.slice(1));
  const inView = entries.has(linked) && linked.getBoundingClientRect().top >= 0;
  const first = end && inView ? linked : [...entries.keys()].find((section) => onScreen.has(section));
  for (const [section, link] of entries) {
    if (section === first) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}
const watch = new IntersectionObserver((changes) => {
  for (const change of changes) {
    if (change.isIntersecting) onScreen.add(change.target);
    else onScreen.delete(change.target);
  }
  markSection();
}, { rootMargin: "-10% 0px -60% 0px" });
addEventListener("scroll", markSection, { passive: true });
addEventListener("hashchange", () => requestAnimationFrame(markSection));
for (const section of entries.keys()) if (section) watch.observe(section);

for (const button of document.querySelectorAll("[data-copies]")) {
  const text = document.getElementById(button.dataset.copies);
  button.hidden = false;
  button.addEventListener("click", () => {
    // A selection can be copied also where a page opened from a file may not use the clipboard.
    getSelection().selectAllChildren(text);
    document.execCommand("copy");
    getSelection().removeAllRanges();
    button.textContent = "Copied";
  });
}

// What is folded within a caption is printed, too.
const unfolded = new Set();
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("main details:not([open])")) {
    part.open = true;
    unfolded.add(part);
  }
});
addEventListener("afterprint", () => {
  for (const part of unfolded) part.open = false;
  unfolded.clear();
});

// On narrow screens figures scroll sideways (page.css), with the keyboard, too.
const narrow = matchMedia("(max-width: 40rem)");
function makeScrollable() {
  for (const picture of document.querySelectorAll(".picture"))
    if (narrow.matches) picture.tabIndex = 0;
    else picture.removeAttribute("tabindex");
}
narrow.addEventListener("change", makeScrollable);
makeScrollable();

const theme = document.getElementById("theme");
if (CSS.supports("color", "light-dark(#000, #fff)")) {
  const dark = () => document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const name = () => { theme.textContent = dark() ? "Light" : "Dark"; };
  theme.hidden = false;
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    name();
  });
  name();
}
