# SPDX-License-Identifier: BSD-3-Clause
#
# redis-py's RedisCluster (README.md).

import os
import sys

import cluster
from check import PORT, note

import redis
from redis.cluster import RedisCluster

if not redis.__file__.startswith(os.environ["PYTHONPATH"]):
    sys.exit("%s instead of the pinned one" % redis.__file__)

client = RedisCluster(host="127.0.0.1", port=PORT)


def pipeline(commands):
    pipe = client.pipeline()
    for command in commands:
        pipe.execute_command(*command)
    return pipe.execute()


note("redis-py " + redis.__version__)
cluster.run(3 if redis.__version__ > "8" else 2, client.execute_command,
            redis.RedisError, pipeline)
