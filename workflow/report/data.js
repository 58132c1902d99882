// The data of the interactive maps, packed by popdesic/report/pagedata.py and unpacked on first use.
"use strict";

const ABSENT = 65535;   // the sample is not on the map
const STEPS = 65534;
const SCALE_COLOURS = 128;
const REST = "\t";       // in a column of very many labels: all that share a colour

function decodeBase64(text, ArrayType) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new ArrayType(bytes.buffer);
}

function decodeBytes(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

// The bytes of an array or text of a large study (popdesic/report/packs.py).
async function inflate({ pack }) {
  const bytes = decodeBytes(document.getElementById(`pack-${pack}`).textContent);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Numbers of which all first bytes come first, then all second ones.
function joinBytes(bytes, width) {
  if (width === 1) return bytes;
  const n = bytes.length / width, joined = new (width === 2 ? Uint16Array : Uint32Array)(n);
  for (let k = 0; k < width; k++) {
    for (let i = 0; i < n; i++) joined[i] |= bytes[k * n + i] << (8 * k);
  }
  return joined;
}

// Very many short texts as one string, which is searched as a whole.
class Lines {
  constructor(text, n) {
    this.text = text;
    this.starts = Lines.startsOf(text, n);
  }

  static startsOf(text, n) {
    const starts = new Uint32Array(n + 1);
    for (let i = 1; i < n; i++) starts[i] = text.indexOf("\n", starts[i - 1]) + 1;
    starts[n] = text.length + 1;
    return starts;
  }

  at(i) { return this.text.slice(this.starts[i], this.starts[i + 1] - 1); }

  // Number of the line that holds a position.
  static lineAt(starts, position) {
    let [low, high] = [0, starts.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (starts[middle] <= position) low = middle;
      else high = middle;
    }
    return low;
  }

  prepareSearch() {
    if (this.lower) return;
    this.lower = this.text.toLowerCase(); // may have another length
    this.lowerStarts = Lines.startsOf(this.lower, this.starts.length - 1);
  }

  // The first lines that start with a lower-case text, then the first that contain it elsewhere.
  matches(wanted, most) {
    this.prepareSearch();
    const starts = this.lower.startsWith(wanted) ? [0] : [];
    for (let at = this.lower.indexOf(`\n${wanted}`); at >= 0 && starts.length < most;
      at = this.lower.indexOf(`\n${wanted}`, at + 1)) {
      starts.push(Lines.lineAt(this.lowerStarts, at + 1));
    }
    const contains = [];
    for (let at = this.lower.indexOf(wanted); at >= 0 && starts.length + contains.length < most;) {
      const line = Lines.lineAt(this.lowerStarts, at);
      if (at > this.lowerStarts[line]) contains.push(line);
      at = this.lower.indexOf(wanted, this.lowerStarts[line + 1] - 1);
    }
    return [...starts, ...contains];
  }

  indexOf(line) {
    if (line.includes("\n")) return -1;
    for (let at = this.text.indexOf(line); at >= 0; at = this.text.indexOf(line, at + 1)) {
      const i = Lines.lineAt(this.starts, at);
      if (at === this.starts[i] && at + line.length + 1 === this.starts[i + 1]) return i;
    }
    return -1;
  }
}

// Which samples are selected.
class Selection {
  constructor(n) {
    this.mask = new Uint8Array(n);
    this.size = this.version = 0;
  }

  has(i) { return this.mask[i] === 1; }

  set(i, value) {
    this.size += value - this.mask[i];
    this.mask[i] = value;
    this.version++;
  }

  add(samples) {
    for (let k = 0; k < samples.length; k++) {
      this.size += 1 - this.mask[samples[k]];
      this.mask[samples[k]] = 1;
    }
    this.version++;
  }

  fill(value) {
    this.mask.fill(value);
    this.size = value * this.mask.length;
    this.version++;
  }

  list() {
    const found = new Array(this.size);
    for (let i = 0, k = 0; i < this.mask.length; i++) if (this.mask[i]) found[k++] = i;
    return found;
  }
}

class PageData {
  constructor(raw) {
    this.n = raw.n;
    // Arrays of a large study are compressed: `load` comes before use.
    this.large = !Array.isArray(raw.samples);
    this.samples = this.large ? null : raw.samples;
    this.names = { text: raw.samples };
    this.pending = 0;
    this.columns = raw.columns;
    this.maps = raw.maps;
    this.first = raw.first;
    this.colourBy = raw.colour_by;
    this.shapes = raw.shapes;
    this.missing = raw.missing;
    this.ramp = raw.ramp;
    // Samples are sorted by cohort: draw them in a fixed random order, or the last cohort hides the others.
    this.order = shuffled(this.n);
  }

  isReady(part) { return !this.large || part.ready === true; }

  // Inflate axes, columns or names; resolves when all can be used.
  async load(parts) {
    this.pending++;
    for (const part of parts) {
      if (!this.isReady(part)) await (part.loading ||= this.inflatePart(part));
    }
    this.pending--;
  }

  async inflatePart(part) {
    const array = part.steps || part.codes;
    if (array) part.array = joinBytes(await inflate(array), array.bytes);
    if (part.text) part.lines = new Lines(new TextDecoder().decode(await inflate(part.text)), this.n);
    part.ready = true;
  }

  name(sample) {
    return this.large ? this.names.lines.at(sample) : this.samples[sample];
  }

  find(name) {
    return this.large ? this.names.lines.indexOf(name) : this.samples.indexOf(name);
  }

  // Samples whose names start with a text, then those that contain it; case does not matter.
  matches(text, most) {
    const wanted = text.trim().toLowerCase();
    if (!wanted || !this.isReady(this.names)) return [];
    if (this.large) return wanted.includes("\n") ? [] : this.names.lines.matches(wanted, most);
    this.lower ||= this.samples.map((name) => name.toLowerCase());
    const starts = [], contains = [];
    for (let i = 0; i < this.lower.length && starts.length < most; i++) {
      const at = this.lower[i].indexOf(wanted);
      if (at === 0) starts.push(i);
      else if (at > 0 && contains.length < most) contains.push(i);
    }
    return [...starts, ...contains].slice(0, most);
  }

  // Place of each name, for lists of names.
  get places() {
    if (!this.placeOf) {
      this.placeOf = new Map();
      for (let i = 0; i < this.n; i++) this.placeOf.set(this.name(i), i);
    }
    return this.placeOf;
  }

  column(name) {
    return this.columns.find((column) => column.name === name);
  }

  // Index of each sample's value in column.values.
  codes(column) {
    if (this.large) return column.array;
    if (!column.unpacked) {
      const types = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array };
      column.unpacked = decodeBase64(column.codes, types[column.bytes]);
    }
    return column.unpacked;
  }

  value(column, sample) {
    if (!this.isReady(column)) return "";
    if (column.lines) return column.lines.at(sample);
    return column.values[this.codes(column)[sample]];
  }

  // Coordinates scaled to 0–1 over the axis's range, NaN for samples that are not on the map.
  coordinates(map, index) {
    const axis = map.axes[index];
    if (!axis) return new Float64Array(this.n).fill(0.5); // a map of one axis
    if (!axis.unpacked) {
      const flat = axis.high === axis.low;
      const steps = this.large ? axis.array : decodeBase64(axis.steps, Uint16Array);
      const shares = new (this.large ? Float32Array : Float64Array)(this.n);
      for (let i = 0; i < this.n; i++) {
        shares[i] = steps[i] === ABSENT ? NaN : flat ? 0.5 : steps[i] / STEPS;
      }
      axis.unpacked = shares;
    }
    return axis.unpacked;
  }

  // Colour of each distinct value of a column.
  colours(column) {
    if (!column.scale) return column.colours;
    const [low, high] = column.scale;
    return column.values.map((text) => {
      const value = isUnknown(text) ? NaN : Number(text);
      if (Number.isNaN(value)) return this.missing;
      return this.rampColour((value - low) / (high - low || 1));
    });
  }

  // Colour at a position between 0 and 1 on the scale, quantised to SCALE_COLOURS colours.
  rampColour(share) {
    const step = Math.round(Math.min(1, Math.max(0, share)) * (SCALE_COLOURS - 1));
    const place = (step / (SCALE_COLOURS - 1)) * (this.ramp.length - 1);
    const left = Math.floor(place);
    const [a, b] = [this.ramp[left], this.ramp[Math.min(left + 1, this.ramp.length - 1)]];
    const mixed = [1, 3, 5].map((k) => {
      const [x, y] = [parseInt(a.slice(k, k + 2), 16), parseInt(b.slice(k, k + 2), 16)];
      return Math.round(x + (y - x) * (place - left)).toString(16).padStart(2, "0");
    });
    return `#${mixed.join("")}`;
  }

  // Shapes of points, those of cohorts or of labels in the column: a name by code, and codes.
  shapesOf(column, byLabel) {
    if (byLabel && column.markers) return { names: column.markers, codes: this.codes(column) };
    const cohort = this.column("cohort");
    const codes = this.codes(cohort);
    // A Map, because a plain object inherits `constructor`, which may be the name of a cohort.
    const of = new Map(Object.entries(this.shapes.of));
    return { names: cohort.values.map((name) => of.get(name) || this.shapes.first), codes };
  }
}

function isUnknown(text) {
  return text === "" || text === "NA";
}

function shuffled(n) {
  const order = Uint32Array.from({ length: n }, (_, i) => i);
  let state = 1;
  for (let i = n - 1; i > 0; i--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0; // generator of Numerical Recipes
    const j = state % (i + 1);
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}
