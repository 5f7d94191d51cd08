# SPDX-License-Identifier: BSD-3-Clause
#
# EXPIREAT key when [NX|XX|GT|LT].
@oracle
@include expire.part COMMAND=EXPIREAT name=expireat SOON=4000000000 LATER=40000000000
@key k
> EXPIREAT k 9223372036854775807
< -ERR invalid expire time in 'expireat' command
> EXPIREAT k -9223372036854775808
< -ERR invalid expire time in 'expireat' command
> EXISTS k
< :1
