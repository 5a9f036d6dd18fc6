// What is shown, and where.

const ROW = 21;
const state = {group: "threads", order: "callers", shape: "icicle", search: "", only: new Set(), zoom: 0};
const DEFAULTS = {group: "threads", order: "callers", shape: "icicle"};

let tree = null;
let hits = null;       // of each node: 1 where it is sought; null: nothing is sought
let hitSamples = 0;
let rows = [];         // by depth: boxes from left to right
let pathToZoom = [];
let deepest = 0;

const soughtKeys = () => {
  const text = state.search.toLowerCase();
  const isNamed = (i) => data.names[i].toLowerCase().includes(text) ||
    data.strings[data.modules[i]].toLowerCase().includes(text);
  const functions = data.names.map((_, i) =>
    (text === "" || isNamed(i)) && (state.only.size === 0 || state.only.has(kinds[kindOfFunction[i]].name)));
  const labels = data.labels.map((label) =>
    text !== "" && state.only.size === 0 && label.toLowerCase().includes(text));
  return (key) => key < 0 ? labels[~key] : functions[key];
};

// Marks what is sought, and counts its samples: of boxes above each other once.
const seek = () => {
  hits = null;
  hitSamples = 0;
  if (state.search === "" && state.only.size === 0) return;
  const isSought = soughtKeys();
  const length = tree.parents.length;
  hits = new Uint8Array(length);
  const covered = new Uint8Array(length);
  for (let i = 1; i < length; ++i) {
    covered[i] = covered[tree.parents[i]];
    if (!isSought(tree.keys[i])) continue;
    hits[i] = 1;
    if (!covered[i]) hitSamples += tree.totals[i];
    covered[i] = 1;
  }
};

// Boxes of a zoomed node, and the nodes above it over the whole width. Boxes too narrow to be seen
// become one with their neighbours, and what is above them is not looked at.
const layOut = (width) => {
  rows = [];
  pathToZoom = [];
  for (let node = state.zoom; ; node = tree.parents[node]) {
    pathToZoom.unshift(node);
    if (node === 0) break;
  }
  for (const node of pathToZoom) rows.push([{node, x: 0, width, above: node !== state.zoom}]);
  const scale = width / Math.max(tree.totals[state.zoom], 1);
  const origin = tree.begins[state.zoom];
  let level = [state.zoom];
  while (level.length > 0) {
    const boxes = [];
    const next = [];
    for (const parent of level) {
      for (const node of tree.children[parent] ?? []) {
        const x = (tree.begins[node] - origin) * scale;
        const wide = tree.totals[node] * scale;
        const last = boxes[boxes.length - 1];
        if (wide >= 0.5) {
          boxes.push({node, x, width: wide, above: false});
          next.push(node);
        } else if (last && last.node < 0 && x - (last.x + last.width) < 0.5) {
          last.width = x + wide - last.x;
        } else {
          boxes.push({node: -1, x, width: wide, above: false});
        }
      }
    }
    if (next.length > 0) rows.push(boxes);
    level = next;
  }
  deepest = rows.length;
};

const boxAt = (row, x) => {
  const boxes = rows[row];
  if (!boxes) return null;
  let low = 0;
  let high = boxes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (boxes[middle].x + boxes[middle].width <= x) low = middle + 1; else high = middle;
  }
  const box = boxes[low];
  return box && box.x <= x && box.node >= 0 ? box : null;
};

const boxOf = (node) => rows[tree.depths[node]]?.find((box) => box.node === node) ?? null;
