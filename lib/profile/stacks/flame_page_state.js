// SPDX-License-Identifier: MIT
// The state of the page, what follows from it, and the address that contains it.

const CHOICES = {
  view: ["flame", "table", "sandwich"],
  order: ["callers", "inverted"],
  shape: ["icicle", "flame"],
  group: ["threads", "processes", "all"],
  tiers: ["apart", "merged"],
  strip: ["threads", "heat"],
  compare: ["difference", "old", "new"],
};
if (isLog) CHOICES.group = data.counts.length > 0 && samplesByProcess.size > 1 ? ["threads", "all"] : ["all"];
const SIDES = ["callers", "callees"]; // the charts of the sandwich
const SORTS = {self: false, total: false, name: true, module: true, change: false, old: false, new: false}; // whether ascending comes first

const FIRST_SORT = baseline === null ? "self" : "change";

const state = {};
const selectionOf = () => ({compare: state.compare, event: state.event, process: state.process, thread: state.thread, range: state.range});

// What the views show, computed when it is needed and kept until something that it depends on
// changes.
const cache = new Map();
const kept = (name, dependsOn, make) => {
  const id = JSON.stringify(dependsOn);
  if (cache.get(name)?.id !== id) cache.set(name, {id, value: make()});
  return cache.get(name).value;
};
const structureId = () => [state.group, state.tiers, state.steps];
const mergesTiers = () => state.tiers === "merged";
const currentView = () => kept("view", structureId(), () => state.steps.reduce(
  (view, step) => applyStep(view, step, mergesTiers()), grouped(DATA_VIEW, state.group, mergesTiers())));
const currentTree = () => kept("tree", [structureId(), selectionOf()], () => Tree.of(currentView(), selectionOf()));
const invertedTree = () => kept("inverted", [structureId(), selectionOf()], () =>
  Tree.of(kept("inverted view", structureId(), () => inverted(currentView())), selectionOf()));
const shownTree = () => state.order === "inverted" ? invertedTree() : currentTree();
const currentSums = () => kept("sums", [structureId(), selectionOf()], () => sumsOf(currentTree()));
const currentSandwich = () => kept("sandwich", [structureId(), selectionOf(), state.chosen], () =>
  callersAndCallees(currentTree(), meantKey(state.chosen, mergesTiers()), meaning(state.chosen, mergesTiers())));

const searchId = () => [currentMatches().id, [...state.only]];

// Search: which keys are sought; null: all are. With tiers apart or merged, a search means the same
// functions: a group matches by the name of any tier, and a tier by the name of its group.
const currentSearch = () => kept("search", searchId(), () => {
  const {matches} = currentMatches();
  if (matches === null && state.only.size === 0) return null;
  const isMatch = textsOfFunctions.map((texts) => matches === null || texts.some((text) => matches[text]));
  const marks = isMatch.slice();
  functions.forEach(({merged}, key) => {
    if (isMatch[key]) marks[merged] = true;
    if (isMatch[merged]) marks[key] = true;
  });
  const isOfKind = (key) => state.only.size === 0 || state.only.has(kinds[kindOf[key]].name);
  const isLabel = (label) => state.only.size === 0 && Boolean(matches[textsOfLabels[label]]);
  return (key) => key === ROOT ? false : key < 0 ? isLabel(~key) : marks[key] && isOfKind(key);
});
// What is found in a tree, of which `name` says what it shows; null: nothing is sought.
const foundIn = (name, tree) => kept(`found in ${name}`, [searchId(), structureId(), selectionOf(), state.order, state.chosen], () => {
  const isSought = currentSearch();
  return isSought && findIn(tree, isSought);
});
// Of each node of the view: whether its stack has something that is sought; null: nothing is sought.
const soughtPlaces = () => kept("sought places", [searchId(), structureId()], () => {
  const isSought = currentSearch();
  if (isSought === null) return null;
  const {size, parents, keys} = currentView().shape;
  const marks = new Uint8Array(size);
  for (let node = 1; node < size; ++node) marks[node] = marks[parents[node]] || isSought(keys[node]) ? 1 : 0;
  return marks;
});

const numberIn = (text, isValid) => {
  const number = text === null || text.trim() === "" ? NaN : Number(text);
  return Number.isInteger(number) && isValid(number) ? number : null;
};
const isFunction = (key) => key >= 0 && key < functions.length;
const addressOf = () => {
  const parts = new URLSearchParams();
  for (const [name, [first]] of Object.entries(CHOICES)) if (state[name] !== first) parts.set(name, state[name]);
  for (const name of ["event", "process", "thread"]) if (state[name] !== null) parts.set(name, state[name]);
  if (state.range) parts.set("range", state.range.join("-"));
  for (const {kind, key} of state.steps) parts.append("step", `${kind}.${key}`);
  if (state.search) parts.set("search", state.search);
  if (state.regex) parts.set("regex", "yes");
  for (const name of state.only) parts.append("only", name);
  if (state.zoom) parts.set("zoom", state.zoom);
  if (!state.hasCode) parts.set("code", "no");
  if (state.view === "sandwich" && state.chosen !== null) {
    parts.set("of", state.chosen);
    for (const side of SIDES) if (state[side]) parts.set(side, state[side]);
  }
  if (state.sort.column !== FIRST_SORT || state.sort.isAscending) {
    parts.set("sort", state.sort.column + (state.sort.isAscending ? ".up" : ".down"));
  }
  return "#" + parts;
};
const writeAddress = (method) => {
  const now = addressOf();
  if (now !== (location.hash || "#")) history[method](null, "", now);
};
// A new entry of the history, or with a delay the address of this one: browsers refuse to change it
// with each key.
let addressTimer = 0;
const remember = () => {
  clearTimeout(addressTimer);
  writeAddress("pushState");
};
const rememberSoon = () => {
  clearTimeout(addressTimer);
  addressTimer = setTimeout(rememberNow, 300);
};
const rememberNow = () => {
  clearTimeout(addressTimer);
  writeAddress("replaceState");
};

// To the resolution of the address, so that a link selects the same samples.
const roundedRange = (range) => range.map((time) => +time.toFixed(6));
const readRange = (text) => {
  const parts = /^([0-9.]+)-([0-9.]+)$/.exec(text ?? "");
  const range = parts && [Number(parts[1]), Number(parts[2])];
  return hasTimes && range && range[0] < range[1] && range[1] < 1e12 ? roundedRange(range) : null;
};
const readStep = (text) => {
  const [kind, number] = text.split(".");
  const key = numberIn(number ?? null, isFunction);
  return Object.hasOwn(STEPS, kind) && key !== null ? [{kind, key}] : [];
};
// Anything in the address that does not belong to this page is ignored.
const readAddress = () => {
  clearTimeout(addressTimer);
  const parts = new URLSearchParams(location.hash.slice(1));
  for (const [name, values] of Object.entries(CHOICES)) {
    state[name] = values.includes(parts.get(name)) ? parts.get(name) : values[0];
  }
  if (!hasTiers) state.tiers = "apart";
  state.event = numberIn(parts.get("event"), (event) => baseline === null && samplesByEvent.has(event));
  state.process = numberIn(parts.get("process"), (node) => samplesByProcess.has(node));
  state.thread = numberIn(parts.get("thread"), (node) => samplesByThread.has(node));
  state.range = readRange(parts.get("range"));
  state.steps = parts.getAll("step").slice(0, 100).flatMap(readStep);
  state.search = parts.get("search") ?? "";
  state.regex = parts.get("regex") === "yes";
  state.hasCode = parts.get("code") !== "no";
  state.only = new Set(parts.getAll("only").filter((name) => kinds.some((kind) => kind.name === name)));
  state.chosen = numberIn(parts.get("of"), isFunction);
  const [column, direction] = (parts.get("sort") ?? "").split(".");
  state.sort = Object.hasOwn(SORTS, column) ? {column, isAscending: direction === "up"} : {column: FIRST_SORT, isAscending: false};
  const zoomIn = (name, treeOf) => numberIn(parts.get(name), (node) => node > 0 && treeOf().totals[node] > 0) ?? 0;
  state.zoom = zoomIn("zoom", shownTree);
  for (const side of SIDES) state[side] = state.chosen === null ? 0 : zoomIn(side, () => currentSandwich()[side]);
  show();
  flame.scrollToRoot();
  if (state.zoom) flame.scrollTo(state.zoom);
};

// Changes of these make another tree, in which a node has another number.
const MAKES_TREE = ["order", "group", "tiers", "steps"];
const change = (changes) => {
  rememberNow();
  if (MAKES_TREE.some((name) => name in changes)) state.zoom = state.callers = state.callees = 0;
  if ("chosen" in changes) state.callers = state.callees = 0;
  Object.assign(state, changes);
  // The selection may have no samples in a zoomed box.
  if (!(shownTree().totals[state.zoom] > 0)) state.zoom = 0;
  for (const side of SIDES) if (state[side] && !(currentSandwich()[side].totals[state[side]] > 0)) state[side] = 0;
  tip.hidden = true;
  remember();
  show();
  if (MAKES_TREE.concat("shape", "view").some((name) => name in changes)) flame.scrollToRoot();
};

const zoomTo = (node) => {
  if (node === state.zoom) return;
  change({zoom: node});
  if (!flame.isInSight(node)) flame.scrollTo(node);
};
