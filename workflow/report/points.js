// The points of a map. A drawing call a point takes half a second for 30 000 points, so their pixels
// are mixed here. A GPU, if there is one, draws those of a large study. WebGL that is emulated on the
// CPU takes twice as long as pixels (tests/bench/bench_report.py).
"use strict";

const LEAST_SHAPE = 2;      // radius in device pixels from which shapes can be told apart
const MOST_SHAPES = 50000;  // points in view of a large study that are drawn with their shapes on the CPU
const PHASES = 16;          // places of a shape's centre in its pixel, 4 across and 4 down
const WHITE = -1;           // a pixel of 32 bits, all of them 1
const TILE = 64;            // pixels of a shape in the texture of shapes
const ROW = 256;            // colours in a row of the texture of colours
const EMULATED = /swiftshader|llvmpipe|softpipe|software|basic render/i;
const SHAPE_NAMES = Object.keys(SHAPES);

// Places arrive as the page holds them: 16-bit steps of an axis, of which ABSENT is no place.
const VERTEX = `#version 300 es
in float u; in float v; in uint code; in uint shape; in uint chosen;
uniform vec4 map; uniform vec2 size; uniform vec4 range;
uniform float points; uniform uint wanted; uniform sampler2D colours;
flat out vec3 colour; flat out float tile;
void main() {
  bool absent = u > ${(ABSENT - 0.5) / ABSENT} || v > ${(ABSENT - 0.5) / ABSENT};
  vec2 place = vec2(u, v) * range.xy + range.zw;
  vec2 pixel = place * map.xz + map.yw;
  gl_Position = absent || (wanted < 2u && chosen != wanted) ? vec4(9.0, 9.0, 9.0, 1.0)
    : vec4(2.0 * pixel.x / size.x - 1.0, 1.0 - 2.0 * pixel.y / size.y, 0.0, 1.0);
  gl_PointSize = points;
  colour = texelFetch(colours, ivec2(code % ${ROW}u, code / ${ROW}u), 0).rgb;
  tile = float(shape);
}`;
const FRAGMENT = `#version 300 es
precision mediump float;
flat in vec3 colour; flat in float tile;
uniform float opacity; uniform bool plain; uniform sampler2D tiles;
out vec4 ink;
void main() {
  if (plain) { ink = vec4(colour, 1.0) * opacity; return; }
  vec4 mark = texture(tiles, vec2((tile + gl_PointCoord.x) / ${SHAPE_NAMES.length}.0, gl_PointCoord.y));
  // The tiles are black with a white line around them, with premultiplied alpha.
  ink = vec4(colour * (mark.a - mark.r) + mark.rrr, mark.a) * opacity;
}`;

// All shapes side by side.
function drawTiles() {
  const sheet = document.createElement("canvas");
  [sheet.width, sheet.height] = [TILE * SHAPE_NAMES.length, TILE];
  const context = sheet.getContext("2d");
  const radius = TILE / 2 / 1.6;
  SHAPE_NAMES.forEach((name, k) => drawShape(context, name, (k + 0.5) * TILE, TILE / 2, radius, "#000"));
  return sheet;
}

function parseColour(text) {
  return [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16));
}

// One context for all panels: buffers of axes and codes are uploaded once.
class GlPoints {
  // `emulated`: also where WebGL would run on the CPU.
  constructor(order, emulated = false) {
    this.canvas = document.createElement("canvas");
    const gl = this.canvas.getContext("webgl2", { antialias: false, preserveDrawingBuffer: true });
    if (!gl) throw new Error("no WebGL");
    // Browsers do not count emulation as a caveat of performance, but they name the device.
    const about = gl.getExtension("WEBGL_debug_renderer_info");
    const device = about ? gl.getParameter(about.UNMASKED_RENDERER_WEBGL) : "";
    if (!emulated && EMULATED.test(device)) throw new Error("no GPU");
    this.gl = gl;
    this.count = order.length;
    this.buffers = new Map();
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error("no program");
    gl.useProgram(program);
    this.at = (name) => gl.getUniformLocation(program, name);
    this.slot = (name) => gl.getAttribLocation(program, name);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, order, gl.STATIC_DRAW);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.texture(1, gl.LINEAR_MIPMAP_LINEAR);
    gl.pixelStorei(gl.UNPACK_PREMULTIPLY_ALPHA_WEBGL, true);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, drawTiles());
    gl.pixelStorei(gl.UNPACK_PREMULTIPLY_ALPHA_WEBGL, false);
    gl.generateMipmap(gl.TEXTURE_2D);
    gl.uniform1i(this.at("tiles"), 1);
    this.texture(0, gl.NEAREST);
    gl.uniform1i(this.at("colours"), 0);
    this.canvas.addEventListener("webglcontextlost", () => { this.lost = true; });
  }

  texture(unit, filter) {
    const gl = this.gl;
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, filter);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, unit ? gl.LINEAR : filter);
    for (const side of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) {
      gl.texParameteri(gl.TEXTURE_2D, side, gl.CLAMP_TO_EDGE);
    }
  }

  // Bind an array to an attribute; it is uploaded again only if it or its version is another one.
  attribute(name, values, version = 0) {
    const gl = this.gl, slot = this.slot(name);
    if (!values) { // a map of one axis
      gl.disableVertexAttribArray(slot);
      gl.vertexAttrib1f(slot, 0);
      return;
    }
    const place = name === "u" || name === "v";
    const key = place ? values : name; // axes stay on the device, codes are replaced
    let held = this.buffers.get(key);
    if (!held) this.buffers.set(key, held = { buffer: gl.createBuffer() });
    gl.bindBuffer(gl.ARRAY_BUFFER, held.buffer);
    if (held.values !== values || held.version !== version) {
      gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
      Object.assign(held, { values, version });
    }
    gl.enableVertexAttribArray(slot);
    if (place) {
      gl.vertexAttribPointer(slot, 1, gl.UNSIGNED_SHORT, true, 0, 0);
      return;
    }
    const types = { 1: gl.UNSIGNED_BYTE, 2: gl.UNSIGNED_SHORT, 4: gl.UNSIGNED_INT };
    gl.vertexAttribIPointer(slot, 1, types[values.BYTES_PER_ELEMENT], 0, 0);
  }

  setColours(colours) {
    if (this.colours === colours) return;
    this.colours = colours;
    const rows = Math.ceil(colours.length / ROW), bytes = new Uint8Array(4 * ROW * rows);
    colours.forEach((text, k) => bytes.set([...parseColour(text), 255], 4 * k));
    const gl = this.gl;
    gl.activeTexture(gl.TEXTURE0);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, ROW, rows, 0, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
  }

  // Draw the points of one panel onto a canvas.
  draw({ target, axes, affine, ratio, radius, passes, style }) {
    const { gl, canvas } = this;
    const { width: w, height: h } = target;
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    gl.viewport(0, 0, w, h);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    const scales = axes.map((axis) => (axis && axis.high > axis.low ? [ABSENT / STEPS, 0] : [0, 0.5]));
    axes.forEach((axis, k) => this.attribute("uv"[k], axis && axis.array));
    this.attribute("code", style.codes);
    this.attribute("shape", style.shapeNumbers);
    this.attribute("chosen", style.selected.mask, style.selected.version);
    this.setColours(style.colours);
    gl.uniform4f(this.at("range"), scales[0][0], scales[1][0], scales[0][1], scales[1][1]);
    gl.uniform4f(this.at("map"), affine.a, affine.b, affine.c, affine.d);
    gl.uniform2f(this.at("size"), w / ratio, h / ratio);
    const plain = radius * ratio < LEAST_SHAPE;
    gl.uniform1i(this.at("plain"), plain ? 1 : 0);
    gl.uniform1f(this.at("points"), (plain ? 2 : 3.2) * radius * ratio);
    for (const { chosen, alpha } of passes) {
      gl.uniform1ui(this.at("wanted"), chosen);
      gl.uniform1f(this.at("opacity"), alpha);
      gl.drawElements(gl.POINTS, this.count, gl.UNSIGNED_INT, 0);
    }
    target.getContext("2d").drawImage(canvas, 0, 0);
  }
}

// Points mixed on the CPU: with their shapes, or as squares where very many are in view.
class PixelPoints {
  constructor(order) {
    this.order = order;
    this.held = new WeakMap();
    this.placed = new WeakMap();
  }

  // Values in the order of drawing: a million points in random order wait for memory at each one.
  inOrder(values, version = 0) {
    let held = this.held.get(values);
    if (!held || held.version !== version) {
      held = { version, sorted: held ? held.sorted : new values.constructor(values.length) };
      const { order } = this, { sorted } = held;
      for (let place = 0; place < order.length; place++) sorted[place] = values[order[place]];
      this.held.set(values, held);
    }
    return held.sorted;
  }

  draw({ target, u, v, affine, ratio, radius, passes, style, few }) {
    const { width: w, height: h } = target;
    const marks = few ? this.shapes(radius, ratio) : squares(radius * ratio);
    const at = this.place(target, u, v, affine, ratio, marks);
    const codes = this.inOrder(style.codes), shapes = this.inOrder(style.shapeNumbers);
    const mask = this.inOrder(style.selected.mask, style.selected.version);
    const image = new ImageData(w, h), pixels = new Int32Array(image.data.buffer);
    // Red and blue of each colour in one number, green in another: three products become two.
    const colours = style.colours.map(parseColour);
    const reds = Int32Array.from(colours, ([red, , blue]) => red | (blue << 16));
    const greens = Int32Array.from(colours, ([, green]) => green << 8);
    const offsets = Int32Array.from(marks.x, (x, j) => marks.y[j] * w + x);
    for (const { chosen, alpha } of passes) {
      const inks = Int32Array.from(marks.ink, (share) => Math.round(256 * alpha * share));
      const whites = Int32Array.from(marks.white, (share) => Math.round(256 * alpha * share));
      for (let i = 0; i < at.length; i++) {
        if (at[i] < 0 || (chosen < 2 && mask[i] !== chosen)) continue;
        const mark = few ? PHASES * shapes[i] + (at[i] & (PHASES - 1)) : 0;
        const first = at[i] >> 4, code = codes[i], red = reds[code], green = greens[code];
        for (let j = marks.starts[mark]; j < marks.starts[mark + 1]; j++) {
          const k = first + offsets[j], ink = inks[j], white = whites[j], rest = 256 - ink - white;
          const under = pixels[k] || WHITE; // as the background of the map is
          const both = Math.imul(under & 0xff00ff, rest) + Math.imul(red, ink)
            + Math.imul(white, 0xff00ff) + 0x800080;
          const one = Math.imul(under & 0xff00, rest) + Math.imul(green, ink)
            + Math.imul(white, 0xff00) + 0x8000;
          pixels[k] = 0xff000000 | ((both >>> 8) & 0xff00ff) | ((one >>> 8) & 0xff00);
        }
      }
    }
    target.getContext("2d").putImageData(image, 0, 0);
  }

  // Where each point's mark begins: 16 times the pixel, plus the phase; -1 if it is not in view.
  // Colours and selections change more often than places.
  place(target, u, v, affine, ratio, marks) {
    const { width: w, height: h } = target, { side, middle, phases } = marks;
    const [a, b, c, d] = [affine.a, affine.b, affine.c, affine.d].map((value) => value * ratio);
    const key = [u, v, a, b, c, d, w, h, side, phases];
    const placed = this.placed.get(target);
    if (placed && key.every((part, k) => part === placed.key[k])) return placed.at;
    [u, v] = [this.inOrder(u), this.inOrder(v)];
    const at = placed ? placed.at : new Int32Array(u.length);
    for (let i = 0; i < at.length; i++) {
      const x = Math.round(phases * (a * u[i] + b - middle));
      const y = Math.round(phases * (c * v[i] + d - middle));
      // Also false without a place.
      const inside = x >= 0 && y >= 0 && x <= phases * (w - side) && y <= phases * (h - side);
      if (!inside) at[i] = -1;
      else if (phases === 1) at[i] = (y * w + x) << 4;
      else at[i] = (((y >> 2) * w + (x >> 2)) << 4) | ((y & 3) << 2) | (x & 3);
    }
    this.placed.set(target, { key, at });
    return at;
  }

  // The marks of all shapes, at quarters of a pixel.
  shapes(radius, ratio) {
    const key = `${radius} ${ratio}`;
    if (this.drawnKey !== key) [this.drawn, this.drawnKey] = [drawMarks(radius, ratio), key];
    return this.drawn;
  }
}

// Marks are lists of pixels (x, y), each with its shares of the point's colour and of white. Mark k
// is pixels starts[k] to starts[k + 1].
function squares(radius) {
  const side = Math.max(1, Math.round(2 * radius)), n = side * side;
  const x = Array.from({ length: n }, (_, k) => k % side);
  const y = Array.from({ length: n }, (_, k) => Math.floor(k / side));
  return { x, y, ink: x.map(() => 1), white: x.map(() => 0), starts: [0, n], side, middle: side / 2, phases: 1 };
}

// The pixels of each shape in each phase: a row of phases for each shape.
function drawMarks(radius, ratio) {
  const middle = Math.ceil((1.3 * radius + 1) * ratio), side = 2 * middle + 1;
  const sheet = document.createElement("canvas");
  [sheet.width, sheet.height] = [side * PHASES, side * SHAPE_NAMES.length];
  const context = sheet.getContext("2d", { willReadFrequently: true });
  context.scale(ratio, ratio);
  const marks = { x: [], y: [], ink: [], white: [], starts: [], side, middle, phases: 4 };
  const centre = (k, phase) => (k * side + middle + phase / 4) / ratio;
  SHAPE_NAMES.forEach((name, row) => {
    for (let k = 0; k < PHASES; k++) {
      drawShape(context, name, centre(k, k & 3), centre(row, k >> 2), radius, "#000");
    }
  });
  const { data } = context.getImageData(0, 0, sheet.width, sheet.height);
  for (let mark = 0; mark < PHASES * SHAPE_NAMES.length; mark++) {
    const [left, top] = [side * (mark % PHASES), side * Math.floor(mark / PHASES)];
    marks.starts.push(marks.x.length);
    for (let k = 0; k < side * side; k++) {
      const [x, y] = [k % side, Math.floor(k / side)];
      const at = 4 * ((top + y) * sheet.width + left + x);
      if (!data[at + 3]) continue;
      // The shape is black, its outline white.
      const cover = data[at + 3] / 255, white = (cover * data[at]) / 255;
      marks.x.push(x);
      marks.y.push(y);
      marks.ink.push(cover - white);
      marks.white.push(white);
    }
  }
  marks.starts.push(marks.x.length);
  return marks;
}

// What draws the points: the GPU, where a large study finds one.
function makePoints(data) {
  if (!data.large) return new PixelPoints(data.order);
  try {
    return new GlPoints(data.order);
  } catch {
    return new PixelPoints(data.order);
  }
}
