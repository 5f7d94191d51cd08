# SPDX-License-Identifier: BSD-3-Clause
#
# TOUCH key...
@oracle
@key a b
> TOUCH
< -ERR wrong number of arguments for 'touch' command
> TOUCH a
< :1
> TOUCH a a b missing
< :3
> TOUCH missing
< :0
