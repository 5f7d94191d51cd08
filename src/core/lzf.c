/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/lzf.h"

#include <string.h>

enum { LITERALS_MAX = 32, COPY_MIN = 2, COPY_LONG = 7 };

/* The packed bytes, and where they are unpacked to. With `cuts`, bytes beyond
 * len are left out; otherwise they are a mistake. */
struct unpacking {
    const uint8_t *from;
    size_t from_len;
    uint8_t *to;
    size_t len;
    bool cuts;
};

/* Limits *count to the space that is left, if bytes beyond it are left out.
 * Otherwise returns false if the space is too small. */
static bool
fit(const struct unpacking *unpacking, const struct lzf *lzf, size_t *count)
{
    size_t left = unpacking->len - lzf->done;

    if (*count > left && !unpacking->cuts) {
        return false;
    }
    *count = *count < left ? *count : left;
    return true;
}

static bool
take_literals(const struct unpacking *unpacking, struct lzf *lzf, size_t count)
{
    const uint8_t *from = unpacking->from + lzf->at;
    size_t some = count;

    if (count > unpacking->from_len - lzf->at || !fit(unpacking, lzf, &some)) {
        return false;
    }
    for (size_t i = 0; i < some; i++) {
        lzf->zeros = from[i] == 0 ? lzf->zeros + 1 : 0;
    }
    if (!lzf->zeroed || lzf->zeros < some) {
        memcpy(unpacking->to + lzf->done, from, some);
    }
    lzf->at += count;
    lzf->done += some;
    return true;
}

/* Repeats what was unpacked `back` bytes before; both may overlap. */
static void
copy(const struct unpacking *unpacking, struct lzf *lzf, size_t back,
     size_t count)
{
    uint8_t *to = unpacking->to + lzf->done;

    if (back > lzf->zeros) {
        for (size_t i = 0; i < count; i++) {
            to[i] = *(to + i - back);
            lzf->zeros = to[i] == 0 ? lzf->zeros + 1 : 0;
        }
    } else {
        if (!lzf->zeroed) {
            memset(to, 0, count);
        }
        lzf->zeros += count;
    }
    lzf->done += count;
}

static bool
take_copy(const struct unpacking *unpacking, struct lzf *lzf, size_t control)
{
    size_t count = control >> 5;
    size_t back;

    if (count == COPY_LONG && lzf->at < unpacking->from_len) {
        count += unpacking->from[lzf->at++];
    }
    if (lzf->at == unpacking->from_len) {
        return false;
    }
    count += COPY_MIN;
    back = ((control & 31) << 8) + unpacking->from[lzf->at++] + 1;
    if (back > lzf->done || !fit(unpacking, lzf, &count)) {
        return false;
    }
    copy(unpacking, lzf, back, count);
    return true;
}

static bool
unpack(const struct unpacking *unpacking, struct lzf *lzf, size_t until)
{
    bool ok = true;

    while (ok && lzf->at < unpacking->from_len && lzf->done < until) {
        size_t control = unpacking->from[lzf->at++];

        ok = control < LITERALS_MAX ? take_literals(unpacking, lzf, control + 1)
                                    : take_copy(unpacking, lzf, control);
    }
    return ok;
}

bool
lzf_unpack_piece(struct lzf *lzf, struct slice packed, void *to, size_t len,
                 size_t until)
{
    const struct unpacking unpacking = { (const uint8_t *)packed.data,
                                         packed.len, to, len, false };

    return unpack(&unpacking, lzf, until);
}

bool
lzf_unpack(struct slice packed, void *to, size_t len)
{
    struct lzf lzf = { 0 };

    return lzf_unpack_piece(&lzf, packed, to, len, SIZE_MAX) && lzf.done == len;
}

bool
lzf_unpack_start(struct slice packed, void *to, size_t len)
{
    const struct unpacking unpacking = { (const uint8_t *)packed.data,
                                         packed.len, to, len, true };
    struct lzf lzf = { 0 };

    return unpack(&unpacking, &lzf, len) && lzf.done == len;
}
