# SPDX-License-Identifier: BSD-3-Clause
#
# One side of a comparison in Python: adds items to a filter and asks for them,
# through redis-py. larkspur keeps the filter in a bitmap of Redis; `bf` sends the
# BF.* commands with the same redis-py. Prints `ready`, waits for a line, and prints
# one line of key=value. bench/classics.py installs both packages and runs this program.
#
#   larkspur_filter.py PORT larkspur|bf add|check BATCH ITEMS
"""A filter through redis-py, in a bitmap or as a filter of the server."""

import sys
import time

import larkspur
import redis

CAPACITY, RATE = 100_000, 0.01


def commands(connection, name):
    """Return functions that add and check a list of items with BF.*."""
    many = connection.execute_command
    if not connection.exists(name):
        many("BF.RESERVE", name, RATE, CAPACITY)
    one = {True: "BF.ADD", False: "BF.EXISTS"}

    def send(adds, items):
        if len(items) == 1:
            many(one[adds], name, items[0])
        else:
            many("BF.MADD" if adds else "BF.MEXISTS", name, *items)
    return (lambda items: send(True, items)), (lambda items: send(False, items))


def bitmap(connection, name):
    """Return the same functions of larkspur, which checks one item at a time."""
    found = larkspur.BloomFilter(connection, name, CAPACITY, RATE)

    def add(items):
        if len(items) == 1:
            found.add(items[0])
        else:
            found.bulk_add(items)
    return add, lambda items: [item in found for item in items]


def main():
    port, how, request, batch, count = sys.argv[1:]
    connection = redis.Redis(port=int(port))
    batch, count = int(batch), int(count)
    add, check = {"bf": commands, "larkspur": bitmap}[how](
        connection, f"python-{how}")
    items = [f"item{number:08x}" for number in range(count)]
    if request == "check":
        for first in range(0, count, 1000):
            add(items[first:first + 1000])
    send = add if request == "add" else check
    send(items[:1])  # connects
    print("ready", flush=True)
    sys.stdin.readline()
    cpu, began = time.process_time(), time.monotonic()
    for first in range(0, count, batch):
        send(items[first:first + batch])
    print(f"seconds={time.monotonic() - began:.6f} "
          f"cpu={time.process_time() - cpu:.6f}", flush=True)


if __name__ == "__main__":
    main()
