# SPDX-License-Identifier: BSD-3-Clause
#
# INFO: its form; figures: tests/scenario/test_info.py.
@oracle
> INFO nope
< ="txt:"
>! INFO server
~ =?"(txt:)?# Server\\r\\nredis_version:7\.2\.4\\r\\nserver_name:valkey\\r\\nvalkey_version:9\.0\.0\\r\\nserver_mode:standalone\\r\\nbloomery_version:.*"
>! CONFIG SET dialect redis
< +OK
>! INFO server
~ =?"(txt:)?# Server\\r\\nredis_version:7\.4\.0\\r\\n(?!.*(valkey|server_name|server_mode)).*"
>! CONFIG SET dialect valkey
< +OK
>! INFO bf
~ =?"(txt:)?# bf_bloom_core_metrics\\r\\n.*"
>! INFO bf_bloom_core_metrics
~ =?"(txt:)?# bf_bloom_core_metrics\\r\\nbf_bloom_total_memory_bytes:0\\r\\n[^#]*"
>! INFO bf_bloom_defrag_metrics
~ =?"(txt:)?# bf_bloom_defrag_metrics\\r\\nbf_bloom_defrag_hits:0\\r\\nbf_bloom_defrag_misses:0\\r\\n"
