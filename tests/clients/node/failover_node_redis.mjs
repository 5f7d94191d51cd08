// SPDX-License-Identifier: BSD-3-Clause
//
// node-redis with createSentinel. After a lost connection it repeats each command
// by itself, also inside use(): a WAIT would then be answered for a connection
// that wrote nothing, beside the reply to the ADD from before. A pipeline is
// repeated as a whole.

import { ADD, bloom, library, note, version, within } from "./check.mjs";
import { failOver, key, sentinels } from "./failover.mjs";

const sentinel = library.createSentinel({ name: "bloom",
  sentinelRootNodes: sentinels });
sentinel.on("error", () => {});
await sentinel.connect();

note(`node-redis ${version}`);
await failOver(
  (item) => within(sentinel.multi().addCommand(false, [ADD, key, item])
    .addCommand(false, ["WAIT", "2", "1000"]).execAsPipeline(), "replies", 3000),
  (items) => sentinel.use((one) => one.sendCommand(false,
    [bloom ? "BF.MEXISTS" : "SMISMEMBER", key, ...items])));
