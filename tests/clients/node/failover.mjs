// SPDX-License-Identifier: BSD-3-Clause
//
// What the programs for node do through failovers (README.md): add, wait for
// two replicas, and count. `pair` adds an item and waits, on one connection,
// and gives both replies; `has` asks for many items.

import { check, note, numbers, port, finish } from "./check.mjs";

const PATIENCE_MS = 20000;
const words = process.argv.slice(5);

export const key = words[0];
export const sentinels = [port, ...words.slice(1).map(Number)]
  .map((one) => ({ host: "127.0.0.1", port: one }));

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function failOver(pair, has) {
  const acked = [];
  let [over, tried, errors, longest, last] = [false, 0, 0, 0, performance.now()];
  process.stdin.on("end", () => { over = true; }).resume();
  while (!over) {
    try {
      const [added, replicas] = numbers(await pair(String(++tried)));
      // A connection that wrote nothing waits for nothing: what an earlier try
      // of the same item had added already does not count.
      if (added === 1 && replicas >= 2) {
        const now = performance.now();
        longest = Math.max(longest, now - last);
        last = now;
        acked.push(String(tried));
      }
    } catch {
      errors++;
      await pause(20);
    }
    await pause(5);
  }
  await check("failover", 3, "goes on", async () => {
    if (acked.length === 0 || performance.now() - last > 2000)
      throw new Error("it stands still");
    if (longest > PATIENCE_MS) throw new Error(`stood still for ${longest} ms`);
  });
  await check("failover", 3, "nothing lost", async () => {
    for (let at = 0; at < acked.length; at += 500) {
      const lost = numbers(await has(acked.slice(at, at + 500))).filter((x) => !x);
      if (lost.length) throw new Error(`${lost.length} are lost`);
    }
  });
  note(`${acked.length} acknowledged by two, ${errors} errors, longest wait ` +
    `${(longest / 1000).toFixed(1)} s`);
  finish();
}
