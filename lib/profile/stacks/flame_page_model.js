// SPDX-License-Identifier: MIT
// The data of the page: functions, processes, threads and counted samples.

const byId = (id) => document.getElementById(id);

// A function that calls `draw` once before the next picture, however often it is called.
const oncePerFrame = (draw) => {
  let isDue = false;
  return () => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      draw();
    });
  };
};

const element = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};

const data = JSON.parse(byId("data").textContent);

// A log of PyPy has a unit of its own: ticks, or samples of a recording in its loops. Its stacks have
// loops and phases such as garbage collections, and its processes are threads.
const isLog = Boolean(data.unit);
const countsTicks = isLog && data.unit !== "samples";
const CLASS_NAMES = ["unknown", "kernel", !isLog ? "native" : countsTicks ? "phase" : "outside of loops", "inlined", "interpreted", "baseline",
  "middle tier", "optimised", "runtime", "JIT"];
const FIRST_JIT = 4;
const JIT = 9;
const ROOT = -0x80000000; // the key of a root that is neither a function nor a label

// A key says what a box shows: key n >= 0 is functions[n], key ~n is the label n of a process or
// thread. After the functions of the data come groups: a function with all its tiers, and all
// functions of a module.
const functions = data.names.map((name, i) => ({
  name,
  module: data.strings[data.modules[i]],
  file: data.strings[data.files[i]],
  lines: [data.first_lines[i], data.last_lines[i]],
  doubts: data.doubts ? data.strings[data.doubts[i]] : "",
  code: data.classes[i],
  tier: data.strings[data.tiers[i]],
  merged: i,      // the key of the function with all its tiers
  isModule: false,
}));

const addGroup = (properties) => functions.push({
  module: "", file: "", lines: [0, 0], doubts: "", tier: "", merged: functions.length, isModule: false, ...properties,
}) - 1;

const hasTiers = Boolean(data.merged);
const mergeTiers = () => {
  const groups = new Map();
  const nameWithoutTier = (i) => data.merged[i] ? data.strings[data.merged[i]] : data.names[i];
  const idOf = (i) => [nameWithoutTier(i), functions[i].module, functions[i].file].join("\0");
  for (let i = 0; i < data.names.length; ++i) {
    if (data.merged[i] && !groups.has(idOf(i))) {
      const {module, file} = functions[i];
      groups.set(idOf(i), addGroup({name: nameWithoutTier(i), module, file, code: JIT}));
    }
  }
  for (let i = 0; i < data.names.length; ++i) {
    if (functions[i].code >= FIRST_JIT) functions[i].merged = groups.get(idOf(i)) ?? i;
  }
};
if (hasTiers) mergeTiers();

const modules = new Map(); // name to key
for (const {module, code} of functions.slice(0, data.names.length)) {
  if (module && !modules.has(module)) {
    modules.set(module, addGroup({name: `[${module.split("/").pop()}]`, module, code, isModule: true}));
  }
}

// The legend has a kind for each class of code, and for each tier of JIT code.
const kinds = [];
const kindOf = functions.map(({code, tier}) => {
  const isJit = code >= FIRST_JIT;
  const name = isJit && tier || CLASS_NAMES[code];
  const known = kinds.findIndex((kind) => kind.name === name);
  if (known >= 0) return known;
  const twin = kinds.filter((kind) => kind.code === code).length;
  return kinds.push({name, code, twin, label: (isJit && name !== "JIT" ? "JIT " : "") + name}) - 1;
});

const nameOf = (key) => key === ROOT ? "all" : key < 0 ? data.labels[~key] : functions[key].name;

// "file.c:12", or "file.c:12–40" if the samples are in several lines.
const sourceOf = ({file, lines: [first, last]}) => {
  if (!file || !first) return file;
  return `${file}:${first}` + (last > first ? `–${last}` : "");
};

// The first two levels of the data's tree are processes and threads.
const NODES = data.parent_distances.length;
const parentOf = Int32Array.from(data.parent_distances, (distance, node) => node - distance);
const isProcess = (node) => node !== 0 && parentOf[node] === 0;
const isThread = (node) => node !== 0 && isProcess(parentOf[node]);
const threadOf = new Int32Array(NODES);
const keyOfNode = new Int32Array(NODES);
keyOfNode[0] = ROOT;
for (let node = 1; node < NODES; ++node) {
  const parent = parentOf[node];
  threadOf[node] = isThread(node) ? node : threadOf[parent];
  keyOfNode[node] = isProcess(node) || isThread(node) ? ~data.frames[node] : data.frames[node];
}

// Times are seconds since the first sample.
const hasTimes = data.has_times;
const SLOT = data.slot / 1e9;
const DURATION = data.duration / 1e9;
const slots = Float64Array.from(data.slots);
for (let i = 1; i < slots.length; ++i) slots[i] += slots[i - 1];

const samplesBy = (numberOf) => {
  const found = new Map();
  data.counts.forEach((samples, i) => {
    const number = numberOf(i);
    found.set(number, (found.get(number) ?? 0) + samples);
  });
  return new Map([...found].sort((a, b) => b[1] - a[1] || a[0] - b[0]));
};
const eventOf = (i) => data.events_of ? data.events_of[i] : 0;

// Numbers of those that have samples, the most sampled one first, with their samples. Processes and
// threads are nodes of the data's tree.
const samplesByEvent = samplesBy(eventOf);
const samplesByThread = samplesBy((i) => threadOf[data.nodes[i]]);
const processOf = (i) => parentOf[threadOf[data.nodes[i]]];
const samplesByProcess = samplesBy(processOf);

// Calls back for each count of the selection, which has an event, a process, a thread and a range of
// seconds; null: all.
const visitSamples = ({event, process, thread, range}, visit) => {
  const [from, to] = range ?? [0, Infinity];
  for (let i = 0; i < data.counts.length; ++i) {
    const time = slots[i] * SLOT;
    const sampledThread = threadOf[data.nodes[i]];
    if (time >= to) break;
    if (time < from) continue;
    if (event !== null && eventOf(i) !== event) continue;
    if (thread !== null && sampledThread !== thread) continue;
    if (process !== null && parentOf[sampledThread] !== process) continue;
    visit(data.nodes[i], data.counts[i], time, eventOf(i));
  }
};

// Numbers as text.
const UNIT = data.unit ?? "samples";
const count = new Intl.NumberFormat("en", {maximumFractionDigits: 0});
const amount = (samples) => `${count.format(samples)} ${samples === 1 ? UNIT.replace(/s$/, "") : UNIT}`;
const percent = (part, whole) => {
  if (!(whole > 0)) return "–";
  if (part > 0 && part / whole < 0.00005) return "< 0.01 %";
  return (100 * part / whole).toFixed(part === whole ? 0 : 2) + " %";
};
const clock = (time) => time.toFixed(DURATION < 1 ? 4 : DURATION < 1000 ? 3 : 1) + " s"; // a moment
const duration = (time) => {
  if (time < 1) return +(time * 1000).toFixed(1) + " ms";
  if (time < 100) return time.toFixed(2) + " s";
  if (time < 6000) return `${Math.floor(time / 60)} min ${Math.floor(time % 60)} s`;
  return count.format(Math.floor(time / 3600)) + ` h ${Math.floor(time / 60) % 60} min`;
};
