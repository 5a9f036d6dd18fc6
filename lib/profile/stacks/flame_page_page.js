// SPDX-License-Identifier: MIT
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
byId("link").addEventListener("click", () => {
  rememberNow();
  copy(location.href, "link");
});

// What the file shows, in words, and its charts.
const pictureText = () => {
  const order = state.view !== "sandwich" && state.order === "inverted" ? "inverted: callees first" : "";
  const sought = [state.search && `search: ${state.search}`, ...state.only].filter(Boolean).join(", ");
  return [selectionText(), order, sought && `${sought} (${matchedText()})`].filter(Boolean).join(" · ");
};
const pictureParts = () => {
  if (state.view !== "sandwich") return [{heading: "", chart: flame}];
  const name = shortened(byId("chosen").textContent, 120);
  return SIDES.map((side) => ({heading: `${byId(side).previousElementSibling.textContent} of ${name}`, chart: sandwich[side]}));
};
const saveSvg = () => {
  if (state.view === "table") showFlame();
  if (currentTree().totals[0] === 0) return say(emptyText());
  const text = svgOf(shortened(document.title, 120), shortened(pictureText(), 160), pictureParts());
  const url = URL.createObjectURL(new Blob([text], {type: "image/svg+xml"}));
  const name = shortened((data.title || "stacks").split("/").pop().replace(/[^\w.-]/g, "_"), 100).replace("…", "_");
  element("a", {href: url, download: `${name}.svg`}).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
};
byId("save").addEventListener("click", saveSvg);

// Selects a box. If it is too narrow to be read, or not in the zoomed box, zooms to the largest box
// in which it is wide enough.
const READABLE = 24; // pixels
const goToBox = (chart, node) => {
  const {tree} = chart;
  const isReadableIn = (zoom) => tree.totals[node] / tree.totals[zoom] * chart.scroller.clientWidth >= READABLE;
  const path = tree.pathTo(node);
  if (!path.includes(chart.zoom) || !isReadableIn(chart.zoom)) chart.on.zoom(path.find(isReadableIn));
  chart.select(node);
};
const goToMatch = (step) => {
  const isTable = state.view === "table";
  const chart = currentChart();
  const all = isTable ? table.keys : chart.found?.nodes ?? [];
  if (all.length === 0) return;
  const at = all.indexOf(isTable ? table.selected : chart.selected);
  const match = at >= 0 ? (at + step + all.length) % all.length : step > 0 ? 0 : all.length - 1;
  if (isTable) table.on.select(all[match]); else goToBox(chart, all[match]);
  byId("matched").textContent = `${count.format(match + 1)} of ${count.format(all.length)} · ${matchedText()}`;
};

// Changes the view and puts the focus on it, so that the arrow keys work.
const goToView = (changes) => {
  change(changes);
  focusView();
};
const openHelp = () => byId("help").showModal();
const KEYS = [
  ["/", "Search functions and modules", () => byId("search").select()],
  ["n", "Next match (in the search field: Enter)", () => goToMatch(1)],
  ["N", "Previous match (in the search field: Shift+Enter)", () => goToMatch(-1)],
  ["f", "Flame graph", () => goToView({view: "flame"})],
  ["t", "Table of functions", () => goToView({view: "table"})],
  ["s", "Sandwich: callers and callees of a function", () => goToView({view: "sandwich"})],
  ["i", "Inverted order: leaf functions first", () => goToView({view: "flame", order: state.order === "inverted" ? "callers" : "inverted"})],
  ...baseline === null ? [] : [["d", "Difference, then old, then new", () => {
    const {compare} = CHOICES;
    change({compare: compare[(compare.indexOf(state.compare) + 1) % compare.length]});
  }]],
  ...data.code ? [["c", "Show or hide the code of the selected function", () => change({hasCode: !state.hasCode})]] : [],
  ["Escape", "Leave the zoom; press again: clear the search; again: select all times", () => {
    if (chartPaths().some(({zoom}) => zoom !== 0)) change(state.view === "flame" ? {zoom: 0} : {callers: 0, callees: 0});
    else if (state.search || state.only.size > 0) change({search: "", only: new Set()});
    else if (state.range) change({range: null});
  }],
  ["?", "This help", openHelp],
];
const OTHER_KEYS = [
  ["Escape", "In the search field: clear the search; press again: leave the field"],
  [".*", "This button of the search field: search for a regular expression"],
  ["Arrow keys", "In a chart: go to the next box; in the table: to the next function"],
  ["Enter, Space", "In a chart: zoom to the box; in the table: show callers and callees"],
  ["Home", "In a chart: leave the zoom"],
  ["m, right button", "Menu of a function: show only, hide, merge, collapse, copy"],
  ["Click", "Zoom to a box"],
  ["Touch", "Show a box's details; touch again: zoom to it"],
  ["Drag in the time strip", "Select a range of times; a click clears the selection"],
  ["Click on a thread's name", "Select the thread; click again: all threads"],
];
for (const [key, text] of [...KEYS, ...OTHER_KEYS]) {
  byId("keys").append(element("tr", {}, element("th", {scope: "row"}, element("kbd", {textContent: key.replace("Escape", "Esc")})),
    element("td", {textContent: text})));
}

// Escape clears the search; without a search, it leaves the field.
const leaveField = (event) => {
  event.preventDefault();
  if (event.target === byId("search") && state.search) change({search: ""});
  else event.target.blur();
};
addEventListener("keydown", (event) => {
  const isTyping = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName) && event.target.type !== "radio";
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  if (isTyping) {
    if (event.key === "Escape") leaveField(event);
    if (event.key === "Enter" && event.target === byId("search")) goToMatch(event.shiftKey ? -1 : 1);
    return;
  }
  const act = KEYS.find(([key]) => key === event.key);
  if (!act) return;
  event.preventDefault();
  act[2]();
});

byId("ask").addEventListener("click", openHelp);

// The options and the time strip can be folded, as they are at first in a small window.
const isSmall = matchMedia("(max-height: 760px), (max-width: 720px)");
const fold = (isFolded) => {
  byId("options").hidden = isFolded;
  byId("fold").setAttribute("aria-expanded", !isFolded);
  showFold();
};
byId("fold").addEventListener("click", () => fold(!byId("options").hidden));
isSmall.addEventListener("change", () => fold(isSmall.matches));
byId("search").addEventListener("input", (event) => {
  state.search = event.target.value;
  rememberSoon();
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
    if (from < to && from < DURATION + SLOT) return change({range: roundedRange([from, to])});
    say(from >= DURATION + SLOT ? `The recording ends at ${clock(DURATION)}` : `From (${clock(from)}) is not before to (${clock(to)})`);
    showRange();
  });
}
for (const name of Object.keys(CHOICES)) {
  byId(name).addEventListener("change", (event) => change({[name]: event.target.value}));
}

const addOptions = (id, all, samples, nameOfNumber) => {
  const select = byId(id);
  select.append(element("option", {value: "", textContent: all}));
  for (const [number, total] of [...samples].slice(0, 1000)) {
    const share = baseline === null ? ` – ${percent(total, data.samples)}` : "";
    select.append(element("option", {value: number, textContent: shortened(nameOfNumber(number), 80) + share}));
  }
  select.hidden = samples.size < 2 || (isLog && id === "process");
  // A thread belongs to one process, so the choice of one replaces that of the other.
  const other = {process: {thread: null}, thread: {process: null}}[id];
  select.addEventListener("change", () => change({...other, [id]: select.value === "" ? null : Number(select.value)}));
};
const labelOf = (node) => nameOf(~data.frames[node]);
addOptions("event", "All events", samplesByEvent, (event) => data.events[event] ?? "");
addOptions("process", "All processes", samplesByProcess, labelOf);
addOptions("thread", "All threads", samplesByThread, labelOf);
if (baseline !== null) byId("event").hidden = true; // events are the sides
byId("compare").hidden = baseline === null;
document.body.classList.toggle("compares", baseline !== null);
byId("tiers").hidden = !hasTiers;
for (const button of document.querySelectorAll('input[name="group"]')) {
  button.parentElement.hidden = !CHOICES.group.includes(button.value);
}
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
  const ofNew = (i) => eventOf(i) === 1 ? processOf(i) : undefined; // of a comparison, events are the sides
  const processes = baseline === null ? samplesByProcess : samplesBy(ofNew);
  const process = [...processes.keys()].find((node) => node !== undefined);
  return process === undefined ? "" : labelOf(process).replace(/ \(pid -?\d+\)$/, "");
};
const hasDuration = DURATION > 0; // of one sample there is none
const isNamed = !countsTicks && program() !== "[unknown]"; // pprof profiles need not name threads
const heading = (isNamed && program()) || data.title.split("/").pop() || "Flame graph";
document.title = [heading, hasDuration && duration(DURATION), amount(data.samples)].filter(Boolean).join(" – ");
byId("title").textContent = heading;
byId("about").textContent = [heading === data.title ? "" : data.title, baseline && `compared with ${baseline.title || "the baseline"}`, data.command, data.host].filter(Boolean).join("  ·  ");
byId("unit").textContent = UNIT[0].toUpperCase() + UNIT.slice(1);
if (baseline === null) addFact(byId("unit").textContent, count.format(data.samples));
else addFact("Samples, old and new", `${count.format(baseline.samples)} → ${count.format(baseline.new_samples)}`);
if (comparesShares) addFact("Compared", `shares; ${totalText()}`);
if (hasDuration) addFact("Duration", duration(DURATION));
const events = [...new Set(data.events)]; // both sides of a comparison have one, mostly the same
if (events.length > 0 && !isLog) addFact(events.length > 1 ? "Events" : "Event", events.join(", "));
if (data.exporter) addFact("Made by", data.exporter);
readAddress();
fold(isSmall.matches);
