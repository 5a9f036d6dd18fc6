// Drawing: only the rows that are to be seen.

const graph = document.getElementById("graph");
const canvas = document.getElementById("boxes");
const room = document.getElementById("room");
const pen = canvas.getContext("2d", {alpha: false});
const isDark = matchMedia("(prefers-color-scheme: dark)");
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
const SHOWN_LETTERS = 400;

// Hue, saturation and lightness of the classes of code.
const PAINTS = [[40, 6, 80], [22, 88, 72], [212, 72, 78], [188, 52, 80], [354, 80, 79], [46, 88, 70],
  [318, 58, 80], [150, 46, 69], [262, 62, 83], [84, 44, 71]];
const LABEL_PAINT = [220, 14, 88];

let hovered = -1;
let selected = -1;

const paintOf = (code, twin, shade) => {
  const [hue, saturation, lightness] = PAINTS[code];
  const light = lightness + shade - (isDark.matches ? 13 : 0);
  return `hsl(${hue + twin * 20} ${saturation - (isDark.matches ? 14 : 0)}% ${light}%)`;
};
const kindPaint = (kind, shade = 0) => paintOf(kinds[kind].code, kinds[kind].twin, shade);

// Neighbours of one kind differ a little, and a function is the same everywhere.
const shades = new Map();
const shadeOf = (key) => {
  let shade = shades.get(key);
  if (shade === undefined) {
    let hash = 7;
    for (const letter of nameOfKey(key).slice(0, 60)) hash = (hash * 31 + letter.codePointAt(0)) % 9973;
    shade = (hash % 7) - 3;
    shades.set(key, shade);
  }
  return shade;
};

const fillOf = (node) => {
  const key = tree.keys[node];
  if (node !== 0 && key >= 0) return kindPaint(kindOfFunction[key], shadeOf(key));
  const [hue, saturation, lightness] = LABEL_PAINT;
  return `hsl(${hue} ${saturation}% ${lightness - (isDark.matches ? 20 : 0)}%)`;
};

const widths = new Map();
const widthOf = (text) => {
  let width = widths.get(text);
  if (width === undefined) {
    if (widths.size > 20000) widths.clear();
    width = pen.measureText(text).width;
    widths.set(text, width);
  }
  return width;
};

const fitted = (name, width) => {
  let text = name.slice(0, SHOWN_LETTERS);
  if (text.length === name.length && widthOf(text) <= width) return text;
  let low = 0;
  let high = Math.min(text.length, Math.ceil(width / 3));
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(text.slice(0, middle) + "…").width <= width) low = middle; else high = middle - 1;
  }
  return low < 2 ? "" : text.slice(0, low) + "…";
};

const rowTop = (row) => state.shape === "flame"
  ? Math.max(deepest * ROW, graph.clientHeight) - (row + 1) * ROW
  : row * ROW;
const rowAt = (y) => state.shape === "flame"
  ? Math.floor((Math.max(deepest * ROW, graph.clientHeight) - y) / ROW)
  : Math.floor(y / ROW);

const drawBox = (box, top, colors) => {
  const gap = box.width > 3 ? 1 : box.width > 1 ? 0.4 : 0;
  const wide = box.width - gap;
  pen.globalAlpha = 1;
  if (box.node < 0) {
    pen.fillStyle = colors.narrow;
    pen.fillRect(box.x, top, Math.max(wide, 0.5), ROW - 1);
    return;
  }
  const isDim = hits !== null && !hits[box.node];
  pen.globalAlpha = isDim ? 0.22 : box.above ? 0.6 : 1;
  pen.fillStyle = fillOf(box.node);
  pen.fillRect(box.x, top, wide, ROW - 1);
  pen.globalAlpha = isDim ? 0.5 : 1;
  if (wide > 22) {
    pen.fillStyle = isDim || (box.above && isDark.matches) ? colors.text : colors.ink;
    pen.fillText(fitted(tree.name(box.node), wide - 10), box.x + 5, top + ROW / 2);
  }
  pen.globalAlpha = 1;
  if (box.node === hovered || box.node === selected) {
    pen.strokeStyle = box.node === selected ? colors.accent : colors.text;
    pen.lineWidth = box.node === selected ? 2 : 1;
    pen.strokeRect(box.x + 1, top + 1, Math.max(wide - 2, 1), ROW - 3);
  }
};

const draw = () => {
  const style = getComputedStyle(document.documentElement);
  const colors = {text: style.getPropertyValue("--text"), accent: style.getPropertyValue("--accent"),
    card: style.getPropertyValue("--card"), narrow: style.getPropertyValue("--line"), ink: "#1b1916"};
  const scroll = graph.scrollTop;
  pen.fillStyle = colors.card;
  pen.globalAlpha = 1;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.font = FONT;
  pen.textBaseline = "middle";
  for (let row = 0; row < rows.length; ++row) {
    const top = rowTop(row) - scroll;
    if (top + ROW < 0 || top > graph.clientHeight) continue;
    for (const box of rows[row]) drawBox(box, top, colors);
  }
};

let isDue = false;
const drawSoon = () => {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    draw();
  });
};

// After anything that moves boxes.
const refresh = () => {
  const width = graph.clientWidth;
  const height = graph.clientHeight;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  layOut(width);
  room.style.height = deepest * ROW + "px";
  draw();
};
