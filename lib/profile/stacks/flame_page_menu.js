// SPDX-License-Identifier: MIT
// The menu of a function or module.

const menu = byId("menu");
let menuOpener = null;
const closeMenu = () => {
  if (menu.hidden) return;
  menu.hidden = true;
  menuOpener?.focus();
};
const addStep = (kind, key) => change({steps: [...state.steps, {kind, key}], view: state.view === "sandwich" ? "flame" : state.view});
const openMenu = (key, x, y, zoom) => {
  const groups = [];
  const add = (text, act) => {
    const item = element("button", {type: "button", role: "menuitem", tabIndex: -1, textContent: text});
    item.addEventListener("click", () => {
      closeMenu();
      act();
    });
    groups.at(-1).append(item);
  };
  const startGroup = (text) => {
    const group = element("div", {role: "group", ariaLabel: shortened(text, 200)});
    group.append(element("p", {textContent: shortened(text, 60), title: shortened(text, MOST_LETTERS)}));
    groups.push(group);
  };
  startGroup(nameOf(key));
  if (zoom) add("Zoom to this box", zoom);
  if (key >= 0) {
    add("Show callers and callees", () => change({view: "sandwich", chosen: key}));
    for (const [kind, step] of Object.entries(STEPS)) {
      if (kind !== "collapse" || currentSums().isRecursive[key]) add(step.menu, () => addStep(kind, key));
    }
  }
  add("Search for it", () => change({search: nameOf(key), regex: false}));
  add("Copy its name", () => copy(nameOf(key), "name"));
  const module = key >= 0 && !functions[key].isModule ? modules.get(functions[key].module) : undefined;
  if (module !== undefined) {
    startGroup(`Module ${nameOf(module)}`);
    for (const [kind, step] of Object.entries(STEPS)) add(step.menuOfModule ?? step.menu, () => addStep(kind, module));
  }
  menuOpener = document.activeElement;
  menu.replaceChildren(...groups);
  menu.hidden = false;
  tip.hidden = true;
  menu.style.left = Math.max(Math.min(x, innerWidth - menu.offsetWidth - 8), 8) + "px";
  menu.style.top = Math.max(Math.min(y, innerHeight - menu.offsetHeight - 8), 8) + "px";
  menu.querySelector("button").focus();
};
menu.addEventListener("keydown", (event) => {
  const items = [...menu.querySelectorAll("button")];
  const at = items.indexOf(document.activeElement);
  const next = {ArrowDown: at + 1, ArrowUp: at - 1 + items.length, Home: 0, End: items.length - 1}[event.key];
  if (next !== undefined) items[next % items.length].focus();
  else if (event.key === "Escape" || event.key === "Tab") closeMenu();
  else return;
  event.preventDefault();
  event.stopPropagation();
});
addEventListener("pointerdown", (event) => {
  if (!menu.contains(event.target)) closeMenu();
});
byId("actions").addEventListener("click", () => {
  const frame = byId("actions").getBoundingClientRect();
  const node = lastChart.current;
  const isBox = state.view === "flame" && lastChart === flame && node > 0;
  openMenu(Number(byId("actions").value), frame.left, frame.top, isBox ? () => zoomTo(node) : null);
});
