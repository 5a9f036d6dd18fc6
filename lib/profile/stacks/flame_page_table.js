// SPDX-License-Identifier: MIT
// The table of functions, with their own samples and those of stacks that they are in.

const TABLE_STEP = 100; // rows at once

const shareCell = (samples, whole) => {
  const cell = element("td", {className: "number"}, element("span", {textContent: count.format(samples)}), " ",
    element("i", {textContent: percent(samples, whole)}));
  cell.style.setProperty("--share", `${100 * samples / Math.max(whole, 1)}%`);
  return cell;
};

// A name of which the end stays in sight: style cuts its beginning first.
const nameParts = (name) => {
  const text = shortened(name, 2000);
  const at = text.length > 40 ? wholeLetter(text, text.length - 25) : text.length;
  return [element("span", {className: "start", textContent: text.slice(0, at)}),
    element("span", {className: "end", textContent: text.slice(at)})];
};

class FunctionTable {
  // `on` has the callbacks sort(column), select(key), open(key) and menu(key, x, y).
  constructor(table, on) {
    this.table = table;
    this.body = table.querySelector("tbody");
    this.more = byId("more");
    this.on = on;
    this.keys = [];
    this.selected = -1;
    this.shown = TABLE_STEP;
    this.listen();
  }

  // `sums` as sumsOf() returns them; `isSought` is null if all functions are.
  show(sums, whole, {column, isAscending}, isSought) {
    this.sums = sums;
    this.whole = whole;
    const values = {
      change: (key) => Math.abs(changeOf(sums.olds[key], sums.news[key])),
      old: (key) => sums.olds[key],
      new: (key) => sums.news[key],
      self: (key) => sums.selfs[key],
      total: (key) => sums.totals[key],
      name: (key) => functions[key].name.toLowerCase(),
      module: (key) => functions[key].module.toLowerCase(),
    }[column];
    const sign = isAscending ? 1 : -1;
    this.keys = functions.map((_, key) => key).filter((key) => sums.totals[key] > 0 && (isSought?.(key) ?? true));
    const sorted = new Map(this.keys.map((key) => [key, values(key)]));
    this.keys.sort((a, b) => {
      const [left, right] = [sorted.get(a), sorted.get(b)];
      if (left !== right) return left < right ? -sign : sign;
      return sums.totals[b] - sums.totals[a] || a - b;
    });
    for (const head of this.table.querySelectorAll("th[data-column]")) {
      const isSorted = head.dataset.column === column;
      head.ariaSort = isSorted ? (isAscending ? "ascending" : "descending") : "none";
    }
    this.shown = TABLE_STEP;
    this.fill();
  }

  fill() {
    this.body.replaceChildren(...this.keys.slice(0, this.shown).map((key) => this.row(key)));
    this.more.hidden = this.keys.length <= this.shown;
    this.more.textContent = `Show ${Math.min(this.keys.length - this.shown, 10 * TABLE_STEP)} more of ${count.format(this.keys.length)} functions`;
    byId("no-rows").hidden = this.keys.length > 0;
  }

  row(key) {
    const {name, module} = functions[key];
    const dot = element("span", {className: "dot", title: kinds[kindOf[key]].label});
    dot.style.backgroundColor = kindPaint(kindOf[key]);
    const button = element("button", {type: "button", className: "name", title: shortened(name, MOST_LETTERS)}, ...nameParts(name));
    const row = element("tr", {}, ...this.numbers(key),
      element("th", {scope: "row"}, dot, button), element("td", {className: "module", textContent: module, title: module}));
    row.dataset.key = key;
    this.mark(row);
    return row;
  }

  numbers(key) {
    const {selfs, totals, olds, news} = this.sums;
    if (baseline === null) return [shareCell(selfs[key], this.whole), shareCell(totals[key], this.whole)];
    const change = element("td", {className: "number", textContent: changeText(olds[key], news[key])});
    return [change, shareCell(olds[key], baseline.samples), shareCell(news[key], baseline.new_samples)];
  }

  mark(row) {
    const isSelected = Number(row.dataset.key) === this.selected;
    row.classList.toggle("selected", isSelected);
    row.ariaCurrent = isSelected ? "true" : null;
  }

  // The selected row gets the focus, or the first one.
  focus() {
    if (this.keys.includes(this.selected)) this.select(this.selected);
    const row = this.body.querySelector(".selected") ?? this.body.rows[0];
    (row?.querySelector("button") ?? this.table.querySelector("button")).focus();
  }

  select(key) {
    this.selected = key;
    const at = this.keys.indexOf(key);
    if (at >= this.shown) {
      this.shown = at + TABLE_STEP;
      this.fill();
    }
    for (const row of this.body.rows) this.mark(row);
    this.body.querySelector(".selected")?.scrollIntoView({block: "nearest"});
  }

  listen() {
    const keyAt = (event) => {
      const row = event.target.closest("tr");
      return row ? Number(row.dataset.key) : -1;
    };
    this.table.tHead.addEventListener("click", (event) => {
      const head = event.target.closest("th[data-column]");
      if (head) this.on.sort(head.dataset.column);
    });
    this.body.addEventListener("click", (event) => {
      const key = keyAt(event);
      if (event.target.closest("button")) this.on.open(key); else this.on.select(key);
    });
    this.body.addEventListener("focusin", (event) => this.on.select(keyAt(event)));
    this.body.addEventListener("contextmenu", (event) => {
      event.preventDefault();
      this.on.select(keyAt(event));
      this.on.menu(keyAt(event), event.clientX, event.clientY);
    });
    this.body.addEventListener("keydown", (event) => {
      const row = event.target.closest("tr");
      const other = {ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling}[event.key];
      if (other) other.querySelector("button").focus();
      else if (event.key === "m" || event.key === "ContextMenu") {
        const frame = row.getBoundingClientRect();
        this.on.menu(keyAt(event), frame.left + 40, frame.bottom);
      } else return;
      event.preventDefault();
    });
    this.more.addEventListener("click", () => {
      this.shown += 10 * TABLE_STEP;
      this.fill();
    });
  }
}
