// SPDX-License-Identifier: BSD-3-Clause
//
// Asks a filter which items are new: node seen.mjs PORT. It needs node-redis.

import { createClient } from "redis";

const client = createClient({ url: `redis://127.0.0.1:${process.argv[2]}` });
await client.connect();
try {
  await client.bf.reserve("seen", 0.001, 1000000);
} catch (error) {
  if (!error.message.includes("exists")) throw error;
}

await client.bf.mAdd("seen", ["alice", "bob"]);
const found = await client.bf.mExists("seen", ["alice", "carol"]);
console.log(JSON.stringify(found.map(Number)));
console.log("new:", Number(await client.sendCommand(
  ["BF.COUNTNEW", "seen", "bob", "carol"])));
await client.close();
