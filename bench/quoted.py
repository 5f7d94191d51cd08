# SPDX-License-Identifier: BSD-3-Clause
#
# What bench/classics.py runs in redis-server, and what others have published. The
# scripts are our own, and do the same work as those that people use.
"""Lua scripts that keep a filter in a bitmap, and published figures."""

# A script that takes the offsets of an item's bits, which the client has computed.
OFFSETS = {"add": """
local new = 0
for i = 1, #ARGV do
  if redis.call('SETBIT', KEYS[1], ARGV[i], 1) == 0 then new = 1 end
end
return new""", "check": """
for i = 1, #ARGV do
  if redis.call('GETBIT', KEYS[1], ARGV[i]) == 0 then return 0 end
end
return 1"""}

# A script that takes the item. It hashes with SHA-1, counts, and chooses the layer,
# its bits and hashes by the count, as the well-known scripts of 2012 did.
LAYER = """
local capacity, rate = %d, %g
local layer = math.ceil(math.log(math.ceil((capacity + count) / capacity)) / math.log(2))
local size = capacity * 2 ^ (layer - 1)
local bits = math.floor(-size * math.log(rate / 2 ^ layer) / math.log(2) ^ 2)
local hashes = math.floor(math.log(2) * bits / size)
local digest = redis.sha1hex(ARGV[1])
local first = tonumber(string.sub(digest, 1, 8), 16)
local second = tonumber(string.sub(digest, 9, 16), 16)
local key = KEYS[1] .. ':' .. layer
"""
HASHING = {"add": """
local count = redis.call('INCR', KEYS[1] .. ':count')""" + LAYER + """
for i = 1, hashes do
  redis.call('SETBIT', key, (first + i * second) %% bits, 1)
end
return 1""", "check": """
local count = redis.call('GET', KEYS[1] .. ':count')
if not count then return 0 end""" + LAYER + """
for i = 1, hashes do
  if redis.call('GETBIT', key, (first + i * second) %% bits) == 0 then return 0 end
end
return 1"""}

# What was published, as it was published. Nothing here is measured.
PUBLISHED = [
    ["Lua scripts, redis-benchmark, 20 clients, no pipeline",
     "24,175 adds and 23,419 checks a second",
     "README of erikdubbelboer/redis-lua-scaling-bloom-filter, a laptop of 2012"],
    ["the same script / the module redablooms, a filter that grows",
     "31,441 / 22,712 adds a second",
     "RedisLabsModules/redablooms, issue 4, 2016-12-24"],
    ["pyreBloom (Python and C), 10,000 words: batch / one at a time",
     "47,735 / 12,986 adds, 58,657 / 13,731 checks a second",
     "README of seomoz/pyreBloom, a laptop of 2011, Redis 2.4"],
    ["the gem redis-bloomfilter, a million items: Lua / Ruby driver",
     "160 / 196 s to add, 175 / 231 s to check",
     "README of taganaka/redis-bloomfilter, 2013"],
    ["by hand in Ruby, batches of 350", "70,000 to 80,000 operations a second, "
     "5 to 6 times as many in pipelines of 350",
     "GoDaddy engineering blog, 2018-09-11"],
    ["RedisBloom's own benchmark: 16 clients, no pipeline, 10 million adds",
     "no result in the source", "RedisBloom, tests/benchmarks/"
     "bf_add_cap10M_err0.001.yml"],
    ["BF.MEXISTS of 100 in a filter of 600 million items", "no result",
     "RedisBloom, issue 322, 2021-06-15"],
    ["valkey-bloom, BF.EXISTS, no pipeline, 1 to 50 layers / 1,000 layers",
     "95,000 to 100,000 / 12,034 a second", "valkey-rfc, Bloom.md, 2024"],
    ["a feed of 18,000 requests a second, filters in Go programs",
     "p95 of the service 96 ms instead of 140 ms",
     "InfoQ, Bloom Filters: Theory, Engineering Trade-offs, and Implementation in Go"],
]

# Our own measurement beside the modules, which no package registry has. README.md has
# its table and conditions.
MODULES = (
    "RedisBloom and valkey-bloom take 1.1 to 1.2 times the CPU of Bloomery without a "
    "pipeline, 1.9 to 2.5 times in pipelines of 16, 5.6 to 8.2 times in pipelines of "
    "100, and 4.9 to 8.6 times in BF.MADD and BF.MEXISTS of 100 items (28 November 2026, "
    "[table](../README.md#beside-the-modules)).")
