# SPDX-License-Identifier: BSD-3-Clause
#
# There are no scripts. Clients repeat a script for ever if EVALSHA is answered
# as an unknown command, so these commands are known, but listed nowhere.
>! EVAL "return 1" 0
< -ERR scripts are not supported by this server
>! evalsha x 1 k
< -ERR scripts are not supported by this server
>! EVAL_RO
< -ERR scripts are not supported by this server
>! EVALSHA_RO x 0
< -ERR scripts are not supported by this server
>! FCALL f 0
< -ERR scripts are not supported by this server
>! FCALL_RO f
< -ERR scripts are not supported by this server
>! FUNCTION LOAD x
< -ERR scripts are not supported by this server
>! FUNCTION
< -ERR scripts are not supported by this server
>! SCRIPT LOAD "return 1"
< -ERR scripts are not supported by this server
>! SCRIPT
< -ERR scripts are not supported by this server
>! COMMAND INFO eval script script|load
< *3 | null | null | null
>! COMMAND DOCS evalsha
< %0
>! COMMAND LIST FILTERBY PATTERN *eval*
< *0
>! COMMAND LIST FILTERBY ACLCAT scripting
< *0
>! COMMAND GETKEYS EVAL x 1 k
< -ERR Invalid command specified
>! ACL CAT scripting
< *0
# Inside MULTI they are refused at once.
> MULTI
< +OK
>! EVALSHA x 1 k
< -ERR scripts are not supported by this server
>! EXEC
< -EXECABORT Transaction discarded because of previous errors.
# A user without the right learns that he lacks it, before and behind AUTH.
>! ACL SETUSER s on >p +bf.add ~*
< +OK
>! ACL SETUSER t on >p +@scripting ~*
< +OK
@on b
>! AUTH s p
< +OK
>! EVALSHA x 1 k
< -NOPERM this user has no permissions to run the 'evalsha' command
>! AUTH t p
< +OK
>! EVALSHA x 1 k
< -ERR scripts are not supported by this server
>! SCRIPT LOAD x
< -ERR scripts are not supported by this server
@on a
> CONFIG SET requirepass p
< +OK
> RESET
< +RESET
>! EVALSHA x 1 k
< -NOAUTH Authentication required.
