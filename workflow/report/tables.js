// Tables: click a heading to sort, download as TSV, filter long ones.
"use strict";

const LONG = 12; // rows above which a table gets a filter
// Of words, with numbers within them; made once, because a million names are compared with it.
const WORDS = new Intl.Collator("en", { numeric: true });

// The text of a cell for the TSV file, without thin spaces inside numbers.
function cellText(cell) {
  return cell.textContent.replace(/(\d)\u202f(?=\d)/g, "$1").replace(/\s+/g, " ").trim();
}

// A cell's number, or NaN: "1 234", "12.5 %", "< 0.1 %", "1.2e-05".
function cellNumber(text) {
  const match = /^[<>]?\s*([-+−]?\d[\d.]*(?:e[-+]?\d+)?)\s*%?$/i.exec(text);
  return match ? Number(match[1].replace("−", "-")) : NaN;
}

// Numbers before words; missing values last in either direction.
function compareTexts(a, b, down) {
  const [missingA, missingB] = [a, b].map((text) => text === "" || text === "NA");
  if (missingA || missingB) return missingA - missingB;
  const [x, y] = [cellNumber(a), cellNumber(b)];
  const [wordA, wordB] = [Number.isNaN(x), Number.isNaN(y)];
  let order = wordA - wordB;
  if (!order) order = wordA ? WORDS.compare(a, b) : x - y;
  return down ? -order : order;
}

function sortTable(table, column, down) {
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row, place) => ({ row, place, text: cellText(row.cells[column]) }));
  rows.sort((a, b) => compareTexts(a.text, b.text, down) || a.place - b.place);
  body.append(...rows.map(({ row }) => row));
  [...table.tHead.rows[0].cells].forEach((cell, k) => {
    if (k === column) cell.setAttribute("aria-sort", down ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
  });
}

// Rows of texts as TSV. A tab or a line break inside a text becomes a space.
function toTsv(rows) {
  return rows.map((row) => row.map((t) => String(t).replace(/[\t\r\n]+/g, " ")).join("\t"))
    .join("\n") + "\n";
}

function download(content, name, type = "text/tab-separated-values") {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

function tableName(table) {
  const title = table.closest("[aria-label]")?.getAttribute("aria-label") || "table";
  return `${title.toLowerCase().replace(/[^a-z0-9]+/g, "_").replace(/^_|_$/g, "")}.tsv`;
}

// Add sort buttons to a table, and tools for download and filtering.
function equipTable(table, tools = true) {
  if (!table.tHead || !table.tBodies[0] || !table.tBodies[0].rows.length) return;
  [...table.tHead.rows[0].cells].forEach((cell, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...cell.childNodes);
    cell.append(button);
    button.addEventListener("click", () => {
      const numbers = [...table.tBodies[0].rows].some((row) =>
        !Number.isNaN(cellNumber(cellText(row.cells[column]))));
      const sorted = cell.getAttribute("aria-sort");
      // Numbers are first sorted in descending order, because the largest are usually wanted.
      sortTable(table, column, sorted ? sorted === "ascending" : numbers);
    });
  });
  if (!tools) return;
  const bar = document.createElement("p");
  bar.className = "tools";
  const save = Object.assign(document.createElement("button"), { type: "button", textContent: "Download TSV" });
  save.addEventListener("click", () => download(
    toTsv([...table.rows].map((row) => [...row.cells].map(cellText))), tableName(table)));
  bar.append(save);
  if (table.querySelector(".more")) {
    const all = Object.assign(document.createElement("button"), { type: "button", textContent: "All columns" });
    all.setAttribute("aria-pressed", "false");
    table.classList.add("brief");
    all.addEventListener("click", () => {
      const brief = table.classList.toggle("brief");
      all.setAttribute("aria-pressed", String(!brief));
    });
    bar.append(all);
  }
  if (table.tBodies[0].rows.length > LONG) {
    const label = document.createElement("label");
    const input = Object.assign(document.createElement("input"), { type: "search" });
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase();
      for (const row of table.tBodies[0].rows) {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
      }
    });
    label.append("Filter rows: ", input);
    bar.append(label);
  }
  const box = table.closest(".scroll") || table;
  box.after(bar);
}

for (const table of document.querySelectorAll("main table")) {
  if (!table.closest("#explorer")) equipTable(table);
}
