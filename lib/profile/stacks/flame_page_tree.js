// SPDX-License-Identifier: MIT
// Trees of boxes. A node's number is above that of its parent, and node 0 is the root.

// Parents and keys of nodes, with a hash table that finds a child by its key.
class TreeShape {
  constructor() {
    this.size = 1;
    this.parents = new Int32Array(1024);
    this.keys = new Int32Array(1024);
    this.keys[0] = ROOT;
    this.table = new Int32Array(2048); // node numbers; 0: free
  }

  child(parent, key) {
    const mask = this.table.length - 1;
    let at = TreeShape.hash(parent, key) & mask;
    for (let node; (node = this.table[at]) !== 0; at = (at + 1) & mask) {
      if (this.parents[node] === parent && this.keys[node] === key) return node;
    }
    if (this.size === this.parents.length) {
      this.grow();
      return this.child(parent, key);
    }
    this.parents[this.size] = parent;
    this.keys[this.size] = key;
    return this.table[at] = this.size++;
  }

  static hash(parent, key) {
    const mixed = Math.imul(parent, 0x9e3779b1) ^ Math.imul(key, 0x85ebca6b);
    return Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d) >>> 7;
  }

  grow() {
    const larger = (old) => {
      const array = new Int32Array(2 * old.length);
      array.set(old);
      return array;
    };
    this.parents = larger(this.parents);
    this.keys = larger(this.keys);
    this.table = new Int32Array(2 * this.table.length);
    const mask = this.table.length - 1;
    for (let node = 1; node < this.size; ++node) {
      let at = TreeShape.hash(this.parents[node], this.keys[node]) & mask;
      while (this.table[at] !== 0) at = (at + 1) & mask;
      this.table[at] = node;
    }
  }
}

// A view of the data's tree: its shape, and for each node of the data the node in which the samples
// of that node are counted; -1: they are not counted.
const DATA_VIEW = {
  shape: {size: NODES, parents: parentOf, keys: keyOfNode},
  places: Int32Array.from({length: NODES}, (_, node) => node),
};

// Makes a view of another one. `visit` is called for each node but the root, parents first, with its
// key, the new node of its parent, the parent's state, and a function that returns a child in the new
// shape. It returns [new node, state, whether samples of this node count].
const transformed = (view, root, visit) => {
  const shape = new TreeShape();
  const {size, parents, keys} = view.shape;
  const moved = new Int32Array(size);
  const counted = new Uint8Array(size);
  const states = new Array(size);
  states[0] = root.state;
  counted[0] = root.counts;
  const child = (parent, key) => shape.child(parent, key);
  for (let node = 1; node < size; ++node) {
    const parent = parents[node];
    const [place, state, counts] = visit(keys[node], moved[parent], states[parent], child);
    moved[node] = place;
    states[node] = state;
    counted[node] = counts;
  }
  const places = view.places.map((place) => place >= 0 && counted[place] ? moved[place] : -1);
  return {shape, places};
};

// The levels that a grouping keeps of [processes, threads].
const LEVELS = {threads: [true, !isLog], processes: [true, false], all: [false, false]};

const grouped = (view, group, mergesTiers) => {
  const levels = LEVELS[group];
  return transformed(view, {state: 0, counts: true}, (key, parent, depth, child) => {
    if (key < 0) return [levels[depth] ? child(parent, key) : parent, depth + 1, true];
    return [child(parent, mergesTiers ? functions[key].merged : key), depth, true];
  });
};

// Steps that change the stacks. Each has a title, and a function that makes a view of another one;
// `isMeant(key)` says which functions are meant: one function, or all of a module.
const STEPS = {
  focus: {
    title: (name) => `Only ${name}`,
    menu: "Show only samples in it",
    // Stacks begin at the function; others are not counted. Processes and threads stay.
    apply: (view, isMeant) => transformed(view, {state: false, counts: false}, (key, parent, isInside, child) => {
      const counts = isInside || isMeant(key);
      return [counts || key < 0 ? child(parent, key) : parent, counts, counts];
    }),
  },
  hide: {
    title: (name) => `Without ${name}`,
    menu: "Hide samples in it",
    apply: (view, isMeant) => transformed(view, {state: false, counts: true}, (key, parent, isHidden, child) => {
      const hides = isHidden || isMeant(key);
      return [hides ? parent : child(parent, key), hides, !hides];
    }),
  },
  merge: {
    title: (name) => `${name} merged into callers`,
    menu: "Merge it into its callers",
    apply: (view, isMeant) => transformed(view, {counts: true}, (key, parent, state, child) =>
      [isMeant(key) ? parent : child(parent, key), state, true]),
  },
  collapse: {
    title: (name) => `${name} collapsed`,
    menu: "Collapse its recursion",
    menuOfModule: "Collapse it into one box",
    // Neighbours of one module become one box. A function below itself goes back to its first box.
    apply: (view, isMeant, {key: wanted}) => functions[wanted].isModule
      ? transformed(view, {state: false, counts: true}, (key, parent, isInside, child) => {
        if (!isMeant(key)) return [child(parent, key), false, true];
        return [isInside ? parent : child(parent, wanted), true, true];
      })
      : transformed(view, {state: -1, counts: true}, (key, parent, first, child) => {
        if (!isMeant(key)) return [child(parent, key), first, true];
        const place = first >= 0 ? first : child(parent, key);
        return [place, place, true];
      }),
  },
};

// The function that a key means with tiers apart or merged: its group if they are merged.
const meantKey = (key, mergesTiers) => mergesTiers ? functions[key].merged : key;
// Whether a shown function is meant: with tiers apart, a group means all of its functions.
const meaning = (key, mergesTiers) => {
  const {isModule, module} = functions[key];
  if (isModule) return (shown) => shown >= 0 && functions[shown].module === module;
  const meant = meantKey(key, mergesTiers);
  return (shown) => shown >= 0 && (shown === meant || functions[shown].merged === meant);
};
const applyStep = (view, step, mergesTiers) => STEPS[step.kind].apply(view, meaning(step.key, mergesTiers), step);

// Callees first: each stack begins at its leaf.
const inverted = (view) => {
  const shape = new TreeShape();
  const ends = new Int32Array(view.shape.size).fill(-1);
  const {parents, keys} = view.shape;
  for (const leaf of new Set(data.nodes.map((node) => view.places[node]))) {
    if (leaf < 0) continue;
    let place = 0;
    for (let node = leaf; node !== 0; node = parents[node]) place = shape.child(place, keys[node]);
    ends[leaf] = place;
  }
  return {shape, places: view.places.map((place) => place >= 0 ? ends[place] : -1)};
};

// A shape with samples: sums, and the order of the boxes, the heaviest child first. A comparison has
// the own samples of both recordings, as {olds, news}, of which `selfs` are the widths.
class Tree {
  constructor(shape, selfs, sides = null) {
    const {size, parents} = shape;
    this.size = size;
    this.parents = parents;
    this.keys = shape.keys;
    this.selfs = selfs;
    this.totals = Float64Array.from(selfs);
    this.depths = new Uint32Array(size);
    this.begins = new Float64Array(size);
    this.firstChild = new Int32Array(size + 1); // where a node's children begin in `children`
    this.heights = new Uint32Array(size); // levels with samples below a node
    for (let node = size - 1; node > 0; --node) {
      const parent = parents[node];
      this.totals[parent] += this.totals[node];
      if (this.totals[node] === 0) continue;
      ++this.firstChild[parent + 1];
      this.heights[parent] = Math.max(this.heights[parent], this.heights[node] + 1);
    }
    if (sides !== null) {
      this.sides = sides;
      [this.olds, this.news] = [sides.olds, sides.news].map((own) => {
        const sums = Float64Array.from(own);
        for (let node = size - 1; node > 0; --node) sums[parents[node]] += sums[node];
        return sums;
      });
    }
    for (let node = 0; node < size; ++node) this.firstChild[node + 1] += this.firstChild[node];
    this.children = new Int32Array(this.firstChild[size]);
    const next = this.firstChild.slice(0, size);
    for (let node = 1; node < size; ++node) {
      this.depths[node] = this.depths[parents[node]] + 1;
      if (this.totals[node] > 0) this.children[next[parents[node]]++] = node;
    }
    for (let node = 0; node < size; ++node) {
      const children = this.childrenOf(node);
      if (children.length > 1) children.sort((a, b) => this.totals[b] - this.totals[a] || a - b);
      let at = this.begins[node];
      for (const child of children) {
        this.begins[child] = at;
        at += this.totals[child];
      }
    }
  }

  static of(view, selection) {
    const {size} = view.shape;
    const counted = [new Float64Array(size), new Float64Array(size)];
    visitSamples(selection, (node, samples, time, event) => {
      const place = view.places[node];
      if (place >= 0) counted[baseline === null ? 0 : event][place] += samples;
    });
    if (baseline === null) return new Tree(view.shape, counted[0]);
    const [olds, news] = counted;
    return new Tree(view.shape, olds.map((before, node) => WIDTHS[selection.compare](before, news[node])), {olds, news});
  }

  childrenOf(node) { return this.children.subarray(this.firstChild[node], this.firstChild[node + 1]); }
  name(node) { return nameOf(this.keys[node]); }

  pathTo(node) {
    const path = [node];
    for (; node !== 0; node = this.parents[node]) path.unshift(this.parents[node]);
    return path;
  }
}

// Samples of each function in a tree that is not inverted: self, and total, in which a sample counts
// once however often the function is in its stack; and whether the function is below itself.
const sumsOf = (tree) => {
  const selfs = new Float64Array(functions.length);
  const totals = new Float64Array(functions.length);
  const olds = new Float64Array(functions.length); // own samples of a comparison
  const news = new Float64Array(functions.length);
  const open = new Uint32Array(functions.length); // boxes of the function above this one
  const isRecursive = new Uint8Array(functions.length);
  const stack = [0];
  while (stack.length > 0) {
    const node = stack.pop();
    if (node < 0) { // all boxes below are done
      --open[tree.keys[~node]];
      continue;
    }
    const key = tree.keys[node];
    if (key >= 0) {
      selfs[key] += tree.selfs[node];
      olds[key] += tree.sides?.olds[node] ?? 0;
      news[key] += tree.sides?.news[node] ?? 0;
      if (open[key]++ === 0) totals[key] += tree.totals[node];
      else if (tree.totals[node] > 0) isRecursive[key] = 1;
      stack.push(~node);
    }
    for (const child of tree.childrenOf(node)) stack.push(child);
  }
  return {selfs, totals, isRecursive, olds, news};
};

// The trees of callers and of callees of a function, and its own samples. Both roots are the function
// itself; a sample counts once, at the outermost box of the function.
const callersAndCallees = (tree, key, isMeant) => {
  const shapes = {callers: new TreeShape(), callees: new TreeShape()};
  const counts = {callers: [], callees: []}; // widths, and the samples of both sides of a comparison
  const add = (side, place, samples, before, after) => {
    const sums = counts[side][place] ??= [0, 0, 0];
    [samples, before, after].forEach((number, i) => { sums[i] += number ?? 0; });
  };
  const places = new Int32Array(tree.size).fill(-1); // in the tree of callees
  for (let node = 1; node < tree.size; ++node) {
    const above = places[tree.parents[node]];
    if (above >= 0) {
      places[node] = shapes.callees.child(above, tree.keys[node]);
    } else if (isMeant(tree.keys[node])) {
      places[node] = 0;
      let place = 0;
      for (let caller = tree.parents[node]; caller !== 0; caller = tree.parents[caller]) {
        place = shapes.callers.child(place, tree.keys[caller]);
      }
      if (tree.totals[node] > 0) add("callers", place, tree.totals[node], tree.olds?.[node], tree.news?.[node]);
    }
    if (places[node] >= 0 && tree.selfs[node] > 0) add("callees", places[node], tree.selfs[node], tree.sides?.olds[node], tree.sides?.news[node]);
  }
  const made = {selfs: 0};
  for (let node = 1; node < tree.size; ++node) if (isMeant(tree.keys[node])) made.selfs += tree.selfs[node];
  for (const side of ["callers", "callees"]) {
    shapes[side].keys[0] = key;
    const [widths, olds, news] = [0, 1, 2].map((which) =>
      Float64Array.from({length: shapes[side].size}, (_, place) => counts[side][place]?.[which] ?? 0));
    made[side] = new Tree(shapes[side], widths, tree.sides && {olds, news});
  }
  return made;
};
