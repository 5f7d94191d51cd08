# SPDX-License-Identifier: BSD-3-Clause
#
# KEYS pattern.
@oracle
> KEYS *
< *0
> KEYS
< -ERR wrong number of arguments for 'keys' command
> KEYS a b
< -ERR wrong number of arguments for 'keys' command
@key hello hallo hxllo heeello h[llo "a\r\nb" ""
> KEYS hell?
< *1 | "hello"
> KEYS h[e]llo
< *1 | "hello"
> KEYS h[^a-zA-Z]llo
< *1 | "h[llo"
> KEYS h\\[llo
< *1 | "h[llo"
> KEYS he*o
~ \*2 \| ("hello" \| "heeello"|"heeello" \| "hello")
> KEYS h[b-z]l*
~ \*2 \| "h.llo" \| "h.llo"
> KEYS a*
< *1 | "a\r\nb"
> KEYS ""
< *1 | ""
> KEYS nope*
< *0
> KEYS HELLO
< *0
> SELECT 1
< +OK
> KEYS *
< *0
