// The page around the boxes: what one can press, what is said, and the address that remembers it.

const byId = (id) => document.getElementById(id);
const count = new Intl.NumberFormat("en");
const percent = (part, whole) => whole > 0 ? (100 * part / whole).toFixed(part === whole ? 0 : 2) + " %" : "–";

// "file.c:12", or of several lines that samples are at "file.c:12–40".
const fileOf = (key) => {
  const file = data.strings[data.files[key]];
  const [first, last] = [data.first_lines[key], data.last_lines[key]];
  if (!file || !first) return file;
  return `${file}:${first}` + (last > first ? `–${last}` : "");
};

const describe = (node) => {
  const key = tree.keys[node];
  const isCode = node !== 0 && key >= 0;
  const file = isCode ? fileOf(key) : "";
  const module = isCode ? data.strings[data.modules[key]] : "";
  const doubts = isCode && data.doubts ? data.strings[data.doubts[key]] : "";
  const doubtful = doubts && "doubtful: " + doubts.replaceAll(",", ", ");
  const kind = isCode ? kinds[kindOfFunction[key]] : null;
  byId("name").textContent = tree.name(node).slice(0, 2000);
  byId("kind").textContent = kind ? (kind.isJit && kind.name !== "JIT" ? "JIT " : "") + kind.name : "";
  byId("kind").style.backgroundColor = kind ? kindPaint(kindOfFunction[key]) : "";
  byId("place").textContent = [module, file, doubtful].filter(Boolean).join(" · ");
  byId("place").title = byId("place").textContent.slice(0, 2000);
  byId("total").textContent = count.format(tree.totals[node]);
  byId("self").textContent = count.format(tree.selfs[node]);
  byId("share").textContent = percent(tree.totals[node], tree.totals[0]);
  byId("of-parent").textContent = percent(tree.totals[node], tree.totals[tree.parents[node]]);
};
const describeCurrent = () => describe(hovered >= 0 ? hovered : selected >= 0 ? selected : state.zoom);

const tip = byId("tip");
const showTip = (node, x, y) => {
  tip.hidden = node < 0;
  if (node < 0) return;
  tip.firstChild.textContent = tree.name(node).slice(0, 600);
  tip.lastChild.textContent = `${count.format(tree.totals[node])} samples · ` +
    `${percent(tree.totals[node], tree.totals[0])} of all`;
  const left = Math.min(x + 14, innerWidth - tip.offsetWidth - 8);
  const below = y + 18 + tip.offsetHeight < innerHeight;
  tip.style.transform = `translate(${Math.max(left, 8)}px, ${below ? y + 18 : y - tip.offsetHeight - 10}px)`;
};

const showFound = () => {
  byId("matched").textContent = hits === null ? ""
    : `${count.format(hitSamples)} samples, ${percent(hitSamples, tree.totals[0])}`;
};

const address = () => {
  const parts = new URLSearchParams();
  for (const [key, value] of Object.entries(DEFAULTS)) if (state[key] !== value) parts.set(key, state[key]);
  if (state.search) parts.set("search", state.search);
  for (const name of state.only) parts.append("only", name);
  if (state.zoom) parts.set("zoom", state.zoom);
  return "#" + parts;
};
const remember = (isStep) => {
  const now = address();
  if (now === (location.hash || "#")) return;
  history[isStep ? "pushState" : "replaceState"](null, "", now);
};

const pickTree = () => {
  tree = treeOf(state.group, state.order);
  if (!(state.zoom < tree.parents.length)) state.zoom = 0;
  hovered = selected = -1;
  showTip(-1);
  seek();
};

// Everything that depends on the state.
const show = () => {
  for (const name of ["shape", "order", "group"]) {
    document.querySelector(`input[name="${name}"][value="${state[name]}"]`).checked = true;
  }
  if (byId("search").value !== state.search) byId("search").value = state.search;
  for (const button of byId("kinds").querySelectorAll("button")) {
    button.setAttribute("aria-pressed", state.only.has(button.value));
  }
  byId("out").disabled = state.zoom === 0;
  showFound();
  refresh();
  describeCurrent();
};

const scrollToRow = (row) => {
  const top = rowTop(row);
  if (top < graph.scrollTop) graph.scrollTop = top - ROW;
  if (top + ROW > graph.scrollTop + graph.clientHeight) graph.scrollTop = top + 2 * ROW - graph.clientHeight;
};
const scrollToStart = () => { graph.scrollTop = state.shape === "flame" ? deepest * ROW : 0; };

const zoomTo = (node) => {
  if (node === state.zoom) return;
  state.zoom = node;
  hovered = -1;
  showTip(-1);
  remember(true);
  show();
  scrollToRow(tree.depths[node]);
};

const readAddress = () => {
  const parts = new URLSearchParams(location.hash.slice(1));
  for (const [key, value] of Object.entries(DEFAULTS)) {
    const asked = parts.get(key);
    const isKnown = asked !== null && [...document.getElementsByName(key)].some((one) => one.value === asked);
    state[key] = isKnown ? asked : value;
  }
  state.search = parts.get("search") ?? "";
  state.only = new Set(parts.getAll("only").filter((name) => kinds.some((one) => one.name === name)));
  const zoom = Number(parts.get("zoom"));
  state.zoom = Number.isInteger(zoom) && zoom > 0 ? zoom : 0;
  pickTree();
  show();
  scrollToStart();
  if (state.zoom) scrollToRow(tree.depths[state.zoom]);
};

const addFact = (term, text) => {
  const row = document.createElement("div");
  row.append(document.createElement("dt"), document.createElement("dd"));
  row.firstChild.textContent = term;
  row.lastChild.textContent = text;
  byId("facts").append(row);
};

// What is native and the kernel's first, then JIT code, and what nobody knows last.
const LEGEND_ORDER = [99, 3, 1, 2, 4, 5, 6, 7, 9, 8];
const addKinds = () => {
  byId("kinds").textContent = "";
  [...kinds.keys()].sort((a, b) => LEGEND_ORDER[kinds[a].code] - LEGEND_ORDER[kinds[b].code] || a - b)
    .forEach((index) => addKind(kinds[index], index));
};

const addKind = (kind, index) => {
  const button = document.createElement("button");
  button.type = "button";
  button.value = kind.name;
  const dot = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  dot.setAttribute("viewBox", "0 0 10 10");
  const circle = dot.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "rect"));
  circle.setAttribute("width", "10");
  circle.setAttribute("height", "10");
  circle.setAttribute("rx", "3");
  circle.style.fill = kindPaint(index);
  const share = document.createElement("i");
  share.textContent = percent(kind.self, data.samples);
  button.append(dot, (kind.isJit && kind.name !== "JIT" ? "JIT " : "") + kind.name, share);
  button.title = "Share of samples in such code itself. Press to pick it out.";
  button.addEventListener("click", () => {
    if (!state.only.delete(kind.name)) state.only.add(kind.name);
    seek();
    remember(false);
    show();
  });
  byId("kinds").appendChild(document.createElement("li")).append(button);
};

const nodeAt = (event) => {
  const frame = graph.getBoundingClientRect();
  const row = rowAt(event.clientY - frame.top + graph.scrollTop);
  return boxAt(row, event.clientX - frame.left)?.node ?? -1;
};

const hover = (node, event) => {
  showTip(node, event?.clientX, event?.clientY);
  canvas.style.cursor = node >= 0 ? "pointer" : "default";
  if (node === hovered) return;
  hovered = node;
  describeCurrent();
  drawSoon();
};

const select = (node) => {
  if (node < 0) return;
  hovered = -1;
  showTip(-1);
  selected = node;
  scrollToRow(tree.depths[node]);
  describeCurrent();
  drawSoon();
};

// The neighbour of a box in its row, among boxes that are shown.
const beside = (node, step) => {
  const shown = rows[tree.depths[node]].filter((box) => box.node >= 0);
  return shown[shown.findIndex((box) => box.node === node) + step]?.node ?? -1;
};
const move = (key) => {
  const node = selected >= 0 && boxOf(selected) ? selected : state.zoom;
  if (selected < 0) return select(node);
  const inwards = state.shape === "flame" ? "ArrowUp" : "ArrowDown";
  if (key === "ArrowLeft" || key === "ArrowRight") return select(beside(node, key === "ArrowLeft" ? -1 : 1));
  if (key !== inwards) return select(node === 0 ? -1 : tree.parents[node]);
  const child = (tree.children[node] ?? []).find((one) => boxOf(one));
  return select(child ?? -1);
};

const zoomOut = () => zoomTo(tree.parents[state.zoom]);

canvas.addEventListener("pointermove", (event) => {
  if (event.pointerType !== "touch") hover(nodeAt(event), event);
});
canvas.addEventListener("pointerleave", () => hover(-1));
canvas.addEventListener("click", (event) => {
  const node = nodeAt(event);
  if (node < 0) return;
  const isTouch = event.pointerType === "touch";
  if (!isTouch || selected === node) zoomTo(node);
  selected = isTouch ? node : -1;
  describeCurrent();
  drawSoon();
});
canvas.addEventListener("keydown", (event) => {
  if (event.key.startsWith("Arrow")) move(event.key);
  else if ((event.key === "Enter" || event.key === " ") && selected >= 0) zoomTo(selected);
  else if (event.key === "Home") { selected = 0; zoomTo(0); }
  else return;
  event.preventDefault();
});
addEventListener("keydown", (event) => {
  if (event.target === byId("search")) {
    if (event.key === "Escape") canvas.focus();
    return;
  }
  if (event.key === "Escape" && state.zoom) zoomOut();
  if (event.key === "/" && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    byId("search").select();
  }
});
byId("search").addEventListener("input", (event) => {
  state.search = event.target.value;
  seek();
  remember(false);
  show();
});
byId("out").addEventListener("click", zoomOut);
for (const name of ["shape", "order", "group"]) {
  byId(name).addEventListener("change", (event) => {
    state[name] = event.target.value;
    if (name !== "shape") {
      state.zoom = 0; // a node of another tree
      pickTree();
    }
    remember(true);
    show();
    scrollToStart();
  });
}
graph.addEventListener("scroll", drawSoon, {passive: true});
addEventListener("popstate", readAddress);
addEventListener("hashchange", readAddress);
isDark.addEventListener("change", () => {
  addKinds();
  show();
});
new ResizeObserver(() => {
  refresh();
}).observe(graph);

document.title = (data.title || "Stacks") + " – flame graph";
byId("title").textContent = data.title || "Flame graph";
byId("about").textContent = [data.command, data.host].filter(Boolean).join("  ·  ");
addFact("Samples", count.format(data.samples));
addFact("Seconds", (data.duration / 1e9).toFixed(2));
if (data.events.length > 0) addFact(data.events.length > 1 ? "Events" : "Event", data.events.join(", "));
if (data.exporter) addFact("Made by", data.exporter);
addKinds();
readAddress();
