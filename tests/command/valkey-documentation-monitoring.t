# SPDX-License-Identifier: BSD-3-Clause
#
# The section Monitoring of the Valkey documentation page on Bloom filters.
> INFO BF
~ =?"(txt:)?# bf_bloom_core_metrics\\r\\nbf_bloom_total_memory_bytes:0\\r\\nbf_bloom_num_objects:0\\r\\nbf_bloom_num_filters_across_objects:0\\r\\nbf_bloom_num_items_across_objects:0\\r\\nbf_bloom_capacity_across_objects:0\\r\\n\\r\\n# bf_bloom_defrag_metrics\\r\\nbf_bloom_defrag_hits:0\\r\\nbf_bloom_defrag_misses:0\\r\\n"
> bf.add key value
< :1
> info bf
~ =?"(txt:)?# bf_bloom_core_metrics\\r\\nbf_bloom_total_memory_bytes:[1-9]\d*\\r\\nbf_bloom_num_objects:1\\r\\nbf_bloom_num_filters_across_objects:1\\r\\nbf_bloom_num_items_across_objects:1\\r\\nbf_bloom_capacity_across_objects:100\\r\\n\\r\\n# bf_bloom_defrag_metrics\\r\\nbf_bloom_defrag_hits:0\\r\\nbf_bloom_defrag_misses:0\\r\\n"
