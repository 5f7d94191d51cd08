# SPDX-License-Identifier: BSD-3-Clause
#
# QUIT.
@oracle
> QUIT
< +OK
@closed
@on b
> quit now
< +OK
@closed
