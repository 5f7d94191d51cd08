// SPDX-License-Identifier: BSD-3-Clause
//
// What the scripts for node share: the module under test from CLIENTS_NODE,
// and checks that print `ok`, `not ok` and `note` lines.

import { createRequire } from "node:module";
import { deepStrictEqual } from "node:assert";

export const [name, version, port] = process.argv.slice(2);

const require = createRequire(process.env.CLIENTS_NODE + "/x.js");
export const library = require(name);

let failed = 0;

export const same = (got, want) => deepStrictEqual(got, want);

export const note = (text) => console.log(`note ${text}`);

export async function check(label, body) {
  try {
    await body();
    console.log(`ok ${label}`);
  } catch (error) {
    failed++;
    const text = String(error.stack || error).split("\n").slice(0, 12);
    console.log(`not ok ${label}: ${text.join(" / ")}`);
  }
}

export async function rejects(promise, text) {
  try {
    const got = await promise;
    throw new Error(`no error but ${JSON.stringify(got)}`);
  } catch (error) {
    if (!String(error.message).includes(text)) throw error;
  }
}

export function finish() {
  process.exit(failed ? 1 : 0);
}
