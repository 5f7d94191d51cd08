# SPDX-License-Identifier: BSD-3-Clause
#
# PSUBSCRIBE: Redis's patterns, each message once for each that matches.
@oracle
> PSUBSCRIBE
< -ERR wrong number of arguments for 'psubscribe' command
> PSUBSCRIBE news.* news.?
< >3 | "psubscribe" | "news.*" | :1
@read
< >3 | "psubscribe" | "news.?" | :2
> PSUBSCRIBE news.*
< >3 | "psubscribe" | "news.*" | :2
@on b
> PSUBSCRIBE h[^e]llo
< >3 | "psubscribe" | "h[^e]llo" | :1
@on c
> PUBLISH news.art x
< :1
> PUBLISH news. y
< :1
> PUBLISH News.art x
< :0
> PUBLISH hello x
< :0
> PUBLISH hallo x
< :1
> PUBSUB NUMPAT
< :3
@on a
@read
< >4 | "pmessage" | "news.*" | "news.art" | "x"
@read
< >4 | "pmessage" | "news.*" | "news." | "y"
@on b
@read
< >4 | "pmessage" | "h[^e]llo" | "hallo" | "x"
> PUNSUBSCRIBE nothing h[^e]llo
< >3 | "punsubscribe" | "nothing" | :1
@read
< >3 | "punsubscribe" | "h[^e]llo" | :0
@on c
> PUBLISH hallo x
< :0
> PUBSUB NUMPAT
< :2
