# SPDX-License-Identifier: BSD-3-Clause
#
# EXPIRE key when [NX|XX|GT|LT].
@oracle
@include expire.part COMMAND=EXPIRE name=expire SOON=100 LATER=1000
@key k
> EXPIRE k 9223372036854775807
< -ERR invalid expire time in 'expire' command
> EXPIRE k -9223372036854775808
< -ERR invalid expire time in 'expire' command
> EXISTS k
< :1
