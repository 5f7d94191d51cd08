# SPDX-License-Identifier: BSD-3-Clause
#
# bf.missing-key error: a question about the items of a missing key is an error.
# Commands that add make the key.
@server --bf.missing-key error
> CONFIG GET bf.missing-key
< %1 | "bf.missing-key" | "error"
> BF.EXISTS k a
< -ERR not found
> BF.MEXISTS k a b
< -ERR not found
> BF.COUNTNEW k a
< -ERR not found
> BF.CARD k
< -ERR not found
> BF.MDEL k a b
< -ERR not found

# In a pipeline, where commands on one key run together.
@send BF.EXISTS k a
@send BF.EXISTS k b
@send BF.ADD k a
@send BF.EXISTS k a
@send BF.EXISTS k b
@read
< -ERR not found
@read
< -ERR not found
@read
< :1
@read
< :1
@read
< :0
> BF.MEXISTS k a b
< *2 | :1 | :0
> PEXPIRE k -1
< :1
> BF.EXISTS k a
< -ERR not found
> CONFIG SET bf.missing-key zero
< +OK
> BF.EXISTS k a
< :0
> BF.MEXISTS k a b
< *2 | :0 | :0
> BF.COUNTNEW k a
< :1
> BF.CARD k
< :0
> CONFIG SET bf.missing-key maybe
~ -ERR .*bf.missing-key.*
