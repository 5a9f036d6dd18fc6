// Keeps tiers, builtins and callbacks busy: node load.js MILLISECONDS, of time and of processor time
'use strict';
const least = Number(process.argv[2] || 3000), end = Date.now() + least;
let total = 0;

function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

class Doubled {
  constructor(value) { this.value = value; }
  get twice() { return this.value * 2; }
  sum(list) { return list.map((x) => x + this.twice).reduce((a, b) => a + b, 0); }
}

function round() {
  total += fib(18) + new Doubled(3).sum([1, 2, 3, 4, 5, 6, 7]);
  total += Object.keys(JSON.parse('{"a":1,"b":[1,2,3]}')).length;
  total += 'abcabc'.replace(/b(c)/g, (all, one) => one + all).length;
  const list = Array.from({length: 200}, (_, i) => (i * 7919) % 1000);
  list.sort((p, q) => p - q);
}

while (Date.now() < end || process.cpuUsage().user < 1000 * least) round();
console.log(total);
