// The page's controls and keys, and its start.

let noteTimer = 0;
const say = (text) => {
  byId("note").textContent = text;
  byId("note").hidden = false;
  clearTimeout(noteTimer);
  noteTimer = setTimeout(() => { byId("note").hidden = true; }, 2500);
};
const copy = async (text, what) => {
  let isCopied = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch { // no permission, or no secure context
    const field = document.body.appendChild(element("textarea", {value: text}));
    field.select();
    isCopied = document.execCommand("copy");
    field.remove();
  }
  say(isCopied ? `Copied the ${what}` : `The browser did not copy the ${what}`);
};
byId("link").addEventListener("click", () => copy(location.href, "link"));

const saveSvg = () => {
  if (state.view === "table") showFlame();
  const chart = currentChart();
  if (chart.tree === null) return say("There are no samples");
  const url = URL.createObjectURL(new Blob([svgOf(chart, document.title)], {type: "image/svg+xml"}));
  const name = (data.title || "stacks").split("/").pop().replace(/[^\w.-]/g, "_");
  element("a", {href: url, download: `${name}.svg`}).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
};
byId("save").addEventListener("click", saveSvg);

const goToMatch = (step) => {
  if (state.view === "table") {
    const at = table.keys.indexOf(table.selected);
    const key = table.keys[(at + step + table.keys.length + (at < 0 && step < 0 ? 1 : 0)) % table.keys.length];
    if (key !== undefined) table.on.select(key);
    return;
  }
  const chart = currentChart();
  const nodes = chart.found?.nodes ?? [];
  if (nodes.length === 0) return;
  const at = nodes.indexOf(chart.selected);
  const match = at >= 0 ? (at + step + nodes.length) % nodes.length : step > 0 ? 0 : nodes.length - 1;
  const node = nodes[match];
  if (!chart.isShown(node)) chart.on.zoom(node); // it is too narrow, or not in the zoomed box
  chart.select(node);
  byId("matched").textContent = `${count.format(match + 1)} of ${count.format(nodes.length)} boxes`;
};

const openHelp = () => byId("help").showModal();
const KEYS = [
  ["/", "Search functions and modules", () => byId("search").select()],
  ["n", "Next match (in the search field: Enter)", () => goToMatch(1)],
  ["N", "Previous match (in the search field: Shift+Enter)", () => goToMatch(-1)],
  ["f", "Flame graph", () => change({view: "flame"})],
  ["t", "Table of functions", () => change({view: "table"})],
  ["s", "Sandwich: callers and callees of a function", () => change({view: "sandwich"})],
  ["i", "Inverted order: leaf functions first", () => change({view: "flame", order: state.order === "inverted" ? "callers" : "inverted"})],
  ["Escape", "Show all: reset the zoom, then the range of times", () => {
    const zoomed = state.view === "sandwich" ? Object.values(sandwich).filter((chart) => chart.zoom !== 0)
      : state.view === "flame" && state.zoom ? [flame] : [];
    for (const chart of zoomed) chart.on.zoom(0);
    if (zoomed.length === 0 && state.range) change({range: null});
  }],
  ["?", "This help", openHelp],
];
const OTHER_KEYS = [
  ["Arrow keys", "In a chart or the table: move"],
  ["Enter", "In a chart: zoom; in the table: show callers and callees"],
  ["m, right button", "Menu of a function: only, hide, merge, collapse, copy"],
  ["Click", "Zoom to a box"],
  ["Drag in the time strip", "Select a range of times; a click selects all"],
];
for (const [key, text] of [...KEYS, ...OTHER_KEYS]) {
  byId("keys").append(element("tr", {}, element("th", {scope: "row"}, element("kbd", {textContent: key === "Escape" ? "Esc" : key})),
    element("td", {textContent: text})));
}

addEventListener("keydown", (event) => {
  const isTyping = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName) && event.target.type !== "radio";
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  if (isTyping) {
    if (event.key === "Escape") event.target.blur();
    if (event.key === "Enter" && event.target === byId("search")) goToMatch(event.shiftKey ? -1 : 1);
    return;
  }
  const act = KEYS.find(([key]) => key === event.key);
  if (!act) return;
  event.preventDefault();
  act[2]();
});

byId("ask").addEventListener("click", openHelp);
byId("search").addEventListener("input", (event) => {
  state.search = event.target.value;
  remember(false);
  show();
});
byId("regex").addEventListener("click", () => change({regex: !state.regex}));
byId("previous").addEventListener("click", () => goToMatch(-1));
byId("next").addEventListener("click", () => goToMatch(1));
byId("whole").addEventListener("click", () => change({range: null}));
for (const id of ["from", "to"]) {
  byId(id).addEventListener("change", () => {
    const from = Number(byId("from").value);
    const to = byId("to").value === "" ? DURATION + SLOT : Number(byId("to").value);
    if (from < to) change({range: [from, to]}); else showRange();
  });
}
for (const name of Object.keys(CHOICES)) {
  byId(name).addEventListener("change", (event) => change({[name]: event.target.value}));
}

const addOptions = (id, all, samples, nameOfNumber) => {
  const select = byId(id);
  select.append(element("option", {value: "", textContent: all}));
  for (const [number, total] of [...samples].slice(0, 1000)) {
    const share = percent(total, data.samples);
    select.append(element("option", {value: number, textContent: `${nameOfNumber(number).slice(0, 80)} – ${share}`}));
  }
  select.hidden = samples.size < 2;
  // A thread belongs to one process, so the choice of one replaces that of the other.
  const other = {process: {thread: null}, thread: {process: null}}[id];
  select.addEventListener("change", () => change({...other, [id]: select.value === "" ? null : Number(select.value)}));
};
const labelOf = (node) => nameOf(~data.frames[node]);
addOptions("event", "All events", samplesByEvent, (event) => data.events[event] ?? "");
addOptions("process", "All processes", samplesByProcess, labelOf);
addOptions("thread", "All threads", samplesByThread, labelOf);
byId("tiers").hidden = !hasTiers;
byId("time").hidden = data.counts.length === 0 || !hasTimes;

// Unknown code first, then the kernel and native code, then JIT code.
const LEGEND_ORDER = [99, 3, 1, 2, 4, 5, 6, 7, 9, 8];
const legend = kinds.map((_, kind) => kind).sort((a, b) => LEGEND_ORDER[kinds[a].code] - LEGEND_ORDER[kinds[b].code] || a - b);
for (const kind of legend) {
  const {name, label} = kinds[kind];
  const SVG = "http://www.w3.org/2000/svg";
  const dot = document.createElementNS(SVG, "svg");
  dot.setAttribute("viewBox", "0 0 10 10");
  const rect = dot.appendChild(document.createElementNS(SVG, "rect"));
  for (const [attribute, value] of [["width", 10], ["height", 10], ["rx", 3]]) rect.setAttribute(attribute, value);
  const button = element("button", {type: "button", value: name, title: "Share of the samples in this kind of code. Click to highlight this code."},
    dot, label, element("i"));
  button.addEventListener("click", () => {
    const only = new Set(state.only);
    if (!only.delete(name)) only.add(name);
    change({only});
  });
  byId("kinds").append(element("li", {}, button));
}

addEventListener("popstate", readAddress);
addEventListener("hashchange", readAddress);
isDark.addEventListener("change", show);

const addFact = (term, text) => byId("facts").append(element("div", {}, element("dt", {textContent: term}), element("dd", {textContent: text})));
const program = () => {
  const [process] = samplesByProcess.keys();
  return process === undefined ? "" : labelOf(process).replace(/ \(pid -?\d+\)$/, "");
};
const heading = program() || data.title || "Flame graph";
document.title = [heading, hasTimes && seconds(DURATION), amount(data.samples)].filter(Boolean).join(" – ");
byId("title").textContent = heading;
byId("about").textContent = [data.title, data.command, data.host].filter(Boolean).join("  ·  ");
byId("unit").textContent = UNIT[0].toUpperCase() + UNIT.slice(1);
addFact(byId("unit").textContent, count.format(data.samples));
if (hasTimes) addFact("Duration", seconds(DURATION));
if (data.events.length > 0) addFact(data.events.length > 1 ? "Events" : "Event", data.events.join(", "));
if (data.exporter) addFact("Made by", data.exporter);
readAddress();
