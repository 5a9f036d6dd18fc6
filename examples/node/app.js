// SPDX-License-Identifier: MIT
// A program to profile: it counts the words of a text, by their hashes, and compresses the counts.
const zlib = require("zlib");

function generate(lines) {
  let text = "";
  for (let i = 0; i < lines; i++) text += `line ${i} of the text, page ${i % 100}\n`;
  return text;
}

function hash(text, begin, end) {
  let value = 0;
  for (let i = begin; i < end; i++) value = (value * 31 + text.charCodeAt(i)) % 1000003;
  return value;
}

function countWords(text) {
  const counts = new Map();
  for (let begin = 0, end; (end = text.indexOf(" ", begin)) >= 0; begin = end + 1) {
    const key = hash(text, begin, end);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

const text = generate(30000);
let size = 0;
const options = { level: 2 };
for (let i = 0; i < 40; i++) {
  size += zlib.deflateSync([...countWords(text)].join(), options).length;
}
console.log(size);
