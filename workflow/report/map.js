// One map on a canvas: draw points, pan, zoom, find the point under the pointer, select with a lasso.
"use strict";

const MARGIN = { left: 50, right: 10, top: 8, bottom: 40 };
const NARROW = { ...MARGIN, left: 22, bottom: 24 };  // for axes without numbers
const REACH = 12;          // pixels from the pointer within which a point is found
const FADED = 0.12;        // opacity of samples that are not selected
const PAPER = { width: 340, ratio: 3 };  // pixels of a panel on paper, and dots a pixel
const INK = "#1d2329";

// Round numbers between two values, about five of them.
function niceTicks(low, high) {
  const rough = (high - low) / 5;
  if (!(rough > 0)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((k) => k * power >= rough) * power;
  const ticks = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) ticks.push(k * step);
  return ticks;
}

function tickText(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e4 || size < 1e-3) return value.toExponential(1).replace(".0e", "e").replace("e+", "e");
  return String(Number(value.toPrecision(3)));
}

class MapPanel {
  // `on` has hover(sample, panel, event), pick(sample), lasso(samples, adding).
  constructor(root, data, on) {
    this.root = root;
    this.data = data;
    this.on = on;
    this.canvas = root.querySelector("canvas");
    this.tool = "move";
    this.style = null;
    this.path = null;
    this.pointers = new Map();
    const [mapList, x, y] = ["map", "x", "y"].map((n) => root.querySelector(`[data-part=${n}]`));
    this.controls = { map: mapList, x, y };
    data.maps.forEach((map, k) => mapList.add(new Option(map.title, k)));
    mapList.addEventListener("change", () => this.show(Number(mapList.value)));
    for (const axis of [x, y]) axis.addEventListener("change", () => this.setAxes());
    for (const button of root.querySelectorAll("button[data-zoom]")) {
      button.addEventListener("click", () => this.zoomButton(button.dataset.zoom));
    }
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.canvas);
  }

  show(index, x = 0, y = 1) {
    this.map = this.data.maps[index];
    this.root.querySelector("[data-part=title]").textContent = this.map.title;
    this.controls.map.value = index;
    const last = Math.max(0, this.map.axes.length - 1);
    for (const [part, chosen] of [["x", x], ["y", y]]) {
      const list = this.controls[part];
      list.replaceChildren(...this.map.axes.map((axis, k) => new Option(axis.name, k)));
      list.value = Math.min(chosen, last);
      list.closest("label").hidden = this.map.axes.length < 3;
    }
    this.setAxes();
  }

  setAxes() {
    const [x, y] = [Number(this.controls.x.value), Number(this.controls.y.value)];
    const one = this.map.axes.length < 2;
    this.axes = [this.map.axes[x], one ? null : this.map.axes[y]];
    const missing = this.axes.filter((axis) => axis && !this.data.isReady(axis));
    this.u = this.v = null;
    if (missing.length) {
      const { map } = this;
      this.data.load(missing).then(() => { if (this.map === map) this.setAxes(); });
      return;
    }
    this.u = this.data.coordinates(this.map, x);
    this.v = one ? this.data.coordinates({ axes: [] }, 0) : this.data.coordinates(this.map, y);
    const names = this.axes.filter(Boolean).map((axis) => axis.name).join(" and ");
    this.canvas.setAttribute("aria-label",
      `${this.map.title}, ${names}: one point per sample. Arrow keys move, plus and minus zoom, 0 shows all.`);
    this.fit();
  }

  resize() {
    const box = this.canvas.getBoundingClientRect();
    // On paper the map keeps its view, and it has the same size on the screen afterwards.
    if (!box.width || this.onScreen || matchMedia("print").matches) return;
    const size = [box.width, box.height, window.devicePixelRatio || 1];
    if (size.every((part, k) => part === [this.width, this.height, this.ratio][k])) return;
    this.setSize(...size);
    if (this.map) this.fit();
  }

  setSize(width, height, ratio) {
    Object.assign(this, { width, height, ratio });
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
  }

  // Draw what is in view for paper, in finer dots.
  toPaper() {
    if (!this.view || !this.width || this.onScreen) return;
    this.onScreen = [this.width, this.height, this.ratio];
    const { w, h } = this.inner, { left, right, top, bottom } = this.margin;
    this.setSize(PAPER.width, top + bottom + ((PAPER.width - left - right) * h) / w, PAPER.ratio);
    this.drawNow();
  }

  toScreen() {
    if (!this.onScreen) return;
    this.setSize(...this.onScreen);
    this.onScreen = null;
    this.drawNow();
  }

  get margin() { return this.map.equal ? NARROW : MARGIN; }

  // Size of the plotting area.
  get inner() {
    const { left, right, top, bottom } = this.margin;
    return { w: this.width - left - right, h: this.height - top - bottom };
  }

  // Show the whole map, with the same scale on both axes if they have no unit.
  fit() {
    if (!this.width) return;
    const { w, h } = this.inner;
    let [x, y] = [0.54, 0.54];
    if (this.map.equal && this.axes[1]) {
      const [rx, ry] = this.axes.map((axis) => axis.high - axis.low || 1);
      const unit = 1.08 * Math.max(rx / w, ry / h);
      [x, y] = [(unit * w) / rx / 2, (unit * h) / ry / 2];
    }
    this.view = { x0: 0.5 - x, x1: 0.5 + x, y0: 0.5 - y, y1: 0.5 + y };
    this.draw();
  }

  // x = a u + b, y = c v + d: from axis coordinates (0–1) to pixels of the canvas.
  affine() {
    const { w, h } = this.inner;
    const { x0, x1, y0, y1 } = this.view;
    const [a, c] = [w / (x1 - x0), -h / (y1 - y0)];
    return { a, b: this.margin.left - a * x0, c, d: this.margin.top - c * y1 };
  }

  screen(sample) {
    const { a, b, c, d } = this.affine();
    return [a * this.u[sample] + b, c * this.v[sample] + d];
  }

  // Zoom by a factor around a point of the canvas, its middle by default.
  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const { w, h } = this.inner;
    const { x0, x1, y0, y1 } = this.view;
    const x = x0 + ((px - this.margin.left) / w) * (x1 - x0);
    const y = y0 + (1 - (py - this.margin.top) / h) * (y1 - y0);
    const scale = Math.min(4, Math.max(1e-3, (x1 - x0) / factor)) / (x1 - x0);
    this.view = {
      x0: x - (x - x0) * scale, x1: x + (x1 - x) * scale,
      y0: y - (y - y0) * scale, y1: y + (y1 - y) * scale,
    };
    this.draw();
  }

  pan(dx, dy) {
    const { w, h } = this.inner;
    const [x, y] = [
      (dx / w) * (this.view.x1 - this.view.x0), (dy / h) * (this.view.y1 - this.view.y0),
    ];
    this.view = {
      x0: this.view.x0 - x, x1: this.view.x1 - x, y0: this.view.y0 + y, y1: this.view.y1 + y,
    };
    this.draw();
  }

  zoomButton(what) {
    if (what === "all") this.fit();
    else this.zoom(what === "in" ? 1.5 : 1 / 1.5);
  }

  // Bring a sample into view without changing the scale.
  reveal(sample) {
    if (!this.view || !this.u) return; // not laid out yet: the whole map will be shown
    const [x, y] = this.screen(sample);
    const { w, h } = this.inner;
    const { left, top } = this.margin;
    const inside = x > left && x < left + w && y > top && y < top + h;
    if (!inside && Number.isFinite(x + y)) this.pan(left + w / 2 - x, top + h / 2 - y);
  }

  nearest(px, py) {
    if (!this.u) return -1;
    const { a, b, c, d } = this.affine();
    const { u, v } = this, n = this.data.n;
    let best = -1, least = REACH * REACH;
    for (let i = 0; i < n; i++) {
      const x = a * u[i] + b - px, y = c * v[i] + d - py, far = x * x + y * y;
      if (far < least) { best = i; least = far; }
    }
    return best;
  }

  // Samples within a closed path on the canvas (even-odd rule).
  within(path) {
    if (!this.u) return new Uint32Array(0);
    const { a, b, c, d } = this.affine();
    const { u, v } = this, n = this.data.n, found = new Uint32Array(n);
    const xs = path.map(([x]) => x), ys = path.map(([, y]) => y);
    const [left, right] = [Math.min(...xs), Math.max(...xs)];
    const [top, bottom] = [Math.min(...ys), Math.max(...ys)], first = Math.floor(top);
    // Edges of the path by the rows of pixels that they cross: a point looks at those of its row.
    const rows = Array.from({ length: Math.floor(bottom) - first + 1 }, () => []);
    for (let k = 0, l = path.length - 1; k < path.length; l = k++) {
      const ends = [ys[k], ys[l]].map((y) => Math.floor(y) - first).sort((p, q) => p - q);
      for (let row = ends[0]; row <= ends[1]; row++) rows[row].push(xs[k], ys[k], xs[l], ys[l]);
    }
    const starts = new Uint32Array(rows.length + 1);
    rows.forEach((row, k) => { starts[k + 1] = starts[k] + row.length; });
    const edges = Float64Array.from(rows.flat());
    let count = 0;
    for (let i = 0; i < n; i++) {
      const x = a * u[i] + b, y = c * v[i] + d;
      if (!(x >= left && x <= right && y >= top && y <= bottom)) continue; // also without a place
      const row = Math.floor(y) - first;
      let inside = 0;
      for (let e = starts[row]; e < starts[row + 1]; e += 4) {
        const [xk, yk, xl, yl] = [edges[e], edges[e + 1], edges[e + 2], edges[e + 3]];
        if ((yk > y) !== (yl > y) && x < ((xl - xk) * (y - yk)) / (yl - yk) + xk) inside ^= 1;
      }
      found[count] = i;
      count += inside;
    }
    return found.slice(0, count);
  }

  // style: colours (of values), codes, shapes (names and codes), shapeNumbers (of samples), selected,
  // marked (samples with a ring)
  paint(style) {
    this.style = style;
    this.draw();
  }

  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.drawNow(); });
  }

  // Of a large study, points grow while the map is enlarged.
  get radius() {
    if (!this.data.large) return Math.min(4.5, Math.max(1.6, 90 / Math.sqrt(this.data.n + 1)));
    const { x0, x1, y0, y1 } = this.view;
    const share = Math.min(1, Math.max(0, x1 - x0)) * Math.min(1, Math.max(0, y1 - y0));
    return Math.min(4.5, Math.max(1, 90 / Math.sqrt(this.data.n * share + 1)));
  }

  // The points, drawn again only if something of them has changed.
  layer() {
    const { style, u, v, canvas, ratio, radius, state } = this;
    const { selected } = style;
    if (this.layerKey && state.every((part, k) => part === this.layerKey[k])) return this.drawnLayer;
    // With very many points, dense regions appear darker than sparse ones.
    const alpha = this.data.n > 20000 ? 0.5 : 0.85;
    const passes = selected.size
      ? [{ chosen: 0, alpha: FADED }, { chosen: 1, alpha: 0.95 }] : [{ chosen: 2, alpha }];
    if (!this.data.points || this.data.points.lost) this.data.points = makePoints(this.data);
    const target = this.drawnLayer ||= document.createElement("canvas");
    [target.width, target.height] = [canvas.width, canvas.height];
    const { axes, few } = this, affine = this.affine();
    this.data.points.draw({ target, axes, u, v, affine, ratio, radius, passes, style, few });
    this.layerKey = state;
    return target;
  }

  // What identifies the points as they are drawn now.
  get state() {
    const { style, u, v, view, width, height, ratio } = this;
    const { colours, codes, shapeNumbers, selected } = style;
    return [u, v, view, width, height, ratio, colours, codes, shapeNumbers, selected.version];
  }

  // Whether so few points are in view that their shapes are drawn without a GPU.
  get few() {
    const { u, v, view } = this;
    if (!this.data.large) return true;
    let count = 0;
    for (let i = 0; i < u.length && count <= MOST_SHAPES; i++) {
      if (u[i] >= view.x0 && u[i] <= view.x1 && v[i] >= view.y0 && v[i] <= view.y1) count++;
    }
    return count <= MOST_SHAPES;
  }

  drawNow() {
    if (!this.style || !this.view || !this.width || !this.u) return;
    const context = this.canvas.getContext("2d");
    const { colours, codes, shapes, marked } = this.style;
    const { w, h } = this.inner;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.fillStyle = "#fff";
    context.fillRect(0, 0, this.width, this.height);
    this.drawAxes(context);
    context.save();
    context.beginPath();
    const { left, top } = this.margin;
    context.rect(left, top, w, h);
    context.clip();
    const radius = this.radius;
    context.drawImage(this.layer(), 0, 0, this.width, this.height);
    for (const i of marked) {
      const [x, y] = this.screen(i);
      if (!Number.isFinite(x + y)) continue; // not on this map
      drawShape(context, shapes.names[shapes.codes[i]], x, y, radius + 1.5, colours[codes[i]]);
      context.beginPath();
      context.arc(x, y, radius + 6, 0, 2 * Math.PI);
      context.lineWidth = 2;
      context.strokeStyle = INK;
      context.stroke();
    }
    if (this.path && this.path.length > 1) {
      context.beginPath();
      polygon(context, this.path);
      context.fillStyle = "rgba(0, 85, 138, 0.12)";
      context.fill();
      context.lineWidth = 1.5;
      context.setLineDash([5, 3]);
      context.strokeStyle = INK;
      context.stroke();
    }
    context.restore();
    this.drawn = true;
  }

  drawAxes(context) {
    const { w, h } = this.inner;
    const { x0, x1, y0, y1 } = this.view;
    const bottom = this.margin.top + h;
    context.strokeStyle = "#9aa4ae";
    context.lineWidth = 1;
    context.strokeRect(this.margin.left - 0.5, this.margin.top - 0.5, w + 1, h + 1);
    context.fillStyle = INK;
    context.font = '12px system-ui, -apple-system, "Segoe UI", "Liberation Sans", Arial, sans-serif';
    context.textAlign = "center";
    context.textBaseline = "alphabetic";
    const [ax, ay] = this.axes;
    const unit = this.map.equal ? " (no unit)" : "";
    context.fillText(`${ax.name}${unit}`, this.margin.left + w / 2, bottom + this.margin.bottom - 7, w);
    if (ay) {
      context.save();
      context.translate(12, this.margin.top + h / 2);
      context.rotate(-Math.PI / 2);
      context.fillText(`${ay.name}${unit}`, 0, 0, h);
      context.restore();
    }
    if (this.map.equal) return; // the axes have no unit: no numbers
    context.font = '11px system-ui, -apple-system, "Segoe UI", "Liberation Sans", Arial, sans-serif';
    const real = (axis, share) => axis.low + share * (axis.high - axis.low);
    for (const tick of niceTicks(real(ax, x0), real(ax, x1))) {
      const x = this.margin.left + (((tick - ax.low) / (ax.high - ax.low) - x0) / (x1 - x0)) * w;
      context.fillRect(x - 0.5, bottom, 1, 4);
      context.fillText(tickText(tick), x, bottom + 16);
    }
    if (!ay) return;
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const tick of niceTicks(real(ay, y0), real(ay, y1))) {
      const y = bottom - (((tick - ay.low) / (ay.high - ay.low) - y0) / (y1 - y0)) * h;
      context.fillRect(this.margin.left - 4, y - 0.5, 4, 1);
      context.fillText(tickText(tick), this.margin.left - 6, y, this.margin.left - 22);
    }
  }

  listen() {
    const canvas = this.canvas;
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    let start = null, last = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      canvas.setPointerCapture(event.pointerId);
      canvas.focus({ preventScroll: true });
      start = last = place(event);
      this.moved = false;
      if (this.tool === "lasso") this.path = [start];
    });
    canvas.addEventListener("pointermove", (event) => {
      const here = place(event);
      if (!start) {
        this.on.hover(this.nearest(...here), this, event);
        return;
      }
      if (Math.hypot(here[0] - start[0], here[1] - start[1]) > 4) this.moved = true;
      if (this.path) {
        this.path.push(here);
        this.draw();
      } else if (this.moved) {
        this.pan(here[0] - last[0], here[1] - last[1]);
      }
      last = here;
    });
    const end = (event) => {
      if (!start) return;
      const [path, moved] = [this.path, this.moved];
      start = this.path = null;
      if (path && moved) this.on.lasso(this.within(path), event.shiftKey);
      else if (!moved && event.type === "pointerup") this.on.pick(this.nearest(...place(event)));
      this.draw();
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("pointerleave", (event) => this.on.hover(-1, this, event));
    canvas.addEventListener("dblclick", (event) => this.zoom(2, ...place(event)));
    canvas.addEventListener("wheel", (event) => {
      // The wheel scrolls the page unless the map has been clicked.
      if (!event.ctrlKey && document.activeElement !== canvas) return;
      event.preventDefault();
      this.zoom(Math.exp(-Math.sign(event.deltaY) * 0.2), ...place(event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const step = 40;
      const actions = {
        ArrowLeft: () => this.pan(step, 0), ArrowRight: () => this.pan(-step, 0),
        ArrowUp: () => this.pan(0, step), ArrowDown: () => this.pan(0, -step),
        "+": () => this.zoom(1.5), "=": () => this.zoom(1.5), "-": () => this.zoom(1 / 1.5),
        0: () => this.fit(), Escape: () => this.on.escape(),
      };
      const act = actions[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    });
  }
}
