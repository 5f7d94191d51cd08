# SPDX-License-Identifier: BSD-3-Clause
#
# Asks a filter which items are new: python3 seen.py PORT. It needs redis-py.

import sys

import redis

client = redis.Redis(port=int(sys.argv[1]))
bloom = client.bf()
try:
    bloom.create("seen", 0.001, 1000000)  # BF.RESERVE
except redis.ResponseError as error:
    if "exists" not in str(error):
        raise

bloom.madd("seen", "alice", "bob")
print([int(found) for found in bloom.mexists("seen", "alice", "carol")])
print("new:", client.execute_command("BF.COUNTNEW", "seen", "bob", "carol"))
