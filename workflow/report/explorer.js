// Two linked maps: colours, legend, search, lasso and the list of selected samples.
"use strict";

const MOST_MATCHES = 12;    // samples that the search suggests
const MOST_POINTED = 10;    // columns beside the pointer; a click shows all
const MOST_LISTED = 200;    // rows of a page of selected samples; the downloaded file has all

class Explorer {
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.selected = new Selection(data.n);
    this.page = 0;
    this.hovered = -1;
    this.pinned = -1;
    const on = {
      hover: (sample, panel, event) => this.hover(sample, event),
      pick: (sample) => this.pin(sample),
      lasso: (samples, adding) => this.select(samples, adding),
      escape: () => { this.select([]); this.pin(-1); },
    };
    this.part = (name) => root.querySelector(`[data-part="${name}"]`);
    this.panels = [...root.querySelectorAll(".panel")].map((panel) => new MapPanel(panel, data, on));
    this.panels.forEach((panel, k) => {
      const wanted = data.maps.findIndex((map) => map.name === data.first[k]);
      panel.show(Math.max(0, wanted));
    });
    const colour = this.part("colour");
    data.columns.forEach((column, k) => colour.add(new Option(column.name, k)));
    colour.value = data.columns.findIndex((column) => column.name === data.colourBy);
    colour.addEventListener("change", () => this.recolour());
    // With a single cohort, shapes repeat the colours.
    if (!data.shapes.legend.length) this.part("shape").value = "label";
    this.part("shape").addEventListener("change", () => this.recolour());
    for (const tool of root.querySelectorAll("input[name=tool]")) {
      tool.addEventListener("change", () => this.setTool(tool.value));
    }
    this.setTool(root.querySelector("input[name=tool]:checked").value);
    this.part("copy").addEventListener("click", () => this.copy());
    this.part("save").addEventListener("click", () => this.save());
    this.part("clear").addEventListener("click", () => this.select([]));
    this.part("all").addEventListener("click", () => this.selectAll());
    for (const [name, step] of [["earlier", -1], ["later", 1]]) {
      this.part(name).addEventListener("click", () => this.turn(step));
    }
    this.part("unpin").addEventListener("click", () => this.pin(-1));
    this.part("picture").addEventListener("click", () => this.savePicture());
    this.part("link").addEventListener("click", () => this.copyLink());
    this.listenToSearch();
    addEventListener("beforeprint", () => this.panels.forEach((panel) => panel.toPaper()));
    addEventListener("afterprint", () => this.panels.forEach((panel) => panel.toScreen()));
    this.recolour();
    this.list();
    if (this.follow(location.hash)) this.recolour();
    addEventListener("hashchange", () => {
      if (this.follow(location.hash)) this.recolour();
    });
  }

  // --- links ---------------------------------------------------------------------------------

  // Show what a link names: maps, their axes, colour, shape and a sample. Whether it names anything.
  follow(hash) {
    if (!hash.includes("=")) return false;
    const wanted = new URLSearchParams(hash.slice(1));
    this.panels.forEach((panel, k) => {
      const [name, x, y] = (wanted.get(`map${k + 1}`) || "").split(",");
      const index = this.data.maps.findIndex((map) => map.name === name);
      if (index >= 0) panel.show(index, Number(x) || 0, Number(y) || 0);
    });
    const colour = this.data.columns.findIndex((column) => column.name === wanted.get("colour"));
    if (colour >= 0) this.part("colour").value = colour;
    if (wanted.get("shape") === "label") this.part("shape").value = "label";
    const pin = () => {
      const sample = wanted.get("sample") ? this.data.find(wanted.get("sample")) : -1;
      if (sample >= 0) this.pin(sample);
    };
    if (this.data.isReady(this.data.names)) pin();
    else this.data.load([this.data.names]).then(pin);
    this.root.scrollIntoView();
    return true;
  }

  // The address of what is shown now.
  link() {
    const parts = new URLSearchParams();
    this.panels.forEach((panel, k) => {
      const axes = [panel.controls.x.value, panel.controls.y.value];
      parts.set(`map${k + 1}`, [panel.map.name, ...axes].join(","));
    });
    parts.set("colour", this.column.name);
    if (this.byLabel) parts.set("shape", "label");
    if (this.pinned >= 0) parts.set("sample", this.data.name(this.pinned));
    return `${location.href.split("#")[0]}#${parts}`;
  }

  async copyLink() {
    const url = this.link();
    history.replaceState(null, "", url);
    await this.copyText(url, this.part("linked"), "The address bar has the link.");
  }

  setTool(tool) {
    for (const panel of this.panels) {
      panel.tool = tool;
      panel.canvas.classList.toggle("lasso", tool === "lasso");
    }
  }

  // --- colours -------------------------------------------------------------------------------

  recolour() {
    const column = this.data.columns[this.part("colour").value];
    const missing = [column, this.data.column("cohort")].filter((part) => !this.data.isReady(part));
    if (missing.length) {
      this.data.load(missing).then(() => this.recolour());
      return;
    }
    this.column = column;
    this.codes = this.data.codes(this.column);
    this.colours = this.data.colours(this.column);
    this.byLabel = this.part("shape").value === "label" && !this.column.scale;
    this.shapes = this.data.shapesOf(this.column, this.byLabel);
    const numbers = this.shapes.names.map((name) => SHAPE_NAMES.indexOf(name));
    this.shapeNumbers = new Uint8Array(this.data.n);
    for (let i = 0; i < this.data.n; i++) this.shapeNumbers[i] = numbers[this.shapes.codes[i]];
    this.drawLegend();
    this.paint();
    this.list();
  }

  paint() {
    if (!this.codes) return; // not loaded yet
    const marked = [...new Set([this.hovered, this.pinned])].filter((sample) => sample >= 0);
    const { colours, codes, shapes, shapeNumbers, selected } = this;
    const style = { colours, codes, shapes, shapeNumbers, selected, marked };
    for (const panel of this.panels) panel.paint(style);
  }

  // Values of the column with their numbers of samples; rare values that share a colour form one group.
  groups() {
    const counts = new Array(this.column.values.length).fill(0);
    for (const code of this.codes) counts[code]++;
    const folded = new Set(this.column.folded || []);
    const groups = [], other = { codes: new Set(), count: 0 }, unknown = { codes: new Set(), count: 0 };
    this.column.values.forEach((value, code) => {
      const into = isUnknown(value) ? unknown : folded.has(value) ? other : null;
      if (into) {
        into.codes.add(code);
        into.count += counts[code];
      } else if (counts[code]) {
        groups.push({ text: value, codes: new Set([code]), count: counts[code], code });
      }
    });
    if (other.count) {
      const [code] = other.codes;
      groups.push({ ...other, text: `other: ${this.column.others || other.codes.size} labels`, code });
    }
    if (unknown.count) {
      const [code] = unknown.codes;
      groups.push({ ...unknown, text: "not known", code });
    }
    return groups;
  }

  drawLegend() {
    const legend = this.part("legend");
    legend.replaceChildren(Object.assign(document.createElement("h3"), { textContent: this.column.name }));
    if (this.column.scale) {
      const [low, high] = this.column.scale;
      const bar = document.createElement("div");
      bar.className = "bar";
      bar.style.background = `linear-gradient(to right, ${this.data.ramp.join(", ")})`;
      const ends = document.createElement("div");
      ends.className = "ends";
      const texts = [low, (low + high) / 2, high].map((value) =>
        Object.assign(document.createElement("span"), { textContent: tickText(value) }));
      ends.append(...texts);
      legend.append(bar, ends);
    }
    const groups = this.column.scale
      ? this.groups().filter((group) => group.text === "not known") : this.groups();
    const rows = document.createElement("ul");
    for (const group of groups) {
      const button = Object.assign(document.createElement("button"), { type: "button", title: group.text });
      const marker = this.byLabel ? this.column.markers[group.code] : "s";
      button.append(swatch(this.colours[group.code], marker),
        Object.assign(document.createElement("span"), { className: "label", textContent: group.text }),
        ` (${group.count})`);
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", () => this.toggle(group, button));
      const row = document.createElement("li");
      row.append(button);
      rows.append(row);
    }
    legend.append(rows);
    if (this.data.shapes.legend.length && !this.byLabel) {
      legend.append(Object.assign(document.createElement("h3"), { textContent: "Shape: cohort" }));
      const shapes = document.createElement("ul");
      for (const [text, shape] of this.data.shapes.legend) {
        const row = document.createElement("li");
        row.className = "shape";
        row.append(swatch("#404040", shape),
          Object.assign(document.createElement("span"), { className: "label", textContent: text }));
        shapes.append(row);
      }
      legend.append(shapes);
    }
  }

  // Add the samples of a legend's row to the selection, or remove them from it.
  toggle(group, button) {
    const add = button.getAttribute("aria-pressed") === "false";
    const inGroup = Uint8Array.from(this.column.values, (_, code) => Number(group.codes.has(code)));
    for (let i = 0; i < this.data.n; i++) {
      if (inGroup[this.codes[i]]) this.selected.set(i, Number(add));
    }
    this.page = 0;
    button.setAttribute("aria-pressed", String(add));
    this.paint();
    this.list();
  }

  // --- one sample ----------------------------------------------------------------------------

  // Rows of the sample's columns as a definition list: all, or the first `most` and the coloured one.
  describe(sample, most = Infinity) {
    const rows = [];
    for (const [place, column] of this.data.columns.entries()) {
      if (place >= most && column !== this.column) continue;
      const value = this.data.value(column, sample);
      if (isUnknown(value)) continue;
      rows.push(Object.assign(document.createElement("dt"), { textContent: column.name }),
        Object.assign(document.createElement("dd"), { textContent: value }));
    }
    const list = document.createElement("dl");
    list.append(...rows);
    return [Object.assign(document.createElement("strong"), { textContent: this.data.name(sample) }), list];
  }

  hover(sample, event) {
    if (!this.data.isReady(this.data.names)) return;
    const tip = this.part("tip");
    if (sample !== this.hovered) {
      this.hovered = sample;
      tip.hidden = sample < 0;
      if (sample >= 0) tip.replaceChildren(...this.describe(sample, MOST_POINTED));
      this.paint();
    }
    if (sample < 0) return;
    const box = tip.getBoundingClientRect();
    const left = event.clientX + 16 + box.width > innerWidth
      ? event.clientX - 16 - box.width : event.clientX + 16;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + 12, innerHeight - box.height - 4))}px`;
  }

  pin(sample) {
    if (sample >= 0 && !this.data.isReady(this.data.names)) return;
    this.pinned = sample;
    this.part("card").hidden = sample < 0;
    if (sample >= 0) {
      this.part("pinned").replaceChildren(...this.describe(sample));
      for (const panel of this.panels) panel.reveal(sample);
    }
    this.paint();
  }

  // --- search --------------------------------------------------------------------------------

  matches(text) {
    return this.data.matches(text, MOST_MATCHES);
  }

  listenToSearch() {
    const input = this.part("find"), list = this.part("matches"), status = this.part("found");
    let found = [], at = -1;
    const close = () => {
      list.hidden = true;
      input.setAttribute("aria-expanded", "false");
      input.removeAttribute("aria-activedescendant");
    };
    const choose = (sample) => {
      input.value = this.data.name(sample);
      close();
      this.pin(sample);
    };
    const highlight = (next) => {
      at = next;
      [...list.children].forEach((row, k) => row.setAttribute("aria-selected", String(k === at)));
      if (at >= 0) input.setAttribute("aria-activedescendant", list.children[at].id);
    };
    input.addEventListener("input", () => {
      found = this.matches(input.value);
      list.replaceChildren(...found.map((sample, k) => {
        const row = Object.assign(document.createElement("li"),
          { textContent: this.data.name(sample), id: `match-${k}` });
        row.setAttribute("role", "option");
        row.addEventListener("pointerdown", (event) => { event.preventDefault(); choose(sample); });
        return row;
      }));
      status.textContent = input.value.trim() && !found.length ? "No sample has this name." : "";
      list.hidden = !found.length;
      input.setAttribute("aria-expanded", String(Boolean(found.length)));
      highlight(found.length ? 0 : -1);
    });
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !list.hidden && at >= 0) choose(found[at]);
      else if (event.key === "Escape") { close(); this.pin(-1); }
      else if (event.key === "ArrowDown" && found.length) highlight((at + 1) % found.length);
      else if (event.key === "ArrowUp" && found.length) highlight((at + found.length - 1) % found.length);
      else return;
      event.preventDefault();
    });
    input.addEventListener("blur", close);
    // Select all samples of a pasted list of names, separated by line breaks, tabs, commas or semicolons.
    input.addEventListener("paste", (event) => {
      const text = event.clipboardData.getData("text");
      if (!this.data.isReady(this.data.names)) return;
      const { places } = this.data;
      const names = text.split(/[\n\r\t,;]+/).map((name) => name.trim()).filter(Boolean);
      const known = names.filter((name) => places.has(name));
      if (names.length < 2 || !known.length) return;
      event.preventDefault();
      this.select(known.map((name) => places.get(name)));
      status.textContent = `${known.length} of ${names.length} names selected.`;
    });
  }

  // --- selection -----------------------------------------------------------------------------

  select(samples, adding = false) {
    if (!adding) this.selected.fill(0);
    this.selected.add(samples);
    this.afterSelecting();
  }

  selectAll() {
    this.selected.fill(1);
    this.afterSelecting();
  }

  afterSelecting() {
    this.page = 0;
    for (const button of this.part("legend").querySelectorAll("button")) {
      button.setAttribute("aria-pressed", "false");
    }
    this.paint();
    this.list();
  }

  chosen() {
    return this.selected.list();
  }

  rows(samples) {
    const header = ["sample", ...this.data.columns.map((column) => column.name)];
    return [header, ...samples.map((sample) =>
      [this.data.name(sample), ...this.data.columns.map((column) => this.data.value(column, sample))])];
  }

  list() {
    if (this.selected.size && !this.column) return; // not loaded yet
    const samples = this.chosen();
    const count = this.part("count");
    for (const name of ["copy", "save", "clear"]) this.part(name).disabled = !samples.length;
    this.part("listed").hidden = !samples.length;
    if (!samples.length) {
      count.textContent = "No sample is selected.";
      return;
    }
    let text = `${samples.length} of ${this.data.n} samples selected`;
    if (!this.column.scale) {
      const counts = new Uint32Array(this.column.values.length), seen = [];
      for (const sample of samples) {
        if (!counts[this.codes[sample]]++) seen.push(this.codes[sample]);
      }
      const most = seen.map((code) => [this.column.values[code], counts[code]])
        .sort((a, b) => b[1] - a[1]);
      const word = (value) => (isUnknown(value) ? "not known" : value === REST ? "other labels" : value);
      const named = most.slice(0, 8).map(([value, n]) => `${word(value)} ${n}`);
      text += `: ${named.join(", ")}${most.length > 8 ? " and others" : ""}`;
    }
    count.textContent = `${text}.`;
    const first = this.page * MOST_LISTED, listed = samples.slice(first, first + MOST_LISTED);
    const [header, ...rows] = this.rows(listed);
    const table = document.createElement("table");
    const head = table.createTHead().insertRow();
    for (const name of header) {
      const cell = Object.assign(document.createElement("th"), { textContent: name, scope: "col" });
      head.append(cell);
    }
    const body = table.createTBody();
    for (const values of rows) {
      const row = body.insertRow();
      for (const value of values) row.insertCell().textContent = value;
    }
    equipTable(table, false);
    this.part("rows").replaceChildren(table);
    this.part("pages").hidden = samples.length <= MOST_LISTED;
    this.part("earlier").disabled = !first;
    this.part("later").disabled = first + MOST_LISTED >= samples.length;
    this.part("more").textContent = samples.length > MOST_LISTED
      ? `Samples ${first + 1} to ${first + listed.length} of ${samples.length} are listed; `
        + "copy and download include all." : "";
  }

  // Show the next or previous page of the selected samples.
  turn(step) {
    this.page += step;
    this.list();
  }

  async copy() {
    const text = this.chosen().map((sample) => this.data.name(sample)).join("\n");
    await this.copyText(text, this.part("copied"), "Please use Download TSV.");
  }

  async copyText(text, status, otherwise) {
    try {
      await navigator.clipboard.writeText(text);
      status.textContent = "Copied.";
    } catch {
      // Browsers may deny clipboard access to a page opened from a file.
      const area = Object.assign(document.createElement("textarea"), { value: text });
      document.body.append(area);
      area.select();
      status.textContent = document.execCommand("copy") ? "Copied." : otherwise;
      area.remove();
    }
  }

  save() {
    download(toTsv(this.rows(this.chosen())), "selected_samples.tsv");
  }

  // The left map beside what was found, as a picture.
  glance() {
    const link = document.getElementById("glance"), picture = link.querySelector("canvas");
    const [{ canvas }] = this.panels;
    this.panels[0].drawNow();
    Object.assign(picture, { width: canvas.width, height: canvas.height });
    picture.getContext("2d").drawImage(canvas, 0, 0);
    link.hidden = false;
  }

  // Save both maps side by side, as shown and with titles, as PNG; the figures have the legend.
  savePicture() {
    const gap = 40 * this.panels[0].ratio;
    const canvases = this.panels.map((panel) => panel.canvas);
    const sheet = document.createElement("canvas");
    sheet.width = canvases.reduce((sum, canvas) => sum + canvas.width, 0);
    sheet.height = Math.max(...canvases.map((canvas) => canvas.height)) + gap;
    const context = sheet.getContext("2d");
    context.fillStyle = "#fff";
    context.fillRect(0, 0, sheet.width, sheet.height);
    context.fillStyle = INK;
    context.font = `${14 * this.panels[0].ratio}px sans-serif`;
    let left = 0;
    this.panels.forEach((panel, k) => {
      context.fillText(panel.map.title, left + 10, gap * 0.6, canvases[k].width - 20);
      context.drawImage(canvases[k], left, gap);
      left += canvases[k].width;
    });
    sheet.toBlob((blob) => download(blob, "maps.png"));
  }
}

// What a large study loads after its maps are drawn: names, then all columns.
async function loadRest(data) {
  while (data.pending) await new Promise((done) => setTimeout(done, 5));
  await nextPaint();
  performance.mark("painted");
  explorer.glance();
  if (!data.large) return;
  await data.load([data.names]);
  data.names.lines.prepareSearch();
}

function nextPaint() {
  return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}

async function start() {
  const root = document.getElementById("explorer");
  if (!root) return;
  const data = new PageData(JSON.parse(document.getElementById("page-data").textContent));
  if (data.large && typeof DecompressionStream === "undefined") {
    document.getElementById("too-old").hidden = false;
    return;
  }
  root.hidden = false;
  explorer = new Explorer(root, data);
  if (!data.large) listSamples(explorer);
  await loadRest(data);
}

let explorer = null;
start().then(async () => {
  await nextPaint();
  // Tests and the benchmark wait for this mark: the maps are drawn and the page is interactive.
  document.documentElement.dataset.ready = "yes";
  performance.mark("ready");
  if (!explorer || !explorer.data.large) return;
  for (const column of explorer.data.columns) await explorer.data.load([column]);
  listSamples(explorer);
  document.documentElement.dataset.loaded = "yes";
});
