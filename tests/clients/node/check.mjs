// SPDX-License-Identifier: BSD-3-Clause
//
// What the programs for node share: the module under test from CLIENTS_NODE,
// the words on the command line, and the lines that the driver reads
// (README.md).

import { createRequire } from "node:module";
import { deepStrictEqual } from "node:assert";
import { readFileSync } from "node:fs";

const [name, portText, dialect] = process.argv.slice(2);
const require = createRequire(process.env.CLIENTS_NODE + "/x.js");

export { name, dialect };
// What node's TLS needs to check the server; undefined: plain TCP.
export const tls = process.env.BLOOMERY_CA &&
  { ca: readFileSync(process.env.BLOOMERY_CA, "utf8") };
export const port = Number(portText);
export const library = require(name);
export const version = JSON.parse(readFileSync(
  `${process.env.CLIENTS_NODE}/node_modules/${name}/package.json`)).version;
export const bloom = dialect !== "redis-server";
// Where redis-server stands in for the server, a set stands in for a filter:
// SADD, SISMEMBER and SCARD answer as BF.ADD, BF.EXISTS and BF.CARD do.
export const [ADD, EXISTS, CARD] = bloom ? ["BF.ADD", "BF.EXISTS", "BF.CARD"]
  : ["SADD", "SISMEMBER", "SCARD"];
export const TYPE = { valkey: "bloomfltr", redis: "MBbloom--" }[dialect] ?? "set";

Error.stackTraceLimit = 40; // So that the line of the check is in it.
let failed = 0;

export const same = (got, want) => deepStrictEqual(got, want);
export const note = (text) => console.log(`note ${text}`);
export const lacks = (area, why) => console.log(`lacks ${area} ${why}`);
export const numbers = (values) => values.map(Number);
export const sum = (values) => numbers(values).reduce((a, b) => a + b, 0);

export async function check(area, protocol, what, body) {
  const label = `${area} RESP${protocol} ${what}`;
  try {
    await within(body(), "an answer");
    console.log(`ok ${label}`);
  } catch (error) {
    failed++;
    const text = String(error.stack || error).split("\n").map((x) => x.trim());
    const where = text.find((x) => /check_\w+\.mjs/.test(x)) ?? "";
    const said = text.filter((x) => x && !x.startsWith("at ")).slice(0, 20);
    console.log(`not ok ${label}: ${said.join(" ")} ` +
      where.replace(/.*\/clients\//, "("));
  }
}

// A promise that fails when the other one takes too long.
export function within(promise, what, ms = 10000) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`never: ${what}`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

export async function rejects(promise, text) {
  let got;
  try {
    got = await promise;
  } catch (error) {
    const said = [error.message, ...(error.previousErrors ?? [])].join(" ");
    if (!said.includes(text)) throw error;
    return;
  }
  throw new Error(`no error but ${JSON.stringify(got)}`);
}

// Asks again until it is so; with a deadline.
export async function until(condition, what, ms = 5000) {
  const deadline = Date.now() + ms;
  while (!await condition()) {
    if (Date.now() > deadline) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

// What a listener was called with, one call after the other.
export class Inbox {
  calls = [];
  listener = (...words) => this.calls.push(words.map(String));
  async next() {
    await until(() => this.calls.length > 0, "a message");
    return this.calls.shift();
  }
}

export function finish() {
  if (!bloom) lacks("bloom", "redis-server stands in");
  console.log("end");
  process.exit(failed ? 1 : 0);
}
