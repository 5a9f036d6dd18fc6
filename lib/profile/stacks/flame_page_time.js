// The time strip: when samples were taken, by thread or as a heat map, and the selected range.

const STRIP_ROWS = 6;        // threads that have a row of their own
const STRIP_ROW = 15;
const NAME_WIDTH = 130;      // of the threads' names
const HEAT_ROWS = 25;        // parts of a column
const HEAT_ROW = 4;
const HEAT_WIDTH = 40;       // of a column, at most

class TimeStrip {
  // `onSelect` is called with [from, to] in seconds, or null for all.
  constructor(canvas, onSelect) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d", {alpha: false});
    this.onSelect = onSelect;
    this.mode = "threads";
    this.selection = null; // of samples, as visitSamples() takes it
    this.isSought = null;  // of each node of the data: whether its stack is sought; null: nothing is
    this.dragFrom = null;
    this.dragged = null;
    this.listen();
  }

  show(mode, selection, isSought) {
    this.mode = mode;
    this.selection = selection;
    this.isSought = isSought;
    this.refresh();
  }

  get width() { return this.canvas.clientWidth; }
  get left() { return this.mode === "threads" ? Math.min(NAME_WIDTH, this.width / 4) : 0; }
  get pixels() { return Math.max(Math.floor(this.width - this.left), 1); }
  get columns() { return this.mode === "heat" ? Math.min(this.pixels, this.heatColumns * HEAT_WIDTH) : this.pixels; }
  // The recording's end is in the last column.
  get length() { return Math.max(DURATION, SLOT) + SLOT; }
  // Seconds of a column of the heat map: one, if the columns fit.
  get period() { return Math.max(Math.ceil(this.length / this.pixels), 1); }
  get heatColumns() { return Math.ceil(this.length / this.period); }

  threads() {
    const {thread, process} = this.selection;
    const isShown = (node) => (thread === null || node === thread) && (process === null || parentOf[node] === process);
    return [...samplesByThread.keys()].filter(isShown);
  }

  refresh() {
    if (this.selection === null || this.width === 0) return;
    const rows = this.mode === "threads" ? Math.min(this.threads().length, STRIP_ROWS + 1) * STRIP_ROW : HEAT_ROWS * HEAT_ROW;
    const height = Math.max(rows, STRIP_ROW) + 14;
    this.canvas.style.height = height + "px";
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.draw();
  }

  draw() {
    const {pen, width} = this;
    const colors = themeColors();
    const height = this.canvas.clientHeight;
    pen.globalAlpha = 1;
    pen.fillStyle = colors.card;
    pen.fillRect(0, 0, width, height);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    if (this.mode === "threads") this.drawThreads(colors); else this.drawHeat(colors);
    this.drawAxis(colors, height);
    this.drawRange(colors, height - 14);
  }

  // Counts of cells, all and sought. Samples of the whole recording, whatever range is selected.
  count(cells, cellOf) {
    const all = new Float64Array(cells);
    const sought = new Float64Array(cells);
    visitSamples({...this.selection, range: null}, (node, samples, time) => {
      const cell = cellOf(node, time);
      if (cell < 0) return;
      all[cell] += samples;
      if (this.isSought?.[node]) sought[cell] += samples;
    });
    return {all, sought, most: all.reduce((a, b) => Math.max(a, b), 0)};
  }

  drawThreads(colors) {
    const {pen, left, columns} = this;
    const threads = this.threads();
    const rows = Math.min(threads.length, STRIP_ROWS + 1);
    const rowOf = new Map(threads.map((node, i) => [node, Math.min(i, STRIP_ROWS)]));
    const width = Math.min(columns, Math.max(Math.ceil(this.length / SLOT), 1)); // cells in a row
    const {all, sought, most} = this.count(rows * width, (node, time) =>
      (rowOf.get(threadOf[node]) ?? -1) * width + Math.min(Math.floor(time / this.length * width), width - 1));
    const cell = columns / width;
    for (let row = 0; row < rows; ++row) {
      const bottom = (row + 1) * STRIP_ROW - 1;
      const others = threads.length - STRIP_ROWS;
      const name = row === STRIP_ROWS && others > 1 ? `${others} other threads` : nameOf(~data.frames[threads[row]]);
      pen.fillStyle = colors.quiet;
      pen.fillText(fitted(pen, name, left - 12), 6, bottom - STRIP_ROW / 2 + 1);
      for (let column = 0; column < width; ++column) {
        const at = row * width + column;
        if (all[at] === 0) continue;
        const tall = Math.max(all[at] / most * (STRIP_ROW - 2), 1);
        const x = left + column * cell;
        pen.fillStyle = this.isSought ? colors.line : colors.accent;
        pen.fillRect(x, bottom - tall, Math.max(cell, 1), tall);
        pen.fillStyle = colors.accent;
        const part = tall * sought[at] / all[at];
        if (part > 0) pen.fillRect(x, bottom - part, Math.max(cell, 1), part);
      }
    }
  }

  // A column for each period, with its beginning at the bottom.
  drawHeat(colors) {
    const {pen, columns, heatColumns, period} = this;
    const {all, sought, most} = this.count(heatColumns * HEAT_ROWS, (node, time) =>
      Math.min(Math.floor(time / period * HEAT_ROWS), heatColumns * HEAT_ROWS - 1));
    const wide = columns / heatColumns;
    const shown = this.isSought ? sought : all;
    for (let i = 0; i < shown.length; ++i) {
      const x = Math.floor(i / HEAT_ROWS) * wide;
      const y = (HEAT_ROWS - 1 - i % HEAT_ROWS) * HEAT_ROW;
      pen.globalAlpha = shown[i] > 0 ? 0.15 + 0.85 * shown[i] / most : 1;
      pen.fillStyle = shown[i] > 0 ? colors.accent : colors.field;
      pen.fillRect(x, y, Math.max(wide - (wide > 3 ? 1 : 0), 0.5), HEAT_ROW - 0.5);
    }
    pen.globalAlpha = 1;
  }

  drawAxis(colors, height) {
    const {pen, left, columns} = this;
    const whole = this.mode === "heat" ? this.heatColumns * this.period : this.length;
    const steps = Array.from({length: 24}, (_, power) => 10 ** (power - 4)).flatMap((base) => [base, 2 * base, 5 * base]);
    const least = this.mode === "heat" ? this.period : 0;
    const step = steps.find((one) => one >= least && whole / one <= columns / 70) ?? whole;
    pen.fillStyle = colors.quiet;
    for (let i = 0; i * step < whole && i < 100; ++i) {
      const x = left + i * step / whole * columns;
      pen.fillRect(x, height - 14, 1, 4);
      pen.fillText(`${+(i * step).toPrecision(6)} s`, x + 3, height - 6);
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
    if (this.mode === "threads") {
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
      for (const [a, b] of dim) pen.fillRect(column * wide, (1 - b) * height, wide, (b - a) * height);
    }
    pen.globalAlpha = 1;
  }

  // The span of time at a place of the pointer: that of its pixel, or of its cell of the heat map.
  spanAt(event) {
    const frame = this.canvas.getBoundingClientRect();
    const x = Math.min(Math.max(event.clientX - frame.left - this.left, 0), this.columns - 1);
    if (this.mode === "threads") {
      return [x / this.columns * this.length, (x + 1) / this.columns * this.length];
    }
    const column = Math.floor(x / this.columns * this.heatColumns);
    const row = HEAT_ROWS - 1 - Math.min(Math.max(Math.floor((event.clientY - frame.top) / HEAT_ROW), 0), HEAT_ROWS - 1);
    return [row, row + 1].map((edge) => (column + edge / HEAT_ROWS) * this.period);
  }

  listen() {
    const {canvas} = this;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      this.dragFrom = {span: this.spanAt(event), x: event.clientX, y: event.clientY};
    });
    canvas.addEventListener("pointermove", (event) => {
      if (this.dragFrom === null) return;
      const [first, last] = [this.dragFrom.span, this.spanAt(event)];
      const hasMoved = Math.abs(event.clientX - this.dragFrom.x) + Math.abs(event.clientY - this.dragFrom.y) > 3;
      this.dragged = hasMoved ? [Math.min(first[0], last[0]), Math.max(first[1], last[1])] : null;
      this.draw();
    });
    canvas.addEventListener("pointerup", () => {
      if (this.dragFrom === null) return; // another button
      const range = this.dragged;
      this.dragFrom = this.dragged = null;
      this.onSelect(range); // a click without a drag selects all
    });
    canvas.addEventListener("pointercancel", () => {
      this.dragFrom = this.dragged = null;
      this.draw();
    });
    new ResizeObserver(() => this.refresh()).observe(canvas.parentElement);
  }
}
