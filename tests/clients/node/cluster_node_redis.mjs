// SPDX-License-Identifier: BSD-3-Clause
//
// node-redis with createCluster (README.md). Commands for several slots that are
// sent at once are pipelined to each node.

import { library, note, port, version } from "./check.mjs";
import { inCluster } from "./cluster.mjs";

const client = library.createCluster({
  rootNodes: [{ url: `redis://127.0.0.1:${port}` }] });
client.on("error", () => {});
await client.connect();

note(`node-redis ${version}`);
const call = (word, key, ...items) =>
  client.sendCommand(key, false, [word, key, ...items]);
await inCluster(3, call,
  (commands) => Promise.all(commands.map((words) => call(...words))));
