// SPDX-License-Identifier: BSD-3-Clause
//
// ioredis with Sentinels. By default it sends a command whose reply got lost
// again on the next connection. A WAIT by itself would then be answered for a
// connection that wrote nothing, so that is switched off.

import { ADD, bloom, library, note, version } from "./check.mjs";
import { failOver, key, sentinels } from "./failover.mjs";

const Client = library.default ?? library.Redis ?? library;
const client = new Client({ sentinels, name: "bloom",
  autoResendUnfulfilledCommands: false, commandTimeout: 3000 });
client.on("error", () => {});

note(`ioredis ${version}`);
await failOver(
  async (item) => (await client.pipeline().call(ADD, key, item)
    .call("WAIT", "2", "1000").exec()).map(([error, value]) => {
    if (error) throw error;
    return value;
  }),
  (items) => client.call(bloom ? "BF.MEXISTS" : "SMISMEMBER", key, ...items));
