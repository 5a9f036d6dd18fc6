// SPDX-License-Identifier: MIT
// Runs questions.sql: node ask.mjs DIRECTORY [FILE.sql]. `npm install @duckdb/node-api` has DuckDB.
// Prints each answer as a line of JSON: {"question": NAME, "rows": […]}. The program duckdb does the
// same: cd DIRECTORY && duckdb <questions.sql
import fs from "node:fs";
import { createRequire } from "node:module";
import process from "node:process";

async function answer(directory, file) {
  // Found from the working directory, or from NODE_PATH.
  const { DuckDBInstance } = createRequire(process.cwd() + "/")("@duckdb/node-api");
  const sql = fs.readFileSync(file, "utf8");
  process.chdir(directory);
  const connection = await (await DuckDBInstance.create(":memory:")).connect();
  for (const statement of sql.split(/;\s*$/m)) {
    const question = /^-- (\w+):/m.exec(statement)?.[1];
    const reader = await connection.runAndReadAll(statement);
    if (question) console.log(JSON.stringify({ question, rows: reader.getRowsJson() }));
  }
}

function reason(error) {
  if (error.code === "MODULE_NOT_FOUND") return "DuckDB is not installed here: npm install @duckdb/node-api";
  // The line of the query does not matter if a file is missing.
  return error.message.startsWith("IO Error:") ? error.message.split("\n")[0] : error.message;
}

const [directory, file = new URL("questions.sql", import.meta.url)] = process.argv.slice(2);
try {
  if (!directory) throw new Error("usage: node ask.mjs DIRECTORY [FILE.sql]");
  await answer(directory, file);
} catch (error) {
  console.error(`ask.mjs: ${reason(error)}`);
  process.exitCode = 2;
}
