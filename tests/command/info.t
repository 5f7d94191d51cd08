# SPDX-License-Identifier: BSD-3-Clause
#
# INFO: its form; figures: tests/scenario/test_info.py.
@oracle
> INFO nope
< ="txt:"
>! INFO server
~ =?"(txt:)?# Server\\r\\n.*redis_version:7\.\d+\.\d+\\r\\n.*"
>! INFO bf
~ =?"(txt:)?# bf_bloom_core_metrics\\r\\n.*"
>! INFO bf_bloom_core_metrics
~ =?"(txt:)?# bf_bloom_core_metrics\\r\\nbf_bloom_total_memory_bytes:0\\r\\n[^#]*"
>! INFO bf_bloom_defrag_metrics
~ =?"(txt:)?# bf_bloom_defrag_metrics\\r\\nbf_bloom_defrag_hits:0\\r\\nbf_bloom_defrag_misses:0\\r\\n"
