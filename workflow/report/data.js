// The data of the interactive maps, packed by popdesic/report/pagedata.py and unpacked on first use.
"use strict";

const ABSENT = 65535;   // the sample is not on the map
const STEPS = 65534;
const SCALE_COLOURS = 128;

function decodeBase64(text, ArrayType) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new ArrayType(bytes.buffer);
}

class PageData {
  constructor(raw) {
    this.samples = raw.samples;
    this.n = raw.samples.length;
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

  column(name) {
    return this.columns.find((column) => column.name === name);
  }

  // Index of each sample's value in column.values.
  codes(column) {
    if (!column.unpacked) {
      const types = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array };
      column.unpacked = decodeBase64(column.codes, types[column.bytes]);
    }
    return column.unpacked;
  }

  value(column, sample) {
    return column.values[this.codes(column)[sample]];
  }

  // Coordinates scaled to 0–1 over the axis's range, NaN for samples that are not on the map.
  coordinates(map, index) {
    const axis = map.axes[index];
    if (!axis) return new Float64Array(this.n).fill(0.5); // a map of one axis
    if (!axis.unpacked) {
      const flat = axis.high === axis.low;
      axis.unpacked = Float64Array.from(decodeBase64(axis.steps, Uint16Array),
        (step) => (step === ABSENT ? NaN : flat ? 0.5 : step / STEPS));
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

  // Shape of each sample's point: that of its cohort, or that of its label in the column.
  shapesOf(column, byLabel) {
    if (byLabel && column.markers) {
      const codes = this.codes(column);
      return Array.from({ length: this.n }, (_, i) => column.markers[codes[i]]);
    }
    const cohort = this.column("cohort");
    const codes = this.codes(cohort);
    // A Map, because a plain object inherits `constructor`, which may be the name of a cohort.
    const of = new Map(Object.entries(this.shapes.of));
    const shapes = cohort.values.map((name) => of.get(name) || this.shapes.first);
    return Array.from({ length: this.n }, (_, i) => shapes[codes[i]]);
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
