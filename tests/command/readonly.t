# SPDX-License-Identifier: BSD-3-Clause
#
# READONLY, READWRITE and ASKING without a cluster.
@oracle
> READONLY
< -ERR This instance has cluster support disabled
> READWRITE
< -ERR This instance has cluster support disabled
> ASKING
< -ERR This instance has cluster support disabled
> readonly x
< -ERR wrong number of arguments for 'readonly' command
