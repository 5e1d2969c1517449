"use strict";
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const clamp = (v, low, high) => Math.min(Math.max(v, low), high);
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Numbers as the page writes them.
  const raised = (k) => String(k).replace(/./g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);
  const number = (v) => {
    if (v === 0) return "0";
    const k = Math.floor(Math.log10(Math.abs(v)) + 1e-9);
    if (k >= -3 && k <= 4) return String(Number(v.toPrecision(3))).replace("-", "−");
    const m = Number((v / 10 ** k).toPrecision(3));
    return (m === 1 ? "" : m + " × ") + "10" + raised(k);
  };
  const grouped = (n) => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, "\u202f");

  const node = (name, attributes, text) => {
    const made = document.createElementNS(SVG, name);
    for (const key of Object.keys(attributes)) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // Pointers: one moves, two pinch. Vertical strokes of a finger still scroll the page.
  const follow = (target, onMove, onPinch) => {
    const down = new Map();
    target.addEventListener("pointerdown", (e) => {
      if (e.button) return;
      down.set(e.pointerId, [e.clientX, e.clientY]);
      target.setPointerCapture(e.pointerId);
      target.classList.add("moving");
    });
    target.addEventListener("pointermove", (e) => {
      const before = down.get(e.pointerId);
      if (!before) return;
      const others = [...down].filter(([id]) => id !== e.pointerId).map(([, p]) => p);
      if (others.length === 1) {
        const apart = (p) => Math.max(Math.hypot(p[0] - others[0][0], p[1] - others[0][1]), 8);
        const now = [e.clientX, e.clientY];
        onPinch(apart(now) / apart(before), (now[0] + others[0][0]) / 2);
      } else if (!others.length) onMove(e.clientX - before[0], e.clientY - before[1]);
      down.set(e.pointerId, [e.clientX, e.clientY]);
    });
    const up = (e) => {
      down.delete(e.pointerId);
      if (!down.size) target.classList.remove("moving");
    };
    target.addEventListener("pointerup", up);
    target.addEventListener("pointercancel", up);
  };

  const keys = (target, actions) => {
    const names = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down",
      "+": "in", "=": "in", "-": "out", "−": "out", 0: "all", Home: "all" };
    target.addEventListener("keydown", (e) => {
      const action = e.ctrlKey || e.metaKey || e.altKey ? undefined : actions[names[e.key]];
      if (!action) return;
      action();
      e.preventDefault();
    });
  };
  const buttons = (kind, actions) => {
    for (const button of document.querySelectorAll(`button[data-${kind}-do]`)) {
      button.parentElement.hidden = false;
      button.addEventListener("click", actions[button.getAttribute(`data-${kind}-do`)]);
    }
  };

  // The histogram of the distances: the inner picture zooms, the frame is drawn anew.
  const zoomable = (frame) => {
    const { low, step, totals, expected, threshold } = data.distances;
    const svg = frame.querySelector("svg"), plot = svg.querySelector(".plot");
    const axes = svg.querySelector(".frame");
    const titles = [...axes.querySelectorAll(".label")].map((t) => t.textContent);
    const end = low + step * totals.length;
    let from = low, to = end;
    const box = { left: 58, right: 12, top: 12, bottom: 48 };

    const draw = () => {
      const width = Math.max(frame.clientWidth, 240), height = width < 500 ? 260 : 330;
      const first = Math.max(0, Math.floor((from - low) / step + 1e-6));
      const last = Math.min(totals.length, Math.ceil((to - low) / step - 1e-6));
      let top = Math.max(1, ...totals.slice(first, last)) * 1.08;
      if (first === 0 && last === totals.length) top = Math.max(top, Math.min(expected, 1.5 * top) * 1.05);
      box.left = 34 + 7 * grouped(top).length;
      const inner = width - box.left - box.right, tall = height - box.top - box.bottom;
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      plot.setAttribute("x", box.left);
      plot.setAttribute("y", box.top);
      plot.setAttribute("width", inner);
      plot.setAttribute("height", tall);
      plot.setAttribute("viewBox", `${1000 * from} ${-top} ${1000 * (to - from)} ${top}`);
      const x = (v) => box.left + ((v - from) / (to - from)) * inner;
      const y = (v) => box.top + tall - (v / top) * tall;
      axes.replaceChildren();
      for (const v of rounds(top, 4)) {
        axes.append(node("line", { x1: box.left, x2: width - box.right, y1: y(v), y2: y(v), class: "grid" }));
        axes.append(node("text", { x: box.left - 6, y: y(v) + 4, "text-anchor": "end", class: "tick" }, grouped(v)));
      }
      axes.append(node("line", { x1: box.left, x2: width - box.right, y1: y(0), y2: y(0), class: "axis" }));
      for (const v of decades(from, to, Math.max(3, Math.floor(inner / 85)))) {
        axes.append(node("line", { x1: x(v), x2: x(v), y1: y(0), y2: y(0) + 5, class: "axis" }));
        axes.append(node("text", { x: x(v), y: y(0) + 19, "text-anchor": "middle", class: "tick" }, number(10 ** v)));
      }
      axes.append(node("text", { x: box.left + inner / 2, y: height - 8, "text-anchor": "middle", class: "label" }, titles[0]));
      axes.append(node("text", { transform: `translate(13 ${box.top + tall / 2}) rotate(-90)`, "text-anchor": "middle", class: "label" }, titles[1]));
    };
    const rounds = (top, wanted) => {
      const rough = top / wanted, power = 10 ** Math.floor(Math.log10(rough));
      const size = Math.max(1, ([1, 2, 5].find((m) => m * power >= rough) || 10) * power);
      return Array.from({ length: Math.floor(top / size) + 1 }, (_, k) => k * size);
    };
    const decades = (a, b, wanted) => {
      const every = Math.max(1, Math.ceil((b - a) / wanted)), found = [];
      for (let k = Math.ceil(a / every) * every; k <= b; k += every) found.push(k);
      if (found.length >= 2) return found;
      const fine = [];
      const rough = (10 ** b - 10 ** a) / wanted, power = 10 ** Math.floor(Math.log10(rough));
      const size = ([1, 2, 5].find((m) => m * power >= rough) || 10) * power;
      for (let k = Math.ceil(10 ** a / size); k * size <= 10 ** b; k += 1) if (k > 0) fine.push(Math.log10(k * size));
      return fine;
    };
    const look = (a, b) => {
      const width = clamp(b - a, 4 * step, end - low);
      const middle = clamp((a + b) / 2, low + width / 2, end - width / 2);
      from = middle - width / 2;
      to = middle + width / 2;
      draw();
    };
    const zoom = (factor, at = (from + to) / 2) => look(at - (at - from) / factor, at + (to - at) / factor);
    const move = (share) => look(from + share * (to - from), to + share * (to - from));
    const at = (clientX) => {
      const around = svg.getBoundingClientRect();
      const inner = around.width - box.left - box.right;
      return from + clamp((clientX - around.left - box.left) / inner, 0, 1) * (to - from);
    };
    const actions = { in: () => zoom(1.5), out: () => zoom(1 / 1.5), left: () => move(-0.2),
      right: () => move(0.2), all: () => look(low, end),
      near: () => look(Math.log10(threshold) - 0.35, Math.log10(threshold) + 0.35) };
    keys(frame, actions);
    buttons("zoom", actions);
    follow(frame, (dx) => move(-dx / Math.max(frame.clientWidth - box.left - box.right, 1)),
      (factor, clientX) => zoom(factor, at(clientX)));
    frame.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && document.activeElement !== frame) return; // the page scrolls
      zoom(1.2 ** -Math.sign(e.deltaY), at(e.clientX));
      e.preventDefault();
    }, { passive: false });
    frame.addEventListener("dblclick", (e) => zoom(2, at(e.clientX)));
    new ResizeObserver(draw).observe(frame);
    draw();
  };

  // The cloud: points turned about the middle of their cube, far ones first.
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const turnable = (canvas) => {
    const cloud = data.cloud, raw = bytes(cloud.points), inlier = bytes(cloud.inlier);
    const view = new DataView(raw.buffer), n = inlier.length;
    const at = Float32Array.from({ length: 3 * n }, (_, k) => view.getUint16(2 * k, true) / 65535 - 0.5);
    const start = { turn: 0.6, tilt: 0.45, size: 1 };
    const box = cloud.box || [[0, 0, 0], [1, 1, 1]]; // the ends of each axis, inside the cube
    const edge = (k, e, beyond = 0) => box[e][k] - 0.5 + (e ? beyond : -beyond);
    // How wide and high the box is at the most when it is turned, as it is tilted first.
    const [a, b, c] = [0, 1, 2].map((k) => edge(k, 1) - edge(k, 0)), across = Math.hypot(a, b, 0.5 * c);
    const up = Math.cos(start.tilt) * c + Math.sin(start.tilt) * Math.hypot(a, b);
    let { turn, tilt, size } = start, waiting = false;
    const order = Uint32Array.from({ length: n }, (_, k) => k), depth = new Float32Array(n);

    const draw = () => {
      waiting = false;
      const ratio = window.devicePixelRatio || 1, wide = canvas.clientWidth, tall = canvas.clientHeight;
      canvas.width = Math.max(1, Math.round(wide * ratio));
      canvas.height = Math.max(1, Math.round(tall * ratio));
      const pen = canvas.getContext("2d");
      pen.scale(ratio, ratio);
      const unit = size * 0.84 * Math.min(wide / across, tall / up), ct = Math.cos(turn), st = Math.sin(turn);
      const cp = Math.cos(tilt), sp = Math.sin(tilt);
      // (x, y, z) with z up: turn about z, then tilt towards the eye.
      const project = (x, y, z) => {
        const a = ct * x - st * y, b = st * x + ct * y;
        return [wide / 2 + unit * a, tall / 2 - unit * (cp * z + sp * b), cp * b - sp * z];
      };
      const corner = (k) => project(...[0, 1, 2].map((j) => edge(j, (k >> j) & 1)));
      pen.strokeStyle = color("--rule");
      pen.lineWidth = 1;
      for (let k = 0; k < 8; k += 1) {
        for (const bit of [1, 2, 4]) {
          if (k & bit) continue;
          const [x1, y1] = corner(k), [x2, y2] = corner(k | bit);
          pen.beginPath();
          pen.moveTo(x1, y1);
          pen.lineTo(x2, y2);
          pen.stroke();
        }
      }
      if (cloud.patch) {
        pen.beginPath();
        for (const p of cloud.patch) pen.lineTo(...project(p[0] - 0.5, p[1] - 0.5, p[2] - 0.5).slice(0, 2));
        pen.closePath();
        pen.globalAlpha = 0.14;
        pen.fillStyle = color("--in");
        pen.fill();
        pen.globalAlpha = 0.8;
        pen.strokeStyle = color("--in");
        pen.stroke();
        pen.globalAlpha = 1;
      }
      for (let i = 0; i < n; i += 1) depth[i] = cp * (st * at[3 * i] + ct * at[3 * i + 1]) - sp * at[3 * i + 2];
      order.sort((a, b) => depth[b] - depth[a]);
      const colors = [color("--out"), color("--in")], dot = n > 4000 ? 1.6 : 2.6;
      pen.globalAlpha = 0.8;
      for (const i of order) {
        const [x, y] = project(at[3 * i], at[3 * i + 1], at[3 * i + 2]);
        const d = dot * (1 - 0.5 * depth[i]);
        pen.fillStyle = colors[inlier[i]];
        pen.fillRect(x - d / 2, y - d / 2, d, d);
      }
      pen.globalAlpha = 1;
      pen.fillStyle = color("--text");
      // Each axis has its name and its ends at the edge of the box where they hide least.
      [0, 1, 2].forEach((k) => {
        const [a, b] = [0, 1, 2].filter((j) => j !== k);
        const on = ([i, j], t) => {
          const p = [0, 0, 0];
          p[a] = edge(a, i, 0.06);
          p[b] = edge(b, j, 0.06);
          p[k] = (1 - t) * edge(k, 0) + t * edge(k, 1);
          return project(...p);
        };
        const side = [[0, 0], [0, 1], [1, 0], [1, 1]].reduce((p, q) => {
          const [x, y] = on(p, 0.5), [u, v] = on(q, 0.5);
          return (k === 2 ? u < x : v > y) ? q : p;
        });
        const ends = [0, 1].map((e) => number(cloud.low[k] + cloud.size * box[e][k]));
        const [from, to] = [on(side, 0), on(side, 1)];
        let texts = [[0.5, cloud.names[k]], [0.05, ends[0]], [0.95, ends[1]]];
        if (Math.hypot(to[0] - from[0], to[1] - from[1]) < 60) texts = [[0.5, `${cloud.names[k]}: ${ends.join(" … ")}`]];
        pen.textAlign = k === 2 ? "right" : "center";
        for (const [t, text] of texts) {
          const [x, y] = on(side, t);
          pen.font = `${t === 0.5 ? 13 : 11}px system-ui, sans-serif`;
          const room = k === 2 ? pen.measureText(text).width + 4 : 20;
          pen.fillText(text, clamp(x, room, wide - 20), clamp(y, 14, tall - 6));
        }
      });
    };
    const soon = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(draw);
    };
    const change = (a, b, factor = 1) => {
      turn += a;
      tilt = clamp(tilt + b, -1.57, 1.57);
      size = clamp(size * factor, 0.3, 12);
      canvas.dataset.view = [turn, tilt, size].map((v) => v.toFixed(3)).join(" ");
      soon();
    };
    const actions = { left: () => change(-0.15, 0), right: () => change(0.15, 0), up: () => change(0, 0.12),
      down: () => change(0, -0.12), in: () => change(0, 0, 1.25), out: () => change(0, 0, 0.8),
      all: () => { ({ turn, tilt, size } = start); change(0, 0); } };
    keys(canvas, actions);
    buttons("cloud", actions);
    follow(canvas, (dx, dy) => change(0.008 * dx, 0.008 * dy), (factor) => change(0, 0, factor));
    canvas.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && document.activeElement !== canvas) return;
      change(0, 0, 1.15 ** -Math.sign(e.deltaY));
      e.preventDefault();
    }, { passive: false });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", soon);
    new ResizeObserver(soon).observe(canvas);
    change(0, 0);
  };

  // Tables: a click on a heading sorts by it.
  const sortable = (table) => {
    const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      if (head.dataset.kind !== "number") return;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const sign = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
        const value = (row) => Number(row.cells[column].dataset.sort);
        body.append(...[...body.rows].sort((a, b) => sign * (value(a) - value(b))));
      });
    });
  };

  const frame = document.querySelector("[data-zoom]"), canvas = document.getElementById("cloud");
  if (frame && data.distances) zoomable(frame);
  if (canvas && data.cloud) turnable(canvas);
  document.querySelectorAll("table.sortable").forEach(sortable);
  document.querySelectorAll("input[data-mask]").forEach((box) => {
    const scene = box.closest("figure").querySelector(".scene");
    box.addEventListener("change", () => scene.classList.toggle("bare", !box.checked));
  });
})();
