# SPDX-License-Identifier: BSD-3-Clause
#
# LASTSAVE: seconds since 1970.
@oracle
> LASTSAVE x
< -ERR wrong number of arguments for 'lastsave' command
> LASTSAVE
< :?
