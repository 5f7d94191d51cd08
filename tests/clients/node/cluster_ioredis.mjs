// SPDX-License-Identifier: BSD-3-Clause
//
// The Cluster of ioredis and iovalkey (README.md). Their pipelines take keys of
// one node only, so commands for several slots are sent without one.

import { library, name, note, port, version } from "./check.mjs";
import { inCluster } from "./cluster.mjs";

const Client = library.default ?? library.Redis ?? library;
const client = new Client.Cluster([{ host: "127.0.0.1", port }]);
client.on("error", () => {});

note(`${name} ${version}`);
// They know no command of a filter, and so not its keys: the first word is given as
// the key.
const call = (word, key, ...items) =>
  client.sendCommand(new Client.Command(word, [key, ...items],
    { replyEncoding: "utf8", keyPrefix: "" }));
await inCluster(name === "ioredis6" ? 3 : 2, call,
  (commands) => Promise.all(commands.map((words) => call(...words))));
