// SPDX-License-Identifier: MIT
// Two recordings: their samples in one tree, and how to show what changed from the baseline.

const baseline = data.baseline ?? null;
const isDifference = () => baseline !== null && state.compare === "difference";

// Widths of boxes, by what is shown. In the difference it is the larger side, so that both what
// appeared and what vanished has a box.
const WIDTHS = {
  old: (before) => before,
  new: (before, after) => after,
  difference: (before, after) => Math.max(before * baseline.scale, after),
};

// Of all samples of the baseline, as `perfmap report --baseline` prints it.
const changeOf = (before, after) => (after / baseline.scale - before) / Math.max(baseline.samples, 1);
// The rule of `perfmap report --baseline`, where each sample counts `one`. See Noise in report_comparison.cpp.
const clamped = (value, least) => Math.min(Math.max(value, least), 1);
const NOISES = {
  amounts: {sampling: (value, one) => one * (value + one), sensitivity: (value) => value},
  shares: {
    sampling: (value, one) => one * (value + one) * clamped(1 - value + one, one),
    sensitivity: (value) => value * clamped(Math.SQRT2 * (1 - value), 0),
  },
  ratios: {sampling: (value, one) => one * (value + one + value ** 2), sensitivity: (value) => value * Math.SQRT2},
};
const varianceOf = (value, one) => {
  const noise = NOISES[baseline.values];
  return noise.sampling(value, one) + (baseline.run_to_run * noise.sensitivity(value)) ** 2;
};
// 1: grew, -1: shrank, 0: the change may be chance, or is below the threshold. This is Normalization::change().
const directionOf = (before, after) => {
  const [oldOne, newOne] = [baseline.unit, baseline.unit / baseline.scale];
  const change = after * newOne - before * oldOne;
  const variance = varianceOf(before * oldOne, oldOne) + varianceOf(after * newOne, newOne);
  const isLarge = 1e6 * Math.abs(changeOf(before, after)) >= baseline.threshold_ppm;
  const isSure = Math.abs(change) >= baseline.deviations * Math.sqrt(variance);
  return isLarge && isSure ? Math.sign(change) : 0;
};

const signedPercent = (share) => {
  const number = (100 * Math.abs(share)).toFixed(2);
  return (Number(number) === 0 ? "" : share < 0 ? "−" : "+") + number + " %";
};
// If shares are compared, that of all samples does not change, whatever became of their number.
const comparesShares = baseline?.values === "shares";
const changeMark = (before, after) => ["▼ ", "", "▲ "][directionOf(before, after) + 1];
const totalText = () => `total ${signedPercent(baseline.total_change_ppm / 1e6)}`;
const changeText = (before, after) => comparesShares && before === baseline.samples && after === baseline.new_samples ?
  totalText() : changeMark(before, after) + signedPercent(changeOf(before, after));
const sidesText = (before, after) => `old ${count.format(before)}, ${percent(before, baseline.samples)} · ` +
  `new ${count.format(after)}, ${percent(after, baseline.new_samples)} · ${changeText(before, after)}`;

// Red and blue differ for colour-blind people too; the marks of names say the same without colour.
const HUES = {"1": 10, "-1": 214};
const changePaint = (direction, strength) => {
  const darker = isDark.matches ? 7 : 0;
  if (direction === 0) return `hsl(40 6% ${isDark.matches ? 62 : 86}%)`;
  return `hsl(${HUES[direction]} ${45 + 40 * strength}% ${84 - 20 * strength - darker}%)`;
};
const sidesPaint = (before, after) => {
  const scaled = before * baseline.scale;
  const strength = Math.abs(after - scaled) / Math.max(after, scaled, 1);
  return changePaint(directionOf(before, after), strength);
};

// The colour and the name of a box.
const boxPaint = (tree, node) => isDifference() ? sidesPaint(tree.olds[node], tree.news[node]) : paintOf(tree.keys[node]);
const boxName = (tree, node) => (isDifference() ? changeMark(tree.olds[node], tree.news[node]) : "") + tree.name(node);
const boxText = (tree, node) => baseline !== null ? sidesText(tree.olds[node], tree.news[node]) : amount(tree.totals[node]);

const CHANGES = [[1, "▲ grew"], [-1, "▼ shrank"], [0, `no change beyond chance, or below ${(baseline?.threshold_ppm ?? 0) / 1e4} %`]];
const showChanges = () => {
  byId("changes").hidden = !isDifference();
  byId("kinds").hidden = isDifference();
  if (!isDifference()) return;
  byId("changes").replaceChildren(...CHANGES.map(([direction, text]) => {
    const dot = element("span", {className: "dot"});
    dot.style.backgroundColor = changePaint(direction, 1);
    return element("li", {}, dot, text);
  }), element("li", {textContent: "Width: the larger of old and new"}));
};
