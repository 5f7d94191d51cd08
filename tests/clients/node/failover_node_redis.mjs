// SPDX-License-Identifier: BSD-3-Clause
//
// node-redis with createSentinel. use() lends one connection to the primary,
// which both commands are sent on at once.

import { ADD, bloom, library, note, version, within } from "./check.mjs";
import { failOver, key, sentinels } from "./failover.mjs";

const sentinel = library.createSentinel({ name: "bloom",
  sentinelRootNodes: sentinels });
sentinel.on("error", () => {});
await sentinel.connect();

note(`node-redis ${version}`);
await failOver(
  (item) => within(sentinel.use((one) => Promise.all([
    one.sendCommand(false, [ADD, key, item]),
    one.sendCommand(false, ["WAIT", "2", "1000"])])), "replies", 3000),
  (items) => sentinel.use((one) => one.sendCommand(false,
    [bloom ? "BF.MEXISTS" : "SMISMEMBER", key, ...items])));
