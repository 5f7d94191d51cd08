# SPDX-License-Identifier: BSD-3-Clause
#
# TIME.
@oracle
> TIME
~ \*2 \| "\d{10}" \| "\d{1,6}"
> TIME x
< -ERR wrong number of arguments for 'time' command
