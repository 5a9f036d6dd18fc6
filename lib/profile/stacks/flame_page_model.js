// The data, and the trees that are made of them. A tree is columns: node 0 is the whole, a parent
// comes before its children. A node's key says what it shows: a function, from 0, or ~n, the
// label n of a process or thread.

const data = JSON.parse(document.getElementById("data").textContent);

const CLASS_NAMES = ["unknown", "kernel", "native", "inlined", "interpreted", "baseline",
  "middle tier", "optimised", "runtime", "JIT"];
const JIT_FROM = 4;

// Kinds are what the legend tells apart: a class of code, or a tier of JIT code.
const kinds = [];
const kindOfFunction = data.names.map((_, i) => {
  const code = data.classes[i];
  const tier = code >= JIT_FROM ? data.strings[data.tiers[i]] : "";
  const name = tier || CLASS_NAMES[code];
  let kind = kinds.findIndex((one) => one.name === name);
  if (kind < 0) {
    const twins = kinds.filter((one) => one.code === code).length;
    kind = kinds.push({name, code, twin: twins, isJit: code >= JIT_FROM, self: 0}) - 1;
  }
  return kind;
});

const originalKey = (node) => {
  const parent = data.parents[node];
  const isLabel = node !== 0 && (parent === 0 || data.parents[parent] === 0);
  return isLabel ? ~data.frames[node] : data.frames[node];
};

const nameOfKey = (key) => key < 0 ? data.labels[~key] : data.names[key];

const KEYS = data.names.length + data.labels.length + 1; // and so many differ

class Tree {
  constructor() {
    this.parents = [0];
    this.keys = [NaN];
    this.selfs = [0];
    this.known = new Map();
  }

  child(parent, key) {
    const id = parent * KEYS + key;
    let node = this.known.get(id);
    if (node === undefined) {
      node = this.parents.push(parent) - 1;
      this.keys.push(key);
      this.selfs.push(0);
      this.known.set(id, node);
    }
    return node;
  }

  // Sums, depths, and where each node begins: the heaviest child comes first.
  finish() {
    this.known = null;
    const length = this.parents.length;
    this.totals = Float64Array.from(this.selfs);
    this.depths = new Uint32Array(length);
    this.begins = new Float64Array(length);
    this.children = Array.from({length}, () => null);
    for (let i = length - 1; i > 0; --i) {
      this.totals[this.parents[i]] += this.totals[i];
      (this.children[this.parents[i]] ??= []).push(i);
    }
    for (let i = 0; i < length; ++i) {
      if (i > 0) this.depths[i] = this.depths[this.parents[i]] + 1;
      let at = this.begins[i];
      this.children[i]?.sort((a, b) => this.totals[b] - this.totals[a] || a - b);
      for (const child of this.children[i] ?? []) {
        this.begins[child] = at;
        at += this.totals[child];
      }
    }
    return this;
  }

  name(node) { return node === 0 ? "all" : nameOfKey(this.keys[node]); }
  kind(node) { return this.keys[node] >= 0 ? kindOfFunction[this.keys[node]] : -1; }
}

// Which levels of processes and threads a grouping keeps.
const LEVELS = {threads: [true, true], processes: [true, false], all: [false, false]};

const isKept = (node, levels) => {
  if (originalKey(node) >= 0) return true;
  return levels[data.parents[node] === 0 ? 0 : 1];
};

const callersFirst = (levels) => {
  const tree = new Tree();
  const places = new Uint32Array(data.parents.length);
  for (let i = 0; i < places.length; ++i) {
    const above = places[data.parents[i]];
    if (i > 0) places[i] = isKept(i, levels) ? tree.child(above, originalKey(i)) : above;
    tree.selfs[places[i]] += data.counts[i];
  }
  return tree.finish();
};

const inverted = (levels) => {
  const tree = new Tree();
  for (let i = 0; i < data.parents.length; ++i) {
    if (data.counts[i] === 0) continue;
    let place = 0;
    for (let node = i; node !== 0; node = data.parents[node]) {
      if (isKept(node, levels)) place = tree.child(place, originalKey(node));
    }
    tree.selfs[place] += data.counts[i];
  }
  return tree.finish();
};

const trees = new Map();
const treeOf = (group, order) => {
  const id = group + " " + order;
  if (!trees.has(id)) {
    trees.set(id, (order === "inverted" ? inverted : callersFirst)(LEVELS[group]));
  }
  return trees.get(id);
};

for (let i = 0; i < data.counts.length; ++i) {
  const key = i === 0 ? -1 : originalKey(i);
  if (key >= 0) kinds[kindOfFunction[key]].self += data.counts[i];
}
