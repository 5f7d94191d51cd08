# SPDX-License-Identifier: BSD-3-Clause
#
# LOLWUT: a drawing, the same one for the same number, and the version.
>! LOLWUT
~ =?"(txt:)?([.o]{8}( |\\n)){96}\\n\d+ items in a filter of 768 bits\. Bloomery ver\. \d+\.\d+\.\d+(\+\d+\.g[0-9a-f]{7})?, as Valkey ver\. 9\.0\.0\\n"
>! LOLWUT VERSION 5
~ =?"(txt:)?([.o]{8}( |\\n)){96}\\n22 items in .*\\n"
>! LOLWUT VERSION x
< -ERR value is not an integer or out of range
>! LOLWUT VERSION 5 40 20 20
~ =?"(txt:)?([.o]{8}( |\\n)){96}\\n22 items in .*\\n"
>! LOLWUT VERSION
~ =?"(txt:)?([.o]{8}( |\\n)){96}\\n.*"
>! LOLWUT 5 1
~ =?"(txt:)?([.o]{8}( |\\n)){96}\\n.*"
>! CONFIG SET dialect redis
< +OK
>! LOLWUT
~ .* Bloomery ver\. \d+\.\d+\.\d+(\+\d+\.g[0-9a-f]{7})?, as Redis ver\. 7\.4\.0\\n"
