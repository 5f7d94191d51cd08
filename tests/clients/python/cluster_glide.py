# SPDX-License-Identifier: BSD-3-Clause
#
# valkey-glide's cluster client for Python (README.md).

from glide_sync import (ClusterBatch, GlideClusterClient,
                        GlideClusterClientConfiguration, GlideError, Logger,
                        LogLevel, NodeAddress)

import cluster
from check import PORT

Logger.init(LogLevel.OFF)
client = GlideClusterClient.create(GlideClusterClientConfiguration(
    [NodeAddress("127.0.0.1", PORT)]))


def pipeline(commands):
    batch = ClusterBatch(is_atomic=False)
    for command in commands:
        batch.custom_command(list(command))
    return client.exec(batch, raise_on_error=True)


cluster.run(3, lambda *words: client.custom_command(list(words)), GlideError,
            pipeline)
