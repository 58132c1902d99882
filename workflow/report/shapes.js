// The shapes of points: paths, drawing, swatches of the legend.
"use strict";

// Paths of the markers, named as in the figures, in a circle of radius 1.
const SHAPES = {
  o: (c) => c.arc(0, 0, 0.95, 0, 2 * Math.PI),
  s: (c) => c.rect(-0.85, -0.85, 1.7, 1.7),
  D: (c) => polygon(c, [[0, -1.15], [1.15, 0], [0, 1.15], [-1.15, 0]]),
  "^": (c) => polygon(c, [[0, -1.15], [1.1, 0.85], [-1.1, 0.85]]),
  v: (c) => polygon(c, [[0, 1.15], [1.1, -0.85], [-1.1, -0.85]]),
  P: (c) => polygon(c, cross(0.4, 1.1)),
  X: (c) => { c.rotate(Math.PI / 4); polygon(c, cross(0.4, 1.15)); },
  "*": (c) => polygon(c, Array.from({ length: 10 }, (_, k) => {
    const r = k % 2 ? 0.5 : 1.25;
    return [r * Math.sin((k * Math.PI) / 5), -r * Math.cos((k * Math.PI) / 5)];
  })),
};

function polygon(context, points) {
  points.forEach(([x, y], k) => (k ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.closePath();
}

function cross(a, b) {
  return [[-a, -b], [a, -b], [a, -a], [b, -a], [b, a], [a, a], [a, b], [-a, b], [-a, a], [-b, a],
    [-b, -a], [-a, -a]];
}

function drawShape(context, shape, x, y, radius, fill) {
  context.save();
  context.translate(x, y);
  context.scale(radius, radius);
  context.beginPath();
  SHAPES[shape](context);
  context.fillStyle = fill;
  context.fill();
  context.lineWidth = 0.5 / radius;
  context.strokeStyle = "#fff";
  context.stroke();
  context.restore();
}

// A small canvas with one point, for the legend.
function swatch(colour, shape) {
  const ratio = window.devicePixelRatio || 1;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = Math.round(14 * ratio);
  canvas.setAttribute("aria-hidden", "true");
  canvas.className = "swatch";
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  drawShape(context, shape, 7, 7, 4.8, colour);
  return canvas;
}
