// The views of the state: charts, table, legend, time strip, and the details of a function.

const chartCallbacks = (chartOf, zoom) => ({
  describe: () => describeBox(chartOf()),
  hover: (node, event) => {
    showTip(chartOf(), node, event);
    describeBox(chartOf());
  },
  zoom,
  menu: (node, x, y) => openMenu(chartOf().tree.keys[node], x, y, node > 0 ? () => zoom(node) : null),
});
const flame = new Chart(byId("flame"), chartCallbacks(() => flame, (node) => zoomTo(node)));
const sandwich = Object.fromEntries(["callers", "callees"].map((side) => {
  const chart = new Chart(byId(side), chartCallbacks(() => chart, (node) => chart.show(chart.tree, node, chart.found)));
  return [side, chart];
}));
sandwich.callers.growsUp = true;
let lastChart = flame; // the one that details are of
// The chart that search and saving apply to.
const currentChart = () => {
  if (state.view !== "sandwich") return flame;
  return lastChart === flame ? sandwich.callees : lastChart;
};

const describe = (key, {total, self, whole, parent}) => {
  const isCode = key >= 0;
  const {module, doubts} = isCode ? functions[key] : {};
  byId("name").textContent = nameOf(key).slice(0, 2000);
  byId("kind").textContent = isCode ? kinds[kindOf[key]].label : "";
  byId("kind").style.backgroundColor = isCode ? kindPaint(kindOf[key]) : "";
  const doubtful = doubts && "doubtful: " + doubts.replaceAll(",", ", ");
  byId("place").textContent = isCode ? [module, sourceOf(functions[key]), doubtful].filter(Boolean).join(" · ") : "";
  byId("place").title = byId("place").textContent.slice(0, 2000);
  byId("total").textContent = count.format(total);
  byId("self").textContent = self === null ? "–" : count.format(self);
  byId("share").textContent = percent(total, whole);
  byId("of-parent").textContent = percent(total, parent);
  byId("actions").disabled = !isCode;
  byId("actions").value = key;
};
const describeBox = (chart) => {
  lastChart = chart;
  const {tree, current} = chart;
  // In an inverted tree, the samples of a leaf function are its own; its callers have none.
  const isInverted = chart === flame && state.order === "inverted";
  const ownOfInverted = tree.depths[current] === 1 ? tree.totals[current] : 0;
  describe(tree.keys[current], {
    total: tree.totals[current],
    self: chart === sandwich.callers ? null : isInverted ? ownOfInverted : tree.selfs[current],
    whole: currentTree().totals[0],
    parent: tree.totals[tree.parents[current]],
  });
};
const describeFunction = (key) => {
  const whole = currentTree().totals[0];
  const {selfs, totals} = currentSums();
  describe(key, {total: key === ROOT ? whole : totals[key], self: selfs[key] ?? 0, whole, parent: 0});
};

const tip = byId("tip");
const showTip = (chart, node, event) => {
  tip.hidden = node < 0 || !event;
  if (tip.hidden) return;
  const {tree} = chart;
  tip.firstChild.textContent = tree.name(node).slice(0, 600);
  tip.lastChild.textContent = `${amount(tree.totals[node])} · ${percent(tree.totals[node], currentTree().totals[0])} of all`;
  const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
  const isBelow = event.clientY + 18 + tip.offsetHeight < innerHeight;
  tip.style.transform =
    `translate(${Math.max(left, 8)}px, ${isBelow ? event.clientY + 18 : event.clientY - tip.offsetHeight - 10}px)`;
};

const table = new FunctionTable(byId("table").querySelector("table"), {
  sort: (column) => {
    const {sort} = state;
    state.sort = {column, isAscending: sort.column === column ? !sort.isAscending : SORTS[column]};
    remember(false);
    show();
  },
  select: (key) => {
    table.select(key);
    describeFunction(key);
  },
  open: (key) => change({view: "sandwich", chosen: key}),
  menu: (key, x, y) => openMenu(key, x, y, null),
});
const strip = new TimeStrip(byId("slots"), (range) => change({range}));

const showFlame = () => {
  flame.growsUp = state.shape === "flame";
  flame.show(shownTree(), state.zoom, foundIn("flame", shownTree()));
};
const showViews = () => {
  for (const view of CHOICES.view) byId(view).hidden = state.view !== view;
  const isSought = currentSearch();
  const whole = currentTree().totals[0];
  if (state.view === "flame") {
    showFlame();
    describeBox(flame);
  } else if (state.view === "table") {
    table.show(currentSums(), whole, state.sort, isSought);
    describeFunction(table.keys.includes(table.selected) ? table.selected : table.keys[0] ?? ROOT);
  } else {
    showSandwich();
  }
};
// The function with the most samples of its own; null: none has.
const mostSampledFunction = () => {
  const {selfs} = currentSums();
  const best = selfs.reduce((a, samples, key) => samples > (selfs[a] ?? 0) ? key : a, -1);
  return best >= 0 ? best : null;
};
const showSandwich = () => {
  if (state.chosen === null) state.chosen = mostSampledFunction();
  for (const chart of Object.values(sandwich)) chart.scroller.hidden = state.chosen === null;
  if (state.chosen === null) {
    byId("chosen").textContent = "There are no samples.";
    return describeFunction(ROOT);
  }
  const trees = currentSandwich();
  const total = trees.callees.totals[0];
  const key = meantKey(state.chosen, mergesTiers());
  byId("chosen").textContent = nameOf(key) + (total > 0 ? "" : " has no samples in this selection.");
  for (const [side, chart] of Object.entries(sandwich)) {
    const isSame = chart.tree === trees[side];
    chart.show(trees[side], isSame ? chart.zoom : 0, foundIn(side, trees[side]));
    if (!isSame) chart.scrollToRoot();
  }
  describe(key, {total, self: trees.selfs, whole: currentTree().totals[0], parent: 0});
};

const showKinds = () => {
  const tree = currentTree();
  const selfs = new Array(kinds.length).fill(0);
  for (let node = 0; node < tree.size; ++node) {
    if (tree.keys[node] >= 0) selfs[kindOf[tree.keys[node]]] += tree.selfs[node];
  }
  for (const button of byId("kinds").querySelectorAll("button")) {
    button.setAttribute("aria-pressed", state.only.has(button.value));
    const kind = kinds.findIndex(({name}) => name === button.value);
    button.parentElement.hidden = selfs[kind] === 0 && !state.only.has(button.value);
    button.querySelector("rect").style.fill = kindPaint(kind);
    button.querySelector("i").textContent = percent(selfs[kind], tree.totals[0]);
  }
};

const showSteps = () => {
  const chips = state.steps.map((step, i) => {
    const title = STEPS[step.kind].title(nameOf(meantKey(step.key, mergesTiers())).slice(0, 60));
    const button = element("button", {type: "button", title: "Undo this", textContent: title + " ×"});
    button.addEventListener("click", () => change({steps: state.steps.filter((_, at) => at !== i)}));
    return element("li", {}, button);
  });
  byId("steps").replaceChildren(...chips);
  byId("steps").hidden = chips.length === 0;
};

const showPath = () => {
  const path = byId("path");
  path.hidden = state.view !== "flame" || state.zoom === 0;
  if (path.hidden) return;
  const tree = shownTree();
  const crumbs = tree.pathTo(state.zoom).map((node) => {
    const crumb = element("button", {type: "button", textContent: tree.name(node).slice(0, 80)});
    if (node === state.zoom) crumb.setAttribute("aria-current", "true");
    crumb.addEventListener("click", () => zoomTo(node));
    return crumb;
  });
  path.replaceChildren(...crumbs);
  path.scrollLeft = path.scrollWidth;
};

const showSearch = () => {
  const input = byId("search");
  const {problem, reason, id} = currentMatches();
  const isSought = currentSearch();
  if (input.value !== state.search) input.value = state.search;
  input.setAttribute("aria-invalid", problem !== "");
  byId("regex").setAttribute("aria-pressed", state.regex);
  const found = foundIn("flame", shownTree());
  byId("matched").title = reason;
  byId("matched").textContent = id !== searching.wanted ? "searching…" : problem ? problem
    : isSought === null ? "" : `${amount(found.samples)}, ${percent(found.samples, shownTree().totals[0])}`;
  for (const id of ["previous", "next"]) byId(id).disabled = isSought === null || found.nodes.length === 0;
};

const showRange = () => {
  const [from, to] = state.range ?? ["", ""];
  byId("from").value = from === "" ? "" : +from.toFixed(6);
  byId("to").value = to === "" ? "" : +to.toFixed(6);
  byId("whole").disabled = state.range === null;
  // The time as perf prints it, for --from and --to-time.
  const start = Number(data.start);
  byId("clock").textContent = state.range === null ? seconds(DURATION)
    : `${seconds(to - from)}: --from ${(start + from).toFixed(6)} --to-time ${(start + to).toFixed(6)}`;
};

// Shows everything that depends on the state.
const show = () => {
  for (const name of Object.keys(CHOICES)) {
    document.querySelector(`input[name="${name}"][value="${state[name]}"]`).checked = true;
  }
  for (const name of ["event", "process", "thread"]) byId(name).value = state[name] ?? "";
  byId("order").hidden = byId("shape").hidden = state.view !== "flame";
  closeMenu();
  showSteps();
  showKinds();
  showPath();
  showRange();
  showSearch();
  showViews();
  strip.show(state.strip, {...selectionOf()}, soughtNodes());
};
