# SPDX-License-Identifier: BSD-3-Clause
#
# The option bloom-layout: what new filters are made of.
> CONFIG SET bloom-layout other
< -ERR CONFIG SET failed (possibly related to argument 'bloom-layout') - argument(s) must be one of the following: native, redisbloom, valkeybloom
> CONFIG SET bloom-layout redisbloom
< +OK
> CONFIG GET bloom-layout
< %1 | "bloom-layout" | "redisbloom"

# The first layer of a scaling filter has half of the rate, in both dialects.
> BF.ADD a x
< :1
> BF.DEBUG a
< *2 | "size:1 layout:redisbloom" | "bytes:144 bits:1152 hashes:8 hashwidth:64 capacity:100 size:1 ratio:0.005"
> BF.RESERVE n 0.01 100 NONSCALING
< +OK
> BF.DEBUG n
< *2 | "size:0 layout:redisbloom" | "bytes:120 bits:960 hashes:7 hashwidth:64 capacity:100 size:0 ratio:0.01"

# No seed, and no other tightening.
> BF.INSERT b TIGHTENING 0.6 ITEMS x
< -ERR filters of layout redisbloom have no tightening ratio but 0.5 (bloom-layout)
> BF.INSERT b TIGHTENING 0.5 ITEMS x
< *1 | :1
> BF.INSERT c SEED 01234567890123456789012345678901 ITEMS x
< -ERR filters of layout redisbloom have no seed (bloom-layout)
> EXISTS c
< :0
> BF.INSERT v CAPACITY 100 VALIDATESCALETO 1000000
< *0
> BF.INSERT w TIGHTENING 0.6 VALIDATESCALETO 1000
< -ERR filters of layout redisbloom have no tightening ratio but 0.5 (bloom-layout)
> BF.INSERT w SEED 01234567890123456789012345678901 VALIDATESCALETO 1000
< -ERR filters of layout redisbloom have no seed (bloom-layout)
> CONFIG SET dialect redis
< +OK
> BF.RESERVE d 0.01 100
< +OK
> BF.DEBUG d
< *2 | "size:0 layout:redisbloom" | "bytes:144 bits:1152 hashes:8 hashwidth:64 capacity:100 size:0 ratio:0.005"
> CONFIG SET dialect valkey
< +OK

# valkey-bloom's.
> CONFIG SET bloom-layout valkeybloom
< +OK
> BF.RESERVE e 0.01 100
< +OK
> BF.DEBUG e
< *2 | "size:0 layout:valkeybloom" | "bytes:120 bits:960 hashes:7 hashwidth:64 capacity:100 size:0 ratio:0.01"
> OBJECT ENCODING e
< "valkeybloom"

# A filter keeps its layout.
> CONFIG SET bloom-layout native
< +OK
> BF.MADD a i0 i1 i2 i3 i4 i5 i6 i7 i8 i9 i10 i11 i12 i13 i14 i15 i16 i17 i18 i19 i20 i21 i22 i23 i24 i25 i26 i27 i28 i29 i30 i31 i32 i33 i34 i35 i36 i37 i38 i39 i40 i41 i42 i43 i44 i45 i46 i47 i48 i49 i50 i51 i52 i53 i54 i55 i56 i57 i58 i59 i60 i61 i62 i63 i64 i65 i66 i67 i68 i69 i70 i71 i72 i73 i74 i75 i76 i77 i78 i79 i80 i81 i82 i83 i84 i85 i86 i87 i88 i89 i90 i91 i92 i93 i94 i95 i96 i97 i98 i99 i100 i101 i102 i103 i104 i105 i106 i107 i108 i109 i110 i111 i112 i113 i114 i115 i116 i117 i118 i119
< *120 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1 | :1
> OBJECT ENCODING a
< "redisbloom"
> BF.RESET a
< +OK
> OBJECT ENCODING a
< "redisbloom"
> BF.DEBUG a
< *2 | "size:0 layout:redisbloom" | "bytes:144 bits:1152 hashes:8 hashwidth:64 capacity:100 size:0 ratio:0.005"
> BF.ADD f x
< :1
> OBJECT ENCODING f
< "native"
