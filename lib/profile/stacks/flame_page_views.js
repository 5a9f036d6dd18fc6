// SPDX-License-Identifier: MIT
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
  const chart = new Chart(byId(side), chartCallbacks(() => chart, (node) => change({[side]: node})));
  return [side, chart];
}));
sandwich.callers.growsUp = true;
let lastChart = flame; // the one that details are of
// The chart that search and saving apply to.
const currentChart = () => {
  if (state.view !== "sandwich") return flame;
  return lastChart === flame ? sandwich.callees : lastChart;
};

// Writes a name into an element of two lines, shortened in the middle, with all of it as a title.
const fitInto = (place, name) => {
  const pen = flame.pen;
  const {font} = getComputedStyle(place);
  pen.font = font;
  place.textContent = fitted(pen, name, 1.8 * place.parentElement.clientWidth - 100) || shortened(name, 40);
  place.title = shortened(name, MOST_LETTERS);
};
const describe = (key, {total, self, whole, parent, sides}) => {
  const isCode = key >= 0;
  const {module, doubts} = isCode ? functions[key] : {};
  fitInto(byId("name"), nameOf(key));
  byId("kind").textContent = isCode ? kinds[kindOf[key]].label : "";
  byId("kind").style.backgroundColor = isCode ? kindPaint(kindOf[key]) : "";
  const doubtful = doubts && "doubtful: " + doubts.replaceAll(",", ", ");
  byId("place").textContent = isCode ? [module, sourceOf(functions[key]), doubtful].filter(Boolean).join(" · ") : "";
  byId("place").title = shortened(byId("place").textContent, MOST_LETTERS);
  byId("total").textContent = count.format(total);
  byId("self").textContent = self === null ? "–" : count.format(self);
  byId("share").textContent = percent(total, whole);
  byId("of-parent").textContent = percent(total, parent);
  if (sides) {
    byId("old").textContent = count.format(sides[0]);
    byId("new").textContent = count.format(sides[1]);
    byId("change").textContent = changeText(...sides);
  }
  byId("actions").disabled = !isCode;
  byId("actions").value = key;
};
const describeBox = (chart) => {
  lastChart = chart;
  const {tree, current} = chart;
  if (tree === null) return;
  // In an inverted tree, the samples of a leaf function are its own; its callers have none.
  const isInverted = chart === flame && state.order === "inverted";
  const ownOfInverted = tree.depths[current] === 1 ? tree.totals[current] : 0;
  describe(tree.keys[current], {
    total: tree.totals[current],
    self: chart === sandwich.callers ? null : isInverted ? ownOfInverted : tree.selfs[current],
    whole: currentTree().totals[0],
    parent: tree.totals[tree.parents[current]],
    sides: tree.sides && [tree.olds[current], tree.news[current]],
  });
};
const describeFunction = (key) => {
  const whole = currentTree().totals[0];
  const {selfs, totals, olds, news} = currentSums();
  const sides = baseline && (key >= 0 ? [olds[key], news[key]] : [baseline.samples, baseline.new_samples]);
  describe(key, {total: key === ROOT ? whole : totals[key], self: selfs[key] ?? 0, whole, parent: 0, sides});
};

const tip = byId("tip");
const showTip = (chart, node, event) => {
  tip.hidden = node < 0 || !event;
  if (tip.hidden) return;
  const {tree} = chart;
  tip.firstChild.textContent = shortened(tree.name(node), MOST_LETTERS);
  tip.lastChild.textContent = boxText(tree, node) +
    (baseline === null ? ` · ${percent(tree.totals[node], currentTree().totals[0])} of all` : "");
  showTipAt(event);
};
const showTipAt = (event) => {
  const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
  const isBelow = event.clientY + 18 + tip.offsetHeight < innerHeight;
  tip.style.transform =
    `translate(${Math.max(left, 8)}px, ${isBelow ? event.clientY + 18 : event.clientY - tip.offsetHeight - 10}px)`;
};

const table = new FunctionTable(byId("table").querySelector("table"), {
  sort: (column) => {
    const {sort} = state;
    state.sort = {column, isAscending: sort.column === column ? !sort.isAscending : SORTS[column]};
    rememberSoon();
    show();
  },
  select: (key) => {
    table.select(key);
    describeFunction(key);
    showCode();
  },
  open: (key) => {
    table.selected = key; // for the way back
    change({view: "sandwich", chosen: key});
  },
  menu: (key, x, y) => openMenu(key, x, y, null),
});
const strip = new TimeStrip(byId("slots"), {
  select: (range) => change({range: range && roundedRange(range)}),
  drag: (range) => showRange(range === null ? state.range : roundedRange(range)),
  chooseThread: (thread) => change({thread, process: null}),
  hover: (title, text, event) => {
    tip.hidden = event === null;
    tip.firstChild.textContent = title;
    tip.lastChild.textContent = text;
    if (event !== null) showTipAt(event);
  },
});

const showFlame = () => {
  flame.growsUp = state.shape === "flame";
  flame.show(shownTree(), state.zoom, foundIn("flame", shownTree()));
};
// What the views show, if it is not everything: for the chart as a file, and for views without samples.
const selectionText = () => {
  const parts = state.steps.map(({kind, key}) => STEPS[kind].title(shortened(nameOf(meantKey(key, mergesTiers())), 100)));
  if (state.range) parts.push(`times ${state.range.map(clock).join(" to ")}`);
  if (state.event !== null) parts.push(`event ${data.events[state.event]}`);
  for (const node of [state.process, state.thread]) if (node !== null) parts.push(labelOf(node));
  return parts.join(", ");
};
const emptyText = () => `There are no samples${selectionText() && ` in the selection: ${selectionText()}`}.`;
const showViews = () => {
  for (const view of CHOICES.view) byId(view).hidden = state.view !== view;
  const isSought = currentSearch();
  const whole = currentTree().totals[0];
  if (state.view === "flame") {
    showFlame();
    byId("no-samples").hidden = whole > 0;
    byId("no-samples").textContent = emptyText();
    describeBox(flame);
  } else if (state.view === "table") {
    table.show(currentSums(), whole, state.sort, isSought);
    byId("no-rows").textContent = whole > 0 ? "No function matches." : emptyText();
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
    byId("chosen").textContent = emptyText();
    return describeFunction(ROOT);
  }
  const trees = currentSandwich();
  const total = trees.callees.totals[0];
  const key = meantKey(state.chosen, mergesTiers());
  byId("chosen").replaceChildren(...nameParts(nameOf(key)), total > 0 ? "" : ` has no samples in ${selectionText() || "the stacks"}.`);
  byId("chosen").title = shortened(nameOf(key), MOST_LETTERS);
  for (const [side, chart] of Object.entries(sandwich)) {
    const isSame = chart.tree === trees[side];
    chart.show(trees[side], state[side], foundIn(side, trees[side]));
    if (!isSame) chart.scrollToRoot();
  }
  if (lastChart !== flame && lastChart.current !== 0) return describeBox(lastChart);
  const {olds, news} = trees.callees;
  describe(key, {total, self: trees.selfs, whole: currentTree().totals[0], parent: 0, sides: olds && [olds[0], news[0]]});
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
    const titleOf = (letters) => STEPS[step.kind].title(shortened(nameOf(meantKey(step.key, mergesTiers())), letters));
    const button = element("button", {type: "button", title: `Undo: ${titleOf(MOST_LETTERS)}`, textContent: `${titleOf(60)} ×`});
    button.addEventListener("click", () => change({steps: state.steps.filter((_, at) => at !== i)}));
    return element("li", {}, button);
  });
  byId("steps").replaceChildren(...chips);
  byId("steps").hidden = chips.length === 0;
};

// The charts of the view with a path: their trees and zooms, and how to zoom to another box.
const chartPaths = () => {
  if (state.view === "flame") return [{tree: shownTree(), zoom: state.zoom, zoomTo}];
  if (state.view === "table" || state.chosen === null) return [];
  return Object.keys(sandwich).filter((side) => state[side] !== 0).map((side) => ({
    title: `${byId(side).previousElementSibling.textContent}:`,
    tree: currentSandwich()[side],
    zoom: state[side],
    zoomTo: (node) => change({[side]: node}),
  }));
};
const showPath = () => {
  const parts = chartPaths().flatMap(({title, tree, zoom, zoomTo}) => {
    const crumbs = tree.pathTo(zoom).map((node) => {
      const name = tree.name(node);
      const crumb = element("button", {type: "button", textContent: shortened(name, 80), title: shortened(name, MOST_LETTERS)});
      if (node === zoom) crumb.setAttribute("aria-current", "true");
      crumb.addEventListener("click", () => zoomTo(node));
      return crumb;
    });
    return title ? [element("span", {textContent: title}), ...crumbs] : crumbs;
  });
  byId("path").hidden = parts.length === 0;
  byId("bar").hidden = state.view === "table" && state.steps.length === 0;
  byId("path").replaceChildren(...parts);
  byId("bar").scrollLeft = byId("bar").scrollWidth;
};
byId("bar").addEventListener("wheel", (event) => { byId("bar").scrollLeft += event.deltaY; }, {passive: true});

const matchedText = () => {
  const found = foundIn("flame", shownTree());
  return found ? `${amount(found.samples)}, ${percent(found.samples, shownTree().totals[0])}` : "";
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
  byId("matched").textContent = id !== searching.wanted ? "searching…" : problem || matchedText();
  for (const id of ["previous", "next"]) byId(id).disabled = isSought === null || found.nodes.length === 0;
};

const showRange = (range = state.range) => {
  const [from, to] = range ?? ["", ""];
  byId("from").value = from === "" ? "" : +from.toFixed(6);
  byId("to").value = to === "" ? "" : +to.toFixed(6);
  byId("whole").disabled = range === null;
  // The time as perf prints it, for --from and --to-time.
  const start = Number(data.start);
  byId("clock").textContent = range === null ? duration(DURATION)
    : `${duration(to - from)}: --from ${(start + from).toFixed(6)} --to-time ${(start + to).toFixed(6)}`;
};

// The button that folds the options says how many of them are not as at first: they change what the
// views show.
const showFold = () => {
  const chosen = [state.order !== "callers", state.group !== CHOICES.group[0], state.tiers !== "apart", state.event !== null,
    state.process !== null, state.thread !== null, state.range !== null, state.only.size > 0, state.compare !== CHOICES.compare[0]].filter(Boolean).length;
  byId("fold").textContent = byId("options").hidden && chosen > 0 ? `Options (${chosen})` : "Options";
};

// The element of the view that takes the keys.
const focusView = () => {
  if (state.view === "table") return table.focus();
  (state.view === "flame" ? flame : sandwich.callees).canvas.focus({preventScroll: true});
};

// Shows everything that depends on the state. If the focused element goes, the view gets the focus.
const show = () => {
  const focused = document.activeElement;
  showAll();
  if (focused !== document.body && !focused?.checkVisibility()) focusView();
};
const showAll = () => {
  for (const name of Object.keys(CHOICES)) {
    document.querySelector(`input[name="${name}"][value="${state[name]}"]`).checked = true;
  }
  for (const name of ["event", "process", "thread"]) byId(name).value = state[name] ?? "";
  byId("order").hidden = byId("shape").hidden = state.view !== "flame";
  byId("group").hidden = state.view === "table" || CHOICES.group.length < 2; // functions have the same samples however stacks are grouped
  closeMenu();
  showFold();
  showSteps();
  showKinds();
  showChanges();
  showPath();
  showRange();
  showSearch();
  showViews();
  showCode();
  strip.show(state.strip, selectionOf(), currentView().places, soughtPlaces());
};
