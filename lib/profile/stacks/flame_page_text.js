// Text and elements.

const UNIT = data.unit ?? "samples";
const count = new Intl.NumberFormat("en");
const amount = (samples) => `${count.format(samples)} ${samples === 1 ? UNIT.replace(/s$/, "") : UNIT}`;
const percent = (part, whole) => whole > 0 ? (100 * part / whole).toFixed(part === whole ? 0 : 2) + " %" : "–";
const seconds = (time) => time.toFixed(DURATION < 1 ? 4 : DURATION < 100 ? 2 : 1) + " s";

const element = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};
