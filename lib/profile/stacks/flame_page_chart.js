// SPDX-License-Identifier: MIT
// A chart: a canvas that shows a tree as rows of boxes, of which only those in sight are drawn.

const ROW = 21;
const MOST_LETTERS = 1500; // of a name in a title or tooltip
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
const isDark = matchMedia("(prefers-color-scheme: dark)");

// Hue, saturation and lightness by class of code.
const PAINTS = [[40, 6, 80], [22, 88, 72], [212, 72, 78], [188, 52, 80], [354, 80, 79], [46, 88, 70],
  [318, 58, 80], [150, 46, 69], [262, 62, 83], [84, 44, 71]];
const INK = "#1b1916";
// Boxes that are not found, and their names.
const DIM = 0.22;
const DIM_TEXT = 0.8;

const kindPaint = (kind, shade = 0) => {
  const {code, twin} = kinds[kind];
  const [hue, saturation, lightness] = PAINTS[code];
  const light = lightness + shade - (isDark.matches ? 13 : 0);
  return `hsl(${hue + twin * 20} ${saturation - (isDark.matches ? 14 : 0)}% ${light}%)`;
};

// A function has the same shade everywhere; neighbours of one kind differ a little.
const shades = new Map();
const shadeOf = (key) => {
  let shade = shades.get(key);
  if (shade === undefined) {
    let hash = 7;
    for (const letter of nameOf(key).slice(0, 60)) hash = (hash * 31 + letter.codePointAt(0)) % 9973;
    shade = (hash % 7) - 3;
    shades.set(key, shade);
  }
  return shade;
};

const paintOf = (key) => key >= 0 ? kindPaint(kindOf[key], shadeOf(key)) : isDark.matches ? "hsl(220 14% 68%)" : "hsl(220 14% 88%)";

const themeColors = () => {
  const style = getComputedStyle(document.documentElement);
  const colors = {};
  for (const name of ["text", "quiet", "accent", "card", "line", "field"]) {
    colors[name] = style.getPropertyValue(`--${name}`).trim();
  }
  return colors;
};

// A place to cut a text, which is not within a surrogate pair.
const wholeLetter = (text, at) => text.charCodeAt(at) >> 10 === 0x37 && at > 0 ? at - 1 : at;

// A text of at most so many letters, shortened in the middle: names that begin alike often end with
// the function's own name.
const shortened = (text, letters) => {
  if (text.length <= letters) return text;
  const end = (letters - 1) >> 1;
  const head = wholeLetter(text, letters - 1 - end);
  return text.slice(0, head) + "…" + text.slice(wholeLetter(text, text.length - end));
};

// The same for a width in pixels; "" if only three letters or less fit.
const fitted = (pen, text, width) => {
  const most = Math.ceil(width / 3);
  if (text.length <= most && pen.measureText(text).width <= width) return text;
  let low = 0;
  let high = Math.min(text.length, most);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(shortened(text, middle)).width <= width) low = middle; else high = middle - 1;
  }
  return low < 4 ? "" : shortened(text, low);
};

// The rows of a node: the nodes above it over the whole width, then its boxes from left to right.
// Boxes too narrow to be seen become one with their neighbours, as node -1, and what is below them
// is left out: `hidden` is the number of levels that no row shows.
const layOut = (tree, zoom, width) => {
  const rows = tree.pathTo(zoom).map((node) => [{node, x: 0, width, isAbove: node !== zoom}]);
  const scale = width / Math.max(tree.totals[zoom], 1);
  const origin = tree.begins[zoom];
  let level = [zoom];
  let deepest = 0;
  while (level.length > 0) {
    const boxes = [];
    const next = [];
    for (const parent of level) {
      for (const node of tree.childrenOf(parent)) {
        const x = (tree.begins[node] - origin) * scale;
        const wide = tree.totals[node] * scale;
        const last = boxes[boxes.length - 1];
        if (wide < 0.5) deepest = Math.max(deepest, tree.depths[node] + tree.heights[node]);
        if (wide >= 0.5) {
          boxes.push({node, x, width: wide, isAbove: false});
          next.push(node);
        } else if (last && last.node < 0 && x - (last.x + last.width) < 0.5) {
          last.width = x + wide - last.x;
        } else {
          boxes.push({node: -1, x, width: wide, isAbove: false});
        }
      }
    }
    if (boxes.length > 0) rows.push(boxes);
    level = next;
  }
  return {rows, hidden: Math.max(deepest + 1 - rows.length, 0)};
};

// What is sought in a tree: marks of nodes, the samples that have one, and the marked nodes in the
// order in which one reads them.
const findIn = (tree, isSought) => {
  const hits = new Uint8Array(tree.size);
  const covered = new Uint8Array(tree.size); // boxes above each other count once
  const nodes = [];
  let samples = 0;
  for (let node = 0; node < tree.size; ++node) {
    if (node > 0) covered[node] = covered[tree.parents[node]];
    if (tree.totals[node] === 0 || !isSought(tree.keys[node])) continue;
    hits[node] = 1;
    nodes.push(node);
    if (!covered[node]) samples += tree.totals[node];
    covered[node] = 1;
  }
  nodes.sort((a, b) => tree.begins[a] - tree.begins[b] || tree.depths[a] - tree.depths[b]);
  return {hits, nodes, samples};
};

const hiddenText = (levels) => `${count.format(levels)} more level${levels === 1 ? " is" : "s are"} too narrow to be drawn`;

class Chart {
  // `scroller` holds the canvas and an element that gives it its height. `on` has the callbacks
  // describe(), hover(node, event), zoom(node) and menu(node, x, y).
  constructor(scroller, on) {
    this.scroller = scroller;
    this.room = scroller.querySelector(".room");
    this.canvas = scroller.querySelector("canvas");
    this.pen = this.canvas.getContext("2d", {alpha: false});
    this.on = on;
    this.drawSoon = oncePerFrame(() => this.draw());
    this.growsUp = false;
    this.tree = null;
    this.found = null; // the result of findIn(); null: nothing is sought
    this.rows = [];
    this.hidden = 0;      // levels that are not in rows
    this.height = 0;      // of all rows
    this.shownHeight = 0; // of what is in sight
    this.away = 0;        // how far the chart is scrolled from its root
    this.kept = 0;        // a least height, so that a zoom does not move the boxes under the pointer
    this.zoom = 0;
    this.hovered = -1;
    this.selected = -1;
    this.listen();
  }

  show(tree, zoom, found) {
    if (tree !== this.tree) {
      this.hovered = this.selected = -1;
      this.kept = 0;
    } else if (zoom !== this.zoom) {
      this.kept = this.away + this.scroller.clientHeight;
    }
    this.tree = tree;
    this.zoom = zoom;
    this.found = found;
    this.refresh();
  }

  // After any change that moves boxes.
  refresh() {
    const {clientWidth: width, clientHeight} = this.scroller;
    if (this.tree === null || width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    Object.assign(this, layOut(this.tree, this.zoom, width));
    const lines = this.rows.length + (this.hidden > 0 ? 1 : 0);
    this.height = Math.max(lines * ROW, clientHeight, this.kept);
    this.room.style.height = this.height + "px";
    this.shownHeight = clientHeight;
    this.scrollAway(this.away);
    this.draw();
  }

  // Scrolls so far from the root, which is at the top or at the bottom.
  scrollAway(distance) {
    const most = this.height - this.scroller.clientHeight;
    this.away = Math.max(Math.min(distance, most), 0);
    this.scroller.scrollTop = this.growsUp ? most - this.away : this.away;
  }
  noteScroll() {
    const {scrollTop, clientHeight} = this.scroller;
    if (clientHeight !== this.shownHeight) return; // resized, and not scrolled by the user
    this.away = this.growsUp ? this.height - clientHeight - scrollTop : scrollTop;
    this.drawSoon();
  }

  rowTop(row) { return this.growsUp ? this.height - (row + 1) * ROW : row * ROW; }
  rowAt(y) { return Math.floor((this.growsUp ? this.height - y : y) / ROW); }

  drawBox(box, top, colors) {
    const {pen, tree} = this;
    const wide = box.width - (box.width > 3 ? 1 : box.width > 1 ? 0.4 : 0);
    pen.globalAlpha = 1;
    if (box.node < 0) {
      pen.fillStyle = colors.line;
      pen.fillRect(box.x, top, Math.max(wide, 0.5), ROW - 1);
      return;
    }
    const isDim = this.found !== null && !this.found.hits[box.node];
    pen.globalAlpha = isDim ? DIM : box.isAbove ? (isDark.matches ? 0.4 : 0.6) : 1;
    pen.fillStyle = boxPaint(tree, box.node);
    pen.fillRect(box.x, top, wide, ROW - 1);
    pen.globalAlpha = isDim ? DIM_TEXT : 1;
    if (wide > 22) {
      pen.fillStyle = isDim || (box.isAbove && isDark.matches) ? colors.text : INK;
      pen.fillText(fitted(pen, boxName(tree, box.node), wide - 10), box.x + 5, top + ROW / 2);
    }
    pen.globalAlpha = 1;
    if (box.node === this.hovered || box.node === this.selected) {
      const isSelected = box.node === this.selected;
      pen.strokeStyle = isSelected ? colors.accent : colors.text;
      pen.lineWidth = isSelected ? 2 : 1;
      pen.strokeRect(box.x + 1, top + 1, Math.max(wide - 2, 1), ROW - 3);
    }
  }

  draw() {
    const {pen, scroller} = this;
    const colors = themeColors();
    pen.globalAlpha = 1;
    pen.fillStyle = colors.card;
    pen.fillRect(0, 0, this.canvas.width, this.canvas.height);
    pen.font = FONT;
    pen.textBaseline = "middle";
    this.rows.forEach((boxes, row) => {
      const top = this.rowTop(row) - scroller.scrollTop;
      if (top + ROW < 0 || top > scroller.clientHeight) return;
      pen.save(); // letters with many accents are higher than a row
      pen.beginPath();
      pen.rect(0, top, scroller.clientWidth, ROW);
      pen.clip();
      for (const box of boxes) this.drawBox(box, top, colors);
      pen.restore();
    });
    if (this.hidden === 0) return;
    pen.fillStyle = colors.quiet;
    pen.fillText(hiddenText(this.hidden), 5, this.rowTop(this.rows.length) - scroller.scrollTop + ROW / 2);
  }

  nodeAt(event) {
    const frame = this.scroller.getBoundingClientRect();
    const x = event.clientX - frame.left;
    const boxes = this.rows[this.rowAt(event.clientY - frame.top + this.scroller.scrollTop)] ?? [];
    let low = 0;
    let high = boxes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (boxes[middle].x + boxes[middle].width <= x) low = middle + 1; else high = middle;
    }
    return boxes[low] && boxes[low].x <= x ? boxes[low].node : -1;
  }

  isShown(node) { return this.rows[this.tree.depths[node]]?.some((box) => box.node === node) ?? false; }

  scrollTo(node) {
    const begin = this.tree.depths[node] * ROW;
    const {clientHeight} = this.scroller;
    if (begin < this.away) this.scrollAway(begin - ROW);
    if (begin + ROW > this.away + clientHeight) this.scrollAway(begin + 2 * ROW - clientHeight);
  }
  // Whether some of the node's row is in sight.
  isInSight(node) {
    const begin = this.tree.depths[node] * ROW;
    return begin + ROW > this.away && begin < this.away + this.scroller.clientHeight;
  }
  scrollToRoot() { this.scrollAway(0); }

  // The node of which details are shown.
  get current() { return this.hovered >= 0 ? this.hovered : this.selected >= 0 ? this.selected : this.zoom; }

  hover(node, event) {
    this.canvas.style.cursor = node >= 0 ? "pointer" : "default";
    const isNew = node !== this.hovered;
    this.hovered = node;
    this.on.hover(node, event);
    if (isNew) this.drawSoon();
  }

  select(node) {
    if (node < 0) return;
    this.hover(-1);
    this.selected = node;
    this.scrollTo(node);
    this.on.describe();
    this.drawSoon();
  }

  // Selects the neighbour of the selected box, among boxes that are shown.
  move(arrow) {
    if (this.selected < 0 || !this.isShown(this.selected)) return this.select(this.zoom);
    const node = this.selected;
    if (arrow === (this.growsUp ? "ArrowUp" : "ArrowDown")) {
      return this.select(this.tree.childrenOf(node).find((child) => this.isShown(child)) ?? -1);
    }
    if (arrow.endsWith("Up") || arrow.endsWith("Down")) {
      return this.select(node === 0 ? -1 : this.tree.parents[node]);
    }
    const row = this.rows[this.tree.depths[node]].filter((box) => box.node >= 0);
    const at = row.findIndex((box) => box.node === node);
    this.select(row[at + (arrow === "ArrowLeft" ? -1 : 1)]?.node ?? -1);
  }

  listen() {
    const {canvas} = this;
    canvas.addEventListener("pointermove", (event) => {
      if (event.pointerType !== "touch") this.hover(this.nodeAt(event), event);
    });
    canvas.addEventListener("pointerleave", () => this.hover(-1));
    canvas.addEventListener("click", (event) => {
      const node = this.nodeAt(event);
      if (node < 0) return;
      // A finger cannot hover: the first touch shows details, the second one zooms.
      const isTouch = event.pointerType === "touch";
      if (!isTouch || this.selected === node) this.on.zoom(node);
      this.selected = isTouch ? node : -1;
      this.on.describe();
      this.drawSoon();
    });
    canvas.addEventListener("contextmenu", (event) => {
      const node = this.nodeAt(event);
      if (node < 0) return;
      event.preventDefault();
      this.select(node);
      this.on.menu(node, event.clientX, event.clientY);
    });
    canvas.addEventListener("keydown", (event) => this.press(event));
    this.scroller.addEventListener("scroll", () => this.noteScroll(), {passive: true});
    new ResizeObserver(() => this.refresh()).observe(this.scroller);
  }

  press(event) {
    if (this.tree === null) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const {key} = event;
    if (key.startsWith("Arrow")) this.move(key);
    else if ((key === "Enter" || key === " ") && this.selected >= 0) this.on.zoom(this.selected);
    else if (key === "Home") this.on.zoom(0);
    else if (key === "m" || key === "ContextMenu") this.openMenu();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  openMenu() {
    const node = this.selected >= 0 ? this.selected : this.zoom;
    const frame = this.scroller.getBoundingClientRect();
    const top = this.rowTop(this.tree.depths[node]) - this.scroller.scrollTop;
    const box = this.rows[this.tree.depths[node]]?.find((one) => one.node === node);
    this.on.menu(node, frame.left + (box?.x ?? 0) + 12, frame.top + top + ROW);
  }
}
