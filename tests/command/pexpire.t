# SPDX-License-Identifier: BSD-3-Clause
#
# PEXPIRE key when [NX|XX|GT|LT].
@oracle
@include expire.part COMMAND=PEXPIRE name=pexpire SOON=100000 LATER=1000000
@key k
> PEXPIRE k 9223372036854775807
< -ERR invalid expire time in 'pexpire' command
> PEXPIRE k -9223372036854775808
< :1
> EXISTS k
< :0
