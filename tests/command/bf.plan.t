# SPDX-License-Identifier: BSD-3-Clause
#
# BF.PLAN error_rate capacity [EXPANSION n | NONSCALING]: what a filter would
# take. Errors are those of BF.RESERVE.
> BF.PLAN
< -ERR wrong number of arguments for 'BF.PLAN' command
> BF.PLAN 0.01
< -ERR wrong number of arguments for 'BF.PLAN' command
> BF.PLAN x 100
< -ERR bad error rate
> BF.PLAN 0.01 0
< -ERR (capacity should be larger than 0)
> BF.PLAN 0.01 100 junk
< -ERROR
> BF.PLAN 0.01 100 NONSCALING EXPANSION 2
< -ERR wrong number of arguments for 'BF.PLAN' command
> BF.PLAN 0.01 100 EX 5
< -ERR syntax error
> CONFIG SET bf.bloom-memory-usage-limit 2000
< +OK
> BF.PLAN 0.01 100 NONSCALING
< %8 | "kind" | "native" | "capacity" | :100 | "error-rate" | ,0.01 | "bytes" | :200 | "bits-per-item" | ,10.24 | "fits" | :1 | "largest-capacity" | :1448 | "layers" | *1 | %4 | "capacity" | :100 | "bytes" | :200 | "bits-per-item" | ,10.24 | "error-rate" | ,0.01
> BF.PLAN 0.01 1449 NONSCALING
~ .*"fits" \| :0 \|.*"layers" \| \*0
> BF.RESERVE k 0.01 1449 NONSCALING
< -ERR operation exceeds bloom object memory limit
> BF.RESERVE k 0.01 1448 NONSCALING
< +OK
> BF.PLAN 0.01 100
~ .*"layers" \| \*3 \|.*"capacity" \| :700 \|.*
> DBSIZE
< :1
> BF.PLAN 0.01 9223372036854775807
< -ERR operation exceeds bloom object memory limit

# In dialect redis the first layer of a scaling filter has half of the rate.
> CONFIG SET dialect redis
< +OK
> BF.PLAN 0.01 100
~ .*"error-rate" \| ("|,)0\.005"? \|.*
> BF.PLAN 0.01 100 NONSCALING
~ .*"error-rate" \| ("|,)0\.01"? \|.*
> BF.PLAN 0.01 y
< -ERR bad capacity
> CONFIG SET bloom-layout redisbloom
< +OK
> BF.PLAN 0.01 100
~ .*"kind" \| "redisbloom" \|.*

# A filter that ages, with all its generations.
> CONFIG SET bloom-layout native
< +OK
> CONFIG SET dialect valkey
< +OK
> CONFIG SET bf.bloom-memory-usage-limit 4000000
< +OK
> BF.PLAN 0.01 1000000 AGEING 86400 NONSCALING
~ .*"kind" . "ageing" . "capacity" . :1000000 .*"bytes" . :2190768 . "bits-per-item" . .*17\.51.*"fits" . :1 .*"layers" . \*1 .*:1000000 .*:2190768 .*
> BF.PLAN 0.01 2000000 AGEING 86400 NONSCALING
~ .*"fits" . :0 .*"layers" . \*0
> BF.RESERVE aged 0.01 2000000 AGEING 86400 NONSCALING
< -ERR operation exceeds bloom object memory limit
> BF.RESERVE aged 0.01 1000000 AGEING 86400 NONSCALING
< +OK
> BF.PLAN 0.01 100000 AGEING 86400 GENERATIONS 4
~ .*"capacity" . :100000 .*"layers" . \*3 .*"capacity" . :300000 .*"capacity" . :700000 .*
