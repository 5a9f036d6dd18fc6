// SPDX-License-Identifier: MIT
// The code of the selected function beside the views, if the page has it.

const codePanel = byId("code");
const idOfCode = ({name, module}) => `${name}\0${module}`;
// The listings of each key: one for each version. A function with all its tiers has those of all.
const listingsOf = functions.map(() => []);
const addListings = () => {
  const byName = new Map();
  for (const listing of data.code.listings) {
    const id = idOfCode(listing);
    byName.set(id, [...byName.get(id) ?? [], listing]);
  }
  data.names.forEach((_, key) => {
    for (const listing of byName.get(idOfCode(functions[key])) ?? []) {
      for (const of of new Set([key, functions[key].merged])) {
        if (!listingsOf[of].includes(listing)) listingsOf[of].push(listing);
      }
    }
  });
};
if (data.code) addListings();

const codeRow = (cells, whole, position) => {
  if (cells.length < 4) return element("tr", {className: "place"}, element("td", {colSpan: 5, textContent: cells[0] ?? "…"}));
  const [at, self, total, text] = cells;
  const heat = data.code.heat.filter((least) => self * 10000 >= least * whole).length;
  const texts = [self && percent(self, whole), self && count.format(self), total && count.format(total), position(at), text];
  return element("tr", {className: heat > 0 ? `h${heat}` : ""}, ...texts.map((text) => element("td", {textContent: text || ""})));
};
const codeTable = (name, columns, rows, whole, position) => element("table", {},
  element("caption", {textContent: name}),
  element("thead", {}, element("tr", {}, ...["Percent", "Self", "Total", ...columns].map((text) =>
    element("th", {scope: "col", textContent: text})))),
  element("tbody", {}, ...rows.map((cells) => codeRow(cells, whole, position))));
const codeSection = ({name, about, self, total, lines, rows}) => element("section", {},
  element("h2", {textContent: shortened(name, MOST_LETTERS)}),
  element("p", {textContent: `${amount(self)} of its own, ${count.format(total)} with its callees · ${about}`}),
  ...lines.length > 0 ? [codeTable("Source lines", ["Line", "Source"], lines, self, String)] : [],
  codeTable("Instructions", ["Offset", "Instruction"], rows, self, (at) => at.toString(16)));

// The function whose code is shown: the zoomed box, the chosen or the selected function.
const selectedKey = () => {
  if (state.view === "sandwich") return state.chosen === null ? ROOT : meantKey(state.chosen, mergesTiers());
  return state.view === "flame" ? shownTree().keys[state.zoom] : table.selected ?? ROOT;
};
let codeKey = null; // the key of which the panel has the code
const showCode = () => {
  const key = selectedKey();
  const listings = listingsOf[key] ?? [];
  byId("show-code").hidden = !data.code;
  byId("show-code").disabled = listings.length === 0;
  byId("show-code").setAttribute("aria-pressed", state.hasCode);
  codePanel.hidden = listings.length === 0 || !state.hasCode;
  if (codePanel.hidden || codeKey === key) return;
  codeKey = key;
  const limits = ["Counts are those of the whole recording. Instructions far from samples are left out.",
    !data.code.is_complete && `The page has the code of the ${data.code.listings.length} versions with most samples.`,
    data.code.no_text && `Instructions have no text: ${data.code.no_text}`];
  codePanel.replaceChildren(...listings.map(codeSection), element("p", {textContent: limits.filter(Boolean).join(" ")}));
  codePanel.scrollTop = 0;
};
byId("show-code").addEventListener("click", () => change({hasCode: !state.hasCode}));
