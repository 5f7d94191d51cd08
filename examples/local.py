# SPDX-License-Identifier: BSD-3-Clause
#
# Drops the addresses of a blocklist from standard input, without a round trip:
#
#   redis-cli -p 7379 BF.ADD blocked 192.0.2.7
#   printf '192.0.2.7\n192.0.2.8\n' | python3 local.py
#
# While the copy cannot know, addresses pass: another program might rather stop them.
import sys

from bloomery import LocalFilter

with LocalFilter("redis://127.0.0.1:7379/0", "blocked") as blocked:
    for line in sys.stdin:
        if not blocked.contains(line.rstrip("\n")):
            print(line, end="")
