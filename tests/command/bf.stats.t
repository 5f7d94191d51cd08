# SPDX-License-Identifier: BSD-3-Clause
#
# BF.STATS key: what a filter tells about itself.
> BF.STATS
< -ERR wrong number of arguments for 'BF.STATS' command
> BF.STATS k x
< -ERR wrong number of arguments for 'BF.STATS' command
> BF.STATS k
< -ERR not found
> BF.RESERVE k 0.01 100 NONSCALING
< +OK
> BF.STATS k
< %11 | "kind" | "native" | "items" | :0 | "capacity" | :100 | "bytes" | :200 | "error-rate-asked" | ,0.01 | "error-rate" | ,0 | "items-until-next-layer" | :100 | "items-until-limit" | :100 | "sampled" | ,1 | "hash" | "plain" | "layers" | *1 | %6 | "items" | :0 | "capacity" | :100 | "bits" | :1024 | "bits-set" | :0 | "error-rate-asked" | ,0.01 | "error-rate" | ,0
> BF.ADD k a
< :1
> BF.STATS k
~ .*"items" \| :1 \|.*"items-until-next-layer" \| :99 \| "items-until-limit" \| :99 \|.*"bits-set" \| :8 \|.*

# A filter that has grown, and is as large as it may be.
> CONFIG SET bf.bloom-memory-usage-limit 2000
< +OK
> BF.INSERT s CAPACITY 2 ITEMS a b c d e
< *5 | :1 | :1 | :1 | :1 | :1
> BF.STATS s
~ .*"items" \| :5 \| "capacity" \| :6 \|.*"items-until-next-layer" \| :1 \|.*"layers" \| \*2 \|.*"items" \| :2 \|.*"items" \| :3 \|.*

# The modules' layouts, with the formula of a classic filter. With a random seed,
# two of the seven bits can be the same.
> CONFIG SET bf.bloom-use-random-seed no
< +OK
> CONFIG SET bloom-layout valkeybloom
< +OK
> BF.INSERT v CAPACITY 100 NONSCALING ITEMS a
< *1 | :1
> BF.STATS v
~ .*"kind" \| "valkeybloom" \|.*"bits" \| :960 \| "bits-set" \| :7 \|.*
> CONFIG SET dialect redis
< +OK
> BF.STATS v
~ (%11|\*22) .*"kind" \| "valkeybloom" \|.*
> BF.STATS none
< -ERR not found
