/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The array bloom_extra.pieces is not moved: a filter has it only while it is
 * completed (core/deletable.h).
 */
#include "core/relocate.h"

#include "core/layer.h"

/* The alignment that allocators give, which all structs have. */
enum { STRUCT_ALIGN = 16 };

static void *
relocated(void *block, size_t align, relocate_fn move,
          struct relocate_sums *sums)
{
    relocate_block(&block, align, move, sums);
    return block;
}

static void
relocate_odd(struct bloom *bloom, relocate_fn move, struct relocate_sums *sums)
{
    struct bloom_odd *odd =
        relocated(bloom_odd_of(bloom), STRUCT_ALIGN, move, sums);

    if (bloom->count == 1) {
        bloom->odd = odd;
    } else {
        bloom->chain->odd = odd;
    }
}

void
bloom_relocate(struct bloom *bloom, uint32_t from, uint32_t count,
               relocate_fn move, struct relocate_sums *sums)
{
    struct bloom_extra *extra;
    struct layer *layers;

    if (bloom->count > 1) {
        bloom->chain = relocated(bloom->chain, STRUCT_ALIGN, move, sums);
    }
    relocate_odd(bloom, move, sums);
    extra = bloom_extra_of(bloom);
    if (extra != NULL) {
        extra->coverage = relocated(extra->coverage, STRUCT_ALIGN, move, sums);
    }
    layers = bloom_layers(bloom);
    for (uint32_t i = 0; i < count && i < bloom->count; i++) {
        struct layer *layer = &layers[(from + i) % bloom->count];
        void *lines = layer->lines;

        relocate_lines(&lines, (size_t)layer_bytes(layer), move, sums);
        layer->lines = lines;
    }
}
