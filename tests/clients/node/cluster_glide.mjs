// SPDX-License-Identifier: BSD-3-Clause
//
// valkey-glide's cluster client for Node (README.md).

import { library, note, port, version } from "./check.mjs";
import { inCluster } from "./cluster.mjs";

const { ClusterBatch, GlideClusterClient } = library;
const client = await GlideClusterClient.createClient({
  addresses: [{ host: "127.0.0.1", port }] });

note(`valkey-glide ${version}`);
await inCluster(3, (...words) => client.customCommand(words), (commands) => {
  const batch = new ClusterBatch(false);
  commands.forEach((words) => batch.customCommand(words));
  return client.exec(batch, true);
});
