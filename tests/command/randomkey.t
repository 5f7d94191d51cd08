# SPDX-License-Identifier: BSD-3-Clause
#
# RANDOMKEY.
@oracle
> RANDOMKEY
< null
@key a
> RANDOMKEY
< "a"
> RANDOMKEY x
< -ERR wrong number of arguments for 'randomkey' command
> SELECT 1
< +OK
> RANDOMKEY
< null
