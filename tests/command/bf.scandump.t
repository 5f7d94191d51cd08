# SPDX-License-Identifier: BSD-3-Clause
#
# BF.SCANDUMP key iterator [BYTES n] [TURN n], for each layout. In tests/command/test_foreign_filters.py
# whole filters go through it.
@server --bf.bloom-use-random-seed no --bf.bloom-capacity 5
> BF.SCANDUMP
< -ERR wrong number of arguments for 'BF.SCANDUMP' command
> BF.SCANDUMP k
< -ERR wrong number of arguments for 'BF.SCANDUMP' command
> BF.SCANDUMP missing 0
< -ERR not found
> BF.SCANDUMP missing x
< -ERR not found
> BF.ADD k a
< :1
> BF.SCANDUMP k x
< -Second argument must be numeric
> BF.SCANDUMP k 1.5
< -Second argument must be numeric

# A native filter: our own header, and the lines.
> BF.SCANDUMP k 0
< *2 | :1 | "BLMY\x01\x00\x01\x00\x02\x00\x00\x00\x01\x00\x00\x00{\x14\xaeG\xe1z\x84?\x00\x00\x00\x00\x00\x00\xe0?Y\x0f\xf5\"\xeax\x11\xda\xa7\x14\xd8\t;>{\xd9\x1d\x89\x8as>\x98\x88\x870\x7f\x97\xcd(\x073\x83\x00\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00"
> BF.SCANDUMP k 1
< *2 | :65 | "\x00\x00\x00\x00\x00\x00 \x00\x00@\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00 \x00\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00"
> BF.SCANDUMP k 60
< *2 | :65 | "\x00\x00\x02\x00\x00"
> BF.SCANDUMP k 64
< *2 | :65 | "\x00"
> BF.SCANDUMP k 65
< *2 | :0 | ""
> BF.SCANDUMP k 60 BYTES 3
< *2 | :63 | "\x00\x00\x02"
> BF.SCANDUMP k 60 turn 0 bytes 16777216
< *2 | :65 | "\x00\x00\x02\x00\x00"
> BF.SCANDUMP k 60 TURN 1
< -TURNED the filter has turned since its header: begin again with iterator 0
> BF.SCANDUMP k 60 BYTES 0
< -ERR BYTES must be a number from 1 to 16777216
> BF.SCANDUMP k 60 BYTES 16777217
< -ERR BYTES must be a number from 1 to 16777216
> BF.SCANDUMP k 60 TURN -1
< -ERR TURN must be a number, 0 or more
> BF.SCANDUMP k 60 BYTES
< -ERR syntax error
> BF.SCANDUMP k 60 PIECES 2
< -ERR syntax error
> BF.SCANDUMP k 66
< *2 | :0 | ""
> BF.SCANDUMP k -1
< *2 | :0 | ""
> BF.SCANDUMP k 9223372036854775807
< *2 | :0 | ""

# RedisBloom's layout: its header and its bits.
> CONFIG SET bloom-layout redisbloom
< +OK
> BF.ADD r a
< :1
> BF.SCANDUMP r 0
< *2 | :1 | "\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x05\x00\x00\x00\x02\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00@\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00{\x14\xaeG\xe1zt?\xe9\x86/\xb25\x0e&@\x08\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00"
> BF.SCANDUMP r 1
< *2 | :9 | "\x02D\x00\x88\x00\x10\x01 "
> BF.SCANDUMP r 9
< *2 | :0 | ""

# valkey-bloom's layout: our own header, and its bits.
> CONFIG SET bloom-layout valkeybloom
< +OK
> BF.ADD v a
< :1
> BF.SCANDUMP v 0
< *2 | :1 | "BLMY\x01\x00\x03\x00\x02\x00\x00\x00\x01\x00\x00\x00{\x14\xaeG\xe1z\x84?\x00\x00\x00\x00\x00\x00\xe0?Y\x0f\xf5\"\xeax\x11\xda\xa7\x14\xd8\t;>{\xd9\x1d\x89\x8as>\x98\x88\x870\x7f\x97\xcd(\x073\x83\x00\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x000\x00\x00\x00\x00\x00\x00\x00"
> BF.SCANDUMP v 1
< *2 | :7 | "\x01\x10P\x05\x04\x00"
> BF.SCANDUMP v 8
< *2 | :0 | ""
