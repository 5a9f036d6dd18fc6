// A chart as an SVG file, with all of its rows. Each box has its name and numbers as a title.
const svgOf = (chart, title) => {
  const width = 1200;
  const rows = layOut(chart.tree, chart.zoom, width);
  const height = rows.length * ROW + 30;
  // XML has no way to write other control characters, or half a surrogate pair.
  const escapes = {"<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;"};
  const escaped = (text) => text.replace(/[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff]|\p{Surrogate}/gu, "\ufffd")
    .replace(/[<>&"]/g, (letter) => escapes[letter]);
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="100%" height="100%" fill="#ffffff"/>`,
    `<text x="5" y="19" font-size="14" font-weight="bold" fill="${INK}">${escaped(title)}</text>`,
  ];
  const pen = chart.pen;
  pen.font = "12px sans-serif";
  const hexOf = (paint) => { // some programs do not read hsl()
    pen.fillStyle = paint;
    return pen.fillStyle;
  };
  rows.forEach((boxes, row) => {
    const y = 30 + (chart.growsUp ? rows.length - 1 - row : row) * ROW;
    for (const {node, x, width: wide} of boxes) {
      const place = `x="${x.toFixed(1)}" y="${y}" width="${Math.max(wide - 0.5, 0.3).toFixed(1)}" height="${ROW - 1}"`;
      if (node < 0) {
        lines.push(`<rect ${place} fill="#e2dfd8"/>`);
        continue;
      }
      const name = chart.tree.name(node);
      const details = `${name.slice(0, SHOWN_LETTERS)}: ${amount(chart.tree.totals[node])}, ` +
        percent(chart.tree.totals[node], chart.tree.totals[0]);
      const text = wide > 22 ? fitted(pen, name, wide - 10) : "";
      lines.push(`<g><title>${escaped(details)}</title><rect ${place} fill="${hexOf(paintOf(chart.tree.keys[node]))}"/>` +
        (text && `<text x="${(x + 5).toFixed(1)}" y="${y + 15}" fill="${INK}">${escaped(text)}</text>`) + "</g>");
    }
  });
  return [...lines, "</svg>", ""].join("\n");
};
