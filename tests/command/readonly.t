# SPDX-License-Identifier: BSD-3-Clause
#
# READONLY, READWRITE and ASKING without a cluster.
@oracle
>! CONFIG SET dialect redis
< +OK
> READONLY
< -ERR This instance has cluster support disabled
> READWRITE
< -ERR This instance has cluster support disabled
> ASKING
< -ERR This instance has cluster support disabled
> readonly x
< -ERR wrong number of arguments for 'readonly' command
# Valkey's clients may ask a replica so outside a cluster, too.
>! CONFIG SET dialect valkey
< +OK
>! READONLY
< +OK
>! READWRITE
< +OK
