// SPDX-License-Identifier: MIT
// The charts of a view as an SVG file, with all of their rows. Each box has its name and numbers as a
// title.

const SVG_WIDTH = 1200;

// XML has no way to write other control characters, or half a surrogate pair.
const ESCAPES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;"};
const escaped = (text) => text.replace(/[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff]|\p{Surrogate}/gu, "\ufffd")
  .replace(/[<>&"]/g, (letter) => ESCAPES[letter]);
const svgText = (x, y, text, more = "") => `<text x="${x.toFixed(1)}" y="${y}" fill="${INK}"${more}>${escaped(text)}</text>`;

const svgBox = (chart, {node, x, width}, y, colorOf) => {
  const {tree, pen, found} = chart;
  const place = `x="${x.toFixed(1)}" y="${y}" width="${Math.max(width - 0.5, 0.3).toFixed(1)}" height="${ROW - 1}"`;
  if (node < 0) return `<rect ${place} fill="#e2dfd8"/>`;
  const name = boxName(tree, node);
  const share = baseline === null ? `, ${percent(tree.totals[node], tree.totals[0])}` : "";
  const details = `${shortened(name, MOST_LETTERS)}: ${boxText(tree, node)}${share}`;
  const dim = found !== null && !found.hits[node] ? ` fill-opacity="${DIM}"` : "";
  const text = width > 22 ? fitted(pen, name, width - 10) : "";
  return `<g><title>${escaped(details)}</title><rect ${place} fill="${colorOf(boxPaint(tree, node))}"${dim}/>` +
    (text && svgText(x + 5, y + 15, text, dim && ` fill-opacity="${DIM_TEXT}"`)) + "</g>";
};

// The lines of one chart whose first row is at `top`, and its height.
const svgChart = (chart, top) => {
  const {pen} = chart;
  const {rows, hidden} = layOut(chart.tree, chart.zoom, SVG_WIDTH);
  const lines = rows.length + (hidden > 0 ? 1 : 0);
  const yOf = (row) => top + (chart.growsUp ? lines - 1 - row : row) * ROW;
  const colorOf = (paint) => { // some programs do not read hsl()
    pen.fillStyle = paint;
    return pen.fillStyle;
  };
  pen.font = "12px sans-serif";
  const boxes = rows.flatMap((row, i) => row.map((box) => svgBox(chart, box, yOf(i), colorOf)));
  if (hidden > 0) boxes.push(svgText(5, yOf(rows.length) + 15, hiddenText(hidden)));
  return {boxes, height: lines * ROW};
};

// `parts` are the charts, each with a heading or none.
const svgOf = (title, selection, parts) => {
  const lines = [svgText(5, 19, title, ' font-size="14" font-weight="bold"')];
  let y = 30;
  const add = (text, more) => {
    lines.push(svgText(5, y + 12, text, more));
    y += 20;
  };
  if (selection) add(selection, "");
  for (const {heading, chart} of parts) {
    if (heading) add(heading, ' font-weight="bold"');
    const {boxes, height} = svgChart(chart, y);
    for (const box of boxes) lines.push(box);
    y += height + 8;
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${SVG_WIDTH}" height="${y}" viewBox="0 0 ${SVG_WIDTH} ${y}" font-family="sans-serif" font-size="12">`,
    `<rect width="100%" height="100%" fill="#ffffff"/>`, ...lines, "</svg>", ""].join("\n");
};
