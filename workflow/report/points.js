// Points of studies too large for one drawing call a point: WebGL on a GPU, plain pixels without one.
// WebGL that is emulated on the CPU takes twice as long as pixels (tests/bench/bench_report.py).
"use strict";

const LEAST_SHAPE = 2;      // radius in device pixels from which shapes can be told apart
const MOST_SPRITES = 50000; // points in view that a canvas draws with their shapes
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

// All shapes side by side; each fills its tile as a sprite does (MapPanel.sprite).
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

  // A canvas with the points of one panel; valid until the next call.
  draw({ axes, affine, width, height, ratio, radius, passes, style }) {
    const { gl, canvas } = this;
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
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
    gl.uniform2f(this.at("size"), width, height);
    const plain = radius * ratio < LEAST_SHAPE;
    gl.uniform1i(this.at("plain"), plain ? 1 : 0);
    gl.uniform1f(this.at("points"), (plain ? 2 : 3.2) * radius * ratio);
    for (const { chosen, alpha } of passes) {
      gl.uniform1ui(this.at("wanted"), chosen);
      gl.uniform1f(this.at("opacity"), alpha);
      gl.drawElements(gl.POINTS, this.count, gl.UNSIGNED_INT, 0);
    }
    return canvas;
  }
}

// Squares of pixels, mixed on the CPU.
class PixelPoints {
  constructor(order) {
    this.order = order;
    this.canvas = document.createElement("canvas");
    this.held = new WeakMap();
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

  draw({ u, v, affine, width, height, ratio, radius, passes, style }) {
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    [this.canvas.width, this.canvas.height] = [w, h];
    const context = this.canvas.getContext("2d");
    const image = context.createImageData(w, h), data = image.data;
    const side = Math.max(1, Math.round(2 * radius * ratio)), half = side / 2;
    const table = Uint8Array.from(style.colours.flatMap(parseColour));
    const codes = this.inOrder(style.codes);
    const mask = this.inOrder(style.selected.mask, style.selected.version);
    [u, v] = [u, v].map((axis) => this.inOrder(axis));
    const [a, b, c, d] = [affine.a, affine.b, affine.c, affine.d].map((value) => value * ratio);
    for (const { chosen, alpha } of passes) {
      for (let i = 0; i < u.length; i++) {
        if (chosen < 2 && mask[i] !== chosen) continue;
        const x = Math.round(a * u[i] + b - half), y = Math.round(c * v[i] + d - half);
        if (!(x >= 0 && y >= 0 && x + side <= w && y + side <= h)) continue; // also without a place
        const at = 3 * codes[i], red = table[at], green = table[at + 1], blue = table[at + 2];
        for (let row = y; row < y + side; row++) {
          for (let k = 4 * (row * w + x), end = k + 4 * side; k < end; k += 4) {
            // Mixed on white, as the map's background is.
            const under = data[k + 3] ? 0 : 255;
            data[k] += alpha * (red - data[k]) + under * (1 - alpha);
            data[k + 1] += alpha * (green - data[k + 1]) + under * (1 - alpha);
            data[k + 2] += alpha * (blue - data[k + 2]) + under * (1 - alpha);
            data[k + 3] = 255;
          }
        }
      }
    }
    context.putImageData(image, 0, 0);
    return this.canvas;
  }
}

function makePoints(order) {
  try {
    return new GlPoints(order);
  } catch {
    return new PixelPoints(order);
  }
}
