// SPDX-License-Identifier: BSD-3-Clause
//
// What the programs for node do in a cluster (README.md). `call(word, key,
// ...items)` sends a command; `pipeline(commands)` sends commands for several
// slots at once.

import { ADD, EXISTS, bloom, check, finish, note, numbers, same, sum }
  from "./check.mjs";

const PATIENCE_MS = 20000;
const prefix = process.argv[5];
const keys = [...Array(20).keys()].map((n) => `${prefix}-${n}`);
const [MADD, MEXISTS] = bloom ? ["BF.MADD", "BF.MEXISTS"] : ["SADD", "SMISMEMBER"];

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function readsAndWrites(call) {
  for (let n = 0; n < 100; n++) {
    const key = `${prefix}-once-${n}`;
    same(numbers([await call(ADD, key, "a"), await call(ADD, key, "a")]), [1, 0]);
    same(numbers([await call(EXISTS, key, "a"), await call(EXISTS, key, "b")]),
      [1, 0]);
  }
}

async function manyItems(call) {
  const got = await call(MADD, `${prefix}-many`, "a", "b", "c");
  same(bloom ? sum(got) : got, 3);
  same(numbers(await call(MEXISTS, `${prefix}-many`, "c", "no", "a")), [1, 0, 1]);
}

async function piped(pipeline) {
  const many = [...Array(50).keys()].map((n) => `${prefix}-piped-${n}`);
  for (const word of [ADD, EXISTS])
    same(sum(await pipeline(many.map((key) => [word, key, "a"]))), 50);
}

export async function inCluster(protocol, call, pipeline) {
  await check("cluster", protocol, "reads and writes", () => readsAndWrites(call));
  await check("cluster", protocol, "many items", () => manyItems(call));
  await check("cluster", protocol, "pipeline", () => piped(pipeline));

  const acked = new Map(keys.map((key) => [key, []]));
  let [over, tried, errors, longest, last] = [false, 0, 0, 0, performance.now()];
  process.stdin.on("end", () => { over = true; }).resume();
  while (!over) {
    const key = keys[++tried % keys.length];
    try {
      await call(ADD, key, String(tried));
      const now = performance.now();
      longest = Math.max(longest, now - last);
      last = now;
      acked.get(key).push(String(tried));
    } catch {
      errors++;
      await pause(20);
    }
    await pause(5);
  }
  await check("cluster", protocol, "goes on", async () => {
    if (performance.now() - last > 2000) throw new Error("it stands still");
    if (longest > PATIENCE_MS) throw new Error(`stood still for ${longest} ms`);
  });
  await check("cluster", protocol, "nothing lost", async () => {
    for (const [key, items] of acked) {
      for (let at = 0; at < items.length; at += 500) {
        const got = numbers(await call(MEXISTS, key, ...items.slice(at, at + 500)));
        const lost = got.filter((x) => !x).length;
        if (lost) throw new Error(`${lost} are lost`);
      }
    }
  });
  const count = [...acked.values()].reduce((n, items) => n + items.length, 0);
  note(`${count} acknowledged, ${errors} errors, longest wait ` +
    `${(longest / 1000).toFixed(2)} s`);
  finish();
}
