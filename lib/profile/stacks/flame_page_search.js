// SPDX-License-Identifier: MIT
// Search: which functions and labels match. A regular expression runs in a worker with a time limit,
// because some need longer than anyone waits, and a script cannot stop one that it runs itself.

const TIME_TO_MATCH = 1000; // milliseconds
const TIME_TO_START = 5000; // of a worker

// All texts that a search looks at, each once.
const searchedTexts = [];
const textNumbers = new Map();
const numberOfText = (text) => {
  if (!textNumbers.has(text)) textNumbers.set(text, searchedTexts.push(text) - 1);
  return textNumbers.get(text);
};
const textsOfFunctions = functions.map(({name, module}) => [numberOfText(name), numberOfText(module)]);
const textsOfLabels = data.labels.map(numberOfText);

// The worker's whole code: it must not use anything else of the page.
const matchInWorker = () => {
  onmessage = ({data: {source, flags, texts}}) => {
    const expression = new RegExp(source, flags);
    postMessage("started");
    postMessage(Uint8Array.from(texts, (text) => expression.test(text)));
  };
};

// With "u", an escaped letter such as \: is an error; without it, classes such as \p{Lu} do not work.
const compiled = (source) => {
  try {
    return new RegExp(source, "iu");
  } catch {
    return new RegExp(source, "i");
  }
};
// Without repetitions and groups, the time is proportional to the lengths of expression and text.
const isFast = (source) => !/[(*+?{]/.test(source.replace(/\\./g, ""));

// The last search that is finished, and the one that is wanted. `matches[i]` says whether
// searchedTexts[i] matches; null: nothing is sought. `problem` is shown, `reason` is its title.
const searching = {wanted: "", worker: null, timer: 0, done: {id: "", matches: null, problem: "", reason: ""}};
const stopWorker = () => {
  clearTimeout(searching.timer);
  searching.worker?.terminate();
  searching.worker = null;
};
const finishSearch = (matches, problem = "", reason = "") => {
  stopWorker();
  const found = matches ?? (problem ? new Uint8Array(searchedTexts.length) : null);
  searching.done = {id: searching.wanted, matches: found, problem, reason};
};
const matchAll = (isMatch) => Uint8Array.from(searchedTexts, isMatch);

const startWorker = () => {
  const url = URL.createObjectURL(new Blob([`(${matchInWorker})()`], {type: "text/javascript"}));
  try {
    return new Worker(url);
  } finally {
    URL.revokeObjectURL(url);
  }
};
const searchWithoutWorker = (expression) => {
  if (isFast(expression.source)) return finishSearch(matchAll((text) => expression.test(text)));
  finishSearch(null, "no workers: only expressions without ( * + ? {",
    "This browser does not allow workers, and such expressions could block the page.");
};
const searchInWorker = (expression) => {
  let worker;
  try {
    worker = startWorker();
  } catch {
    return searchWithoutWorker(expression);
  }
  let hasStarted = false;
  const finish = (...outcome) => {
    finishSearch(...outcome);
    show();
  };
  const limit = (time) => {
    clearTimeout(searching.timer);
    searching.timer = setTimeout(finish, time, null, "the expression takes too long");
  };
  worker.onmessage = ({data: answer}) => {
    hasStarted = true;
    if (answer === "started") limit(TIME_TO_MATCH); else finish(answer);
  };
  worker.onerror = (event) => { // the policy of the browser, or an expression that is too large
    event.preventDefault();
    if (hasStarted) return finish(null, "invalid regular expression", event.message);
    searchWithoutWorker(expression);
    show();
  };
  searching.worker = worker;
  limit(TIME_TO_START);
  worker.postMessage({source: expression.source, flags: expression.flags, texts: searchedTexts});
};

const startSearch = (text, isExpression) => {
  stopWorker();
  if (text === "") return finishSearch(null);
  if (!isExpression) {
    const wanted = text.toLowerCase();
    return finishSearch(matchAll((one) => one.toLowerCase().includes(wanted)));
  }
  let expression;
  try {
    expression = compiled(text);
  } catch (error) {
    return finishSearch(null, "invalid regular expression", error.message);
  }
  searchInWorker(expression);
};

// The search of the state, or the last one before it while a worker matches.
const currentMatches = () => {
  const wanted = state.search === "" ? "" : JSON.stringify([state.search, state.regex]);
  if (wanted !== searching.wanted) {
    searching.wanted = wanted;
    startSearch(state.search, state.regex);
  }
  return searching.done;
};
