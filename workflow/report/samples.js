// The table of all samples: sorted by a column, filtered by a text, shown page by page.
"use strict";

const SAMPLE_ROWS = 50;
// On paper all rows are shown, if there are no more than these.
const PAPER_ROWS = 500;
// Columns that are shown at first, besides the cohort and the column that colours the maps.
const MAIN_COLUMNS = ["sex", "call rate", "heterozygosity", "F_ROH", "community", "ancestry",
  "closest relative", "newcomer shift"];

class SampleTable {
  constructor(root, data) {
    this.root = root;
    this.data = data;
    const names = { name: "sample", samples: true };
    const main = ["cohort", data.colourBy, ...MAIN_COLUMNS];
    const shown = main.map((name) => data.column(name)).filter(Boolean);
    const first = shown.filter((column, k) => shown.indexOf(column) === k);
    this.columns = [names, ...first, ...data.columns.filter((column) => !first.includes(column))];
    this.brief = first.length + 1;
    this.order = Uint32Array.from({ length: data.n }, (_, i) => i);
    this.kept = this.order;
    this.page = 0;
    this.part = (name) => root.querySelector(`[data-part="${name}"]`);
    this.part("filter").addEventListener("input", () => this.filter());
    this.part("all").addEventListener("click", () => this.toggleColumns());
    this.part("all").hidden = this.columns.length === this.brief;
    this.part("save").addEventListener("click", () => this.save());
    for (const [name, step] of [["earlier", -1], ["later", 1]]) {
      this.part(name).addEventListener("click", () => {
        this.page += step;
        this.draw();
        // A button that cannot be pressed any more would lose the focus.
        if (this.part(name).disabled) this.part(step > 0 ? "earlier" : "later").focus();
      });
    }
    addEventListener("beforeprint", () => this.draw(PAPER_ROWS));
    addEventListener("afterprint", () => this.draw());
    root.hidden = false;
    this.draw();
  }

  value(column, sample) {
    return column.samples ? this.data.name(sample) : this.data.value(column, sample);
  }

  // For each sample its place among the column's values; missing values have none.
  ranks(column) {
    const coded = !column.samples && !column.lines;
    const texts = coded ? column.values
      : Array.from({ length: this.data.n }, (_, i) => this.value(column, i));
    const order = Uint32Array.from(texts, (_, k) => k);
    order.sort((a, b) => compareTexts(texts[a], texts[b], false) || a - b);
    const ranks = new Float64Array(texts.length);
    order.forEach((k, place) => {
      const same = place && !compareTexts(texts[order[place - 1]], texts[k], false);
      ranks[k] = isUnknown(texts[k]) ? NaN : same ? ranks[order[place - 1]] : place;
    });
    if (!coded) return ranks;
    return Float64Array.from(this.data.codes(column), (code) => ranks[code]);
  }

  // Numbers are first sorted in descending order, because the largest are usually wanted.
  sort(column) {
    if (this.sorted === column) this.down = !this.down;
    else {
      const known = column.samples ? "" : column.values.find((value) => !isUnknown(value));
      this.down = Boolean(known) && !Number.isNaN(cellNumber(known));
    }
    this.sorted = column;
    const ranks = this.ranks(column), sign = this.down ? -1 : 1;
    this.order = Uint32Array.from({ length: this.data.n }, (_, i) => i);
    this.order.sort((a, b) => {
      const [x, y] = [ranks[a], ranks[b]];
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || a - b;
      return sign * (x - y) || a - b;
    });
    this.filter();
  }

  // Keep the samples of which a name or value contains the text, whatever its case.
  filter() {
    const wanted = this.part("filter").value.trim().toLowerCase();
    this.page = 0;
    if (!wanted) this.kept = this.order;
    else {
      const holds = (text) => text.toLowerCase().includes(wanted);
      const found = new Uint8Array(this.data.n);
      for (const column of this.columns) {
        if (column.samples || column.lines) {
          for (let i = 0; i < found.length; i++) if (!found[i]) found[i] = holds(this.value(column, i));
        } else {
          const values = Uint8Array.from(column.values, holds), codes = this.data.codes(column);
          for (let i = 0; i < found.length; i++) found[i] |= values[codes[i]];
        }
      }
      this.kept = this.order.filter((sample) => found[sample]);
    }
    this.draw();
  }

  toggleColumns() {
    this.all = !this.all;
    this.part("all").setAttribute("aria-pressed", String(this.all));
    this.draw();
  }

  draw(most = SAMPLE_ROWS) {
    const columns = this.all ? this.columns : this.columns.slice(0, this.brief);
    const every = this.kept.length <= most;
    const start = every ? 0 : this.page * SAMPLE_ROWS;
    const rows = every ? this.kept : this.kept.slice(start, start + SAMPLE_ROWS);
    const table = document.createElement("table");
    table.className = "compact";
    const head = table.createTHead().insertRow();
    for (const column of columns) {
      const cell = Object.assign(document.createElement("th"), { scope: "col" });
      const button = Object.assign(document.createElement("button"),
        { type: "button", className: "sort", textContent: column.name });
      button.addEventListener("click", () => {
        this.sort(column);
        this.part("rows").querySelectorAll("thead button")[columns.indexOf(column)].focus();
      });
      if (column === this.sorted) cell.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      cell.append(button);
      head.append(cell);
    }
    const body = table.createTBody();
    for (const sample of rows) {
      const row = body.insertRow();
      for (const column of columns) {
        const cell = document.createElement(column.samples ? "th" : "td");
        if (column.samples) cell.scope = "row";
        cell.textContent = this.value(column, sample);
        row.append(cell);
      }
    }
    this.part("rows").replaceChildren(table);
    this.part("earlier").disabled = !start;
    this.part("later").disabled = start + SAMPLE_ROWS >= this.kept.length;
    const { length } = this.kept;
    const of = length < this.data.n ? `${length} of ${this.data.n} samples` : `${length} samples`;
    const shown = length ? `${start + 1} to ${start + rows.length} of ${of}` : "No sample.";
    this.part("shown").textContent = shown;
    this.part("paper").textContent = every ? shown
      : `${shown}. All are in the sample sheet and in results/qc, and “Download TSV” of the page saves them.`;
  }

  save() {
    const header = this.columns.map((column) => column.name);
    const rows = Array.from(this.kept, (sample) => this.columns.map((column) => this.value(column, sample)));
    download(toTsv([header, ...rows]), "samples.tsv");
  }
}

function listSamples({ data }) {
  new SampleTable(document.getElementById("sample-table"), data);
}
