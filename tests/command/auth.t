# SPDX-License-Identifier: BSD-3-Clause
#
# AUTH without a password set; with one: tests/scenario/test_auth.py.
@oracle
> AUTH
< -ERR wrong number of arguments for 'auth' command
> AUTH x
< -ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
> AUTH default x
< +OK
> AUTH nobody x
< -WRONGPASS invalid username-password pair or user is disabled.
> AUTH a b c
< -ERR syntax error
> PING
< +PONG
