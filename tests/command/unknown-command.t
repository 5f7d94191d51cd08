# SPDX-License-Identifier: BSD-3-Clause
#
# Commands that do not exist.
@oracle
> NOPE
< -ERR unknown command 'NOPE', with args beginning with:\x20
> nope a b
< -ERR unknown command 'nope', with args beginning with: 'a' 'b'\x20
> "with blank" "\r\n" x
< -ERR unknown command 'with blank', with args beginning with: '  ' 'x'\x20
> "" a
< -ERR unknown command '', with args beginning with: 'a'\x20
> NOPE "a\x00b" "'quoted'"
< -ERR unknown command 'NOPE', with args beginning with: 'a' ''quoted''\x20
> SENTINEL masters
< -ERR unknown command 'SENTINEL', with args beginning with: 'masters'\x20
> NOPE aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbb cccc
< -ERR unknown command 'NOPE', with args beginning with: 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'\x20
> aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa x
< -ERR unknown command 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', with args beginning with: 'x'\x20
>! BF.NOPE a
< -ERR unknown command 'BF.NOPE', with args beginning with: 'a'\x20
>! bf.saved k x
< -ERR unknown command 'bf.saved', with args beginning with: 'k' 'x'\x20
