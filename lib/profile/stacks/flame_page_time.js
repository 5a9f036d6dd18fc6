// SPDX-License-Identifier: MIT
// The time strip: when samples were taken, by thread or as a heat map, and the selected range.

const STRIP_ROWS = 6;        // threads that have a row of their own at first
const ALL_STRIP_ROWS = 1000; // at most; the other threads share one
const STRIP_ROW = 15;
const AXIS = 14;
const NAME_WIDTH = 130;      // of the threads' names
const HEAT_ROWS = 25;        // parts of a column
const HEAT_ROW = 4;
const HEAT_LEFT = 60;        // of the times of a column
const HEAT_WIDTH = 64;       // of a column, at most
const HEAT_COLUMNS = 15;     // at least, if slots are short enough
const PERIODS = [1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005];

class TimeStrip {
  // `on` has the callbacks select([from, to] in seconds, or null for all), drag(the same, while the
  // pointer moves), chooseThread(node or null) and hover(title, text, event or null).
  constructor(canvas, on) {
    this.canvas = canvas;
    this.scroller = canvas.parentElement;
    this.pen = canvas.getContext("2d", {alpha: false});
    this.on = on;
    this.drawSoon = oncePerFrame(() => this.draw());
    this.mode = "threads";
    this.selection = null; // of samples, as visitSamples() takes it
    this.places = null;    // of each node of the data, in the view of the stacks; -1: not counted
    this.isSought = null;  // of each place: whether its stack is sought; null: nothing is
    this.isExpanded = false;
    this.rows = [];        // of threads: {name, threads}
    this.counts = null;    // of the cells that are shown
    this.pointer = null;   // the cell under it
    this.dragFrom = null;
    this.dragged = null;
    this.listen();
  }

  show(mode, selection, places, isSought) {
    Object.assign(this, {mode, selection, places, isSought});
    this.refresh();
  }

  get isHeat() { return this.mode === "heat"; }
  get width() { return this.canvas.clientWidth; }
  get left() { return this.isHeat ? HEAT_LEFT : Math.min(NAME_WIDTH, this.width / 4); }
  get pixels() { return Math.max(Math.floor(this.width - this.left), 1); }
  get columns() { return this.isHeat ? Math.min(this.pixels, this.heatColumns * HEAT_WIDTH) : this.pixels; }
  // The recording's end is in the last column.
  get length() { return Math.max(DURATION, SLOT) + SLOT; }
  // Seconds of a column of the heat map: one, if the columns fit, and less for a short recording.
  get period() {
    if (this.length > this.pixels) return Math.ceil(this.length / this.pixels);
    const isRight = (one) => this.length / one >= HEAT_COLUMNS || one / HEAT_ROWS / 2 < SLOT;
    return PERIODS.find(isRight) ?? PERIODS.at(-1);
  }
  get heatColumns() { return Math.ceil(this.length / this.period); }
  get cells() { return Math.min(this.columns, Math.max(Math.ceil(this.length / SLOT), 1)); } // in a row of a thread

  threadRows() {
    const {thread, process} = this.selection;
    const isShown = (node) => (thread === null || node === thread) && (process === null || parentOf[node] === process);
    const threads = [...samplesByThread.keys()].filter(isShown);
    const most = this.isExpanded ? ALL_STRIP_ROWS : STRIP_ROWS;
    const own = threads.length <= most + 1 ? threads : threads.slice(0, most);
    const rows = own.map((node) => ({name: nameOf(~data.frames[node]), threads: [node]}));
    const others = threads.slice(own.length);
    if (others.length > 0) rows.push({name: `${count.format(others.length)} other threads`, threads: others});
    if (this.isExpanded && threads.length > STRIP_ROWS + 1) rows.push({name: "Show fewer threads", threads: []});
    return rows;
  }

  refresh() {
    if (this.selection === null || this.width === 0) return;
    this.rows = this.isHeat ? [] : this.threadRows();
    const height = Math.max(this.isHeat ? HEAT_ROWS * HEAT_ROW : this.rows.length * STRIP_ROW, STRIP_ROW) + AXIS;
    this.canvas.style.height = height + "px";
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.counts = this.isHeat ? this.countHeat() : this.countThreads();
    this.draw();
  }

  draw() {
    const {pen, width, scroller} = this;
    const colors = themeColors();
    const height = this.canvas.clientHeight;
    pen.globalAlpha = 1;
    pen.fillStyle = colors.card;
    pen.fillRect(0, 0, width, height);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    if (this.isHeat) this.drawHeat(colors); else this.drawThreads(colors);
    this.drawRange(colors, height - AXIS);
    if (this.pointer !== null) this.drawPointer(colors, height - AXIS);
    // The axis stays in sight while the threads are scrolled.
    this.drawAxis(colors, Math.min(scroller.scrollTop + scroller.clientHeight, height));
  }

  // Counts of cells, all and sought. Samples of the whole recording, whatever range is selected.
  count(cells, cellOf) {
    const all = new Float64Array(cells);
    const sought = new Float64Array(cells);
    visitSamples({...this.selection, range: null}, (node, samples, time) => {
      const place = this.places[node];
      const cell = place < 0 ? -1 : cellOf(node, time);
      if (cell < 0) return;
      all[cell] += samples;
      if (this.isSought?.[place]) sought[cell] += samples;
    });
    return {all, sought, most: all.reduce((a, b) => Math.max(a, b), 0)};
  }

  // Threads with a row of their own share a scale; the row of all others has one of its own.
  countThreads() {
    const width = this.cells;
    const rowOf = new Map(this.rows.flatMap(({threads}, row) => threads.map((node) => [node, row])));
    const counts = this.count(this.rows.length * width, (node, time) =>
      (rowOf.get(threadOf[node]) ?? -1) * width + Math.min(Math.floor(time / this.length * width), width - 1));
    const mostOf = (row) => counts.all.subarray(row * width, (row + 1) * width).reduce((a, b) => Math.max(a, b), 0);
    const most = this.rows.map((_, row) => mostOf(row));
    const ownMost = most.reduce((a, b, row) => this.rows[row].threads.length === 1 ? Math.max(a, b) : a, 0);
    return {...counts, mostOfRow: this.rows.map(({threads}, row) => threads.length === 1 ? ownMost : most[row])};
  }

  drawThreads(colors) {
    const {scroller} = this;
    this.rows.forEach((_, row) => {
      const top = row * STRIP_ROW - scroller.scrollTop;
      if (top > -STRIP_ROW && top < scroller.clientHeight) this.drawThread(row, colors);
    });
  }

  drawThread(row, colors) {
    const {pen, left, columns, cells, counts} = this;
    const {all, sought} = counts;
    const bottom = (row + 1) * STRIP_ROW - 1;
    pen.fillStyle = this.rows[row].threads.length === 1 ? colors.quiet : colors.accent;
    pen.fillText(fitted(pen, this.rows[row].name, left - 12), 6, bottom - STRIP_ROW / 2 + 1);
    const cell = columns / cells;
    for (let column = 0; column < cells; ++column) {
      const at = row * cells + column;
      if (all[at] === 0) continue;
      const tall = Math.max(all[at] / counts.mostOfRow[row] * (STRIP_ROW - 2), 1);
      const x = left + column * cell;
      pen.fillStyle = this.isSought ? colors.line : colors.accent;
      pen.fillRect(x, bottom - tall, Math.max(cell, 1), tall);
      pen.fillStyle = colors.accent;
      const part = tall * sought[at] / all[at];
      if (part > 0) pen.fillRect(x, bottom - part, Math.max(cell, 1), part);
    }
  }

  countHeat() {
    const {period, heatColumns} = this;
    return this.count(heatColumns * HEAT_ROWS, (node, time) =>
      Math.min(Math.floor(time / period * HEAT_ROWS), heatColumns * HEAT_ROWS - 1));
  }

  // A column for each period, with its beginning at the bottom.
  drawHeat(colors) {
    const {pen, left, columns, heatColumns, period} = this;
    const {all, sought, most} = this.counts;
    const wide = columns / heatColumns;
    const shown = this.isSought ? sought : all;
    for (let i = 0; i < shown.length; ++i) {
      const x = left + Math.floor(i / HEAT_ROWS) * wide;
      const y = (HEAT_ROWS - 1 - i % HEAT_ROWS) * HEAT_ROW;
      pen.globalAlpha = shown[i] > 0 ? 0.15 + 0.85 * shown[i] / most : 1;
      pen.fillStyle = shown[i] > 0 ? colors.accent : colors.field;
      pen.fillRect(x, y, Math.max(wide - (wide > 3 ? 1 : 0), 0.5), HEAT_ROW - 0.5);
    }
    pen.globalAlpha = 1;
    pen.fillStyle = colors.quiet;
    const height = HEAT_ROWS * HEAT_ROW;
    for (const part of [0, 0.5, 1]) {
      const y = Math.min(Math.max((1 - part) * height, 6), height - 6);
      pen.fillText(part === 0 ? "0" : `+${duration(part * period)}`.replace(".00", ""), 4, y);
    }
  }

  drawAxis(colors, bottom) {
    const {pen, left, columns, width} = this;
    pen.fillStyle = colors.card;
    pen.fillRect(0, bottom - AXIS, width, AXIS);
    const whole = this.isHeat ? this.heatColumns * this.period : this.length;
    const steps = Array.from({length: 24}, (_, power) => 10 ** (power - 4)).flatMap((base) => [base, 2 * base, 5 * base]);
    const least = this.isHeat ? this.period : 0;
    const step = steps.find((one) => one >= least && whole / one <= columns / 70) ?? whole;
    pen.fillStyle = colors.quiet;
    for (let i = 0; i * step < whole && i < 100; ++i) {
      const x = left + i * step / whole * columns;
      pen.fillRect(x, bottom - AXIS, 1, 4);
      pen.fillText(`${+(i * step).toPrecision(6)} s`, x + 3, bottom - 6);
    }
  }

  // Times outside of the range are dim.
  drawRange(colors, height) {
    const range = this.dragged ?? this.selection.range;
    if (range === null) return;
    const {pen, left, columns} = this;
    const [from, to] = range;
    pen.fillStyle = colors.card;
    pen.globalAlpha = 0.72;
    if (!this.isHeat) {
      const start = left + Math.min(from / this.length, 1) * columns;
      const end = left + Math.min(to / this.length, 1) * columns;
      pen.fillRect(left, 0, start - left, height);
      pen.fillRect(end, 0, left + columns - end, height);
      pen.globalAlpha = 1;
      pen.fillStyle = colors.text;
      for (const x of [start, end]) pen.fillRect(x - 0.5, 0, 1, height);
      return;
    }
    const wide = columns / this.heatColumns;
    for (let column = 0; column < this.heatColumns; ++column) {
      const low = Math.min(Math.max(from / this.period - column, 0), 1);
      const high = Math.min(Math.max(to / this.period - column, 0), 1);
      const dim = low < high ? [[0, low], [high, 1]] : [[0, 1]];
      for (const [a, b] of dim) pen.fillRect(left + column * wide, (1 - b) * height, wide, (b - a) * height);
    }
    pen.globalAlpha = 1;
  }

  drawPointer(colors, height) {
    const {pen, pointer, left, columns} = this;
    pen.strokeStyle = pen.fillStyle = colors.text;
    pen.lineWidth = 1;
    if (!this.isHeat) return pen.fillRect(left + pointer.x, 0, 1, height);
    const wide = columns / this.heatColumns;
    pen.strokeRect(left + pointer.column * wide + 0.5, (HEAT_ROWS - 1 - pointer.row) * HEAT_ROW - 0.5, Math.max(wide - 2, 1), HEAT_ROW + 0.5);
  }

  // What is at a place of the pointer: a row of threads, or a cell with its span of time. The span is
  // that of a pixel, or of a cell of the heat map.
  placeAt(event) {
    const frame = this.canvas.getBoundingClientRect();
    const isName = !this.isHeat && event.clientX - frame.left < this.left;
    const x = Math.min(Math.max(event.clientX - frame.left - this.left, 0), this.columns - 1);
    const y = event.clientY - frame.top;
    if (!this.isHeat) {
      const row = Math.floor(y / STRIP_ROW);
      const span = [x / this.columns * this.length, (x + 1) / this.columns * this.length];
      return {row: row < this.rows.length ? row : -1, isName, x, span, cell: row * this.cells + Math.floor(x / this.columns * this.cells)};
    }
    const column = Math.floor(x / this.columns * this.heatColumns);
    const row = HEAT_ROWS - 1 - Math.min(Math.max(Math.floor(y / HEAT_ROW), 0), HEAT_ROWS - 1);
    const span = [row, row + 1].map((edge) => (column + edge / HEAT_ROWS) * this.period);
    return {row, column, isName, x, span, cell: column * HEAT_ROWS + row};
  }

  // [title, text] for the tooltip: samples of the cell, and of the fullest one as a scale.
  readout(place) {
    if (this.dragged !== null) {
      const [from, to] = this.dragged;
      return [`${clock(from)} to ${clock(to)}`, duration(to - from)];
    }
    const row = this.isHeat ? null : this.rows[place.row];
    if (place.isName) return [row?.name ?? "", this.helpOf(row)];
    const {all, sought, most, mostOfRow} = this.counts;
    const found = this.isSought ? `, ${count.format(sought[place.cell] ?? 0)} found` : "";
    const wide = this.isHeat ? this.period / HEAT_ROWS : this.length / this.cells;
    const scale = `at most ${count.format(this.isHeat ? most : mostOfRow[place.row] ?? 0)} in ${duration(wide)}`;
    return [this.isHeat ? place.span.map(clock).join(" to ") : clock(place.span[0]),
      [row?.name, amount(all[place.cell] ?? 0) + found, scale].filter(Boolean).join(" · ")];
  }
  helpOf(row) {
    if (!row) return "";
    if (row.threads.length !== 1) return this.isExpanded ? "Click to show fewer threads" : "Click to show all threads";
    return this.selection.thread === null ? "Click to select this thread" : "Click to select all threads";
  }

  clickName(row) {
    if (row.threads.length === 1) return this.on.chooseThread(this.selection.thread === null ? row.threads[0] : null);
    this.isExpanded = !this.isExpanded;
    this.refresh();
  }

  hover(event) {
    const place = this.placeAt(event);
    const isOnThread = this.isHeat || place.row >= 0;
    this.pointer = place.isName || !isOnThread ? null : place;
    this.canvas.style.cursor = place.isName ? "pointer" : "crosshair";
    if (isOnThread || this.dragged) this.on.hover(...this.readout(place), event); else this.on.hover("", "", null);
    this.drawSoon();
  }

  drag(event) {
    const [first, last] = [this.dragFrom.span, this.placeAt(event).span];
    const hasMoved = Math.abs(event.clientX - this.dragFrom.x) + Math.abs(event.clientY - this.dragFrom.y) > 3;
    this.dragged = hasMoved ? [Math.min(first[0], last[0]), Math.max(first[1], last[1])] : null;
    this.on.drag(this.dragged);
  }

  drop() {
    const range = this.dragged;
    const {row, isName} = this.dragFrom;
    this.dragFrom = this.dragged = null;
    if (range === null && isName) return this.rows[row] && this.clickName(this.rows[row]);
    this.on.select(range); // a click without a drag selects all
  }

  leave() {
    this.pointer = null;
    this.on.hover("", "", null);
    this.drawSoon();
  }

  listen() {
    const {canvas} = this;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      this.dragFrom = {...this.placeAt(event), x: event.clientX, y: event.clientY};
    });
    canvas.addEventListener("pointermove", (event) => {
      if (this.dragFrom !== null) this.drag(event);
      this.hover(event);
    });
    canvas.addEventListener("pointerleave", () => this.leave());
    canvas.addEventListener("pointerup", () => {
      if (this.dragFrom !== null) this.drop(); // else it was another button
    });
    canvas.addEventListener("pointercancel", () => {
      this.dragFrom = this.dragged = null;
      this.on.drag(null);
      this.leave();
    });
    this.scroller.addEventListener("scroll", () => this.drawSoon(), {passive: true});
    new ResizeObserver(() => this.refresh()).observe(this.scroller);
  }
}
