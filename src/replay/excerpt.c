/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MOVE and COPY may have their target in another database than the selected
 * one. So databases are ignored for them, and only names are compared. That is
 * safe, since complete.h only drops keys for them.
 */
#include "replay/excerpt.h"

#include "base/buf.h"
#include "base/mem.h"
#include "engine/logged.h"

#include <errno.h>
#include <stdio.h>

struct excerpt {
    const struct walk_part *part;
    uint32_t db; /* what the part's database is called now */
    struct logged_reader reader;
    struct buf piece; /* empty: none is open */
    /* About the present group: */
    excerpt_fn fn;
    void *ctx;
    struct snapshot_effects effects;
    uint64_t selected;
    uint64_t position; /* of the open piece */
};

struct excerpt *
excerpt_new(const struct walk_part *part)
{
    struct excerpt *excerpt = mem_zalloc(sizeof(*excerpt));

    excerpt->part = part;
    excerpt->db = part->db;
    return excerpt;
}

void
excerpt_free(struct excerpt *excerpt)
{
    if (excerpt == NULL) {
        return;
    }
    logged_fini(&excerpt->reader);
    buf_free(&excerpt->piece);
    mem_free(excerpt);
}

/* ---- which commands ------------------------------------------------------ */

struct look {
    const struct walk_part *part;
    const struct slice *argv;
    bool found;
};

static void
look_at_key(void *ctx, size_t position)
{
    struct look *look = ctx;

    look->found =
        look->found || walk_part_has_name(look->part, look->argv[position]);
}

static bool
has_key(const struct excerpt *excerpt, const struct logged *logged)
{
    struct look look = { excerpt->part, logged->argv, false };

    command_each_key(logged->row, logged->argc, look_at_key, &look);
    return look.found;
}

static bool
is_selected(const struct excerpt *excerpt)
{
    return excerpt->part->of == WALK_PART_SLOTS ||
           excerpt->selected == excerpt->db;
}

/* Follows the database of the part, to which a SWAPDB may give another number.
 */
static int
swap(struct excerpt *excerpt, const struct slice *argv)
{
    uint64_t a;
    uint64_t b;

    if (!slice_to_u64(argv[1], &a) || !slice_to_u64(argv[2], &b) ||
        a > UINT32_MAX || b > UINT32_MAX) {
        return EINVAL;
    }
    if (excerpt->db == a) {
        excerpt->db = (uint32_t)b;
    } else if (excerpt->db == b) {
        excerpt->db = (uint32_t)a;
    }
    return 0;
}

/* Decides whether to keep a command. Returns 0 or EINVAL. */
static int
judge_logged(struct excerpt *excerpt, const struct logged *logged,
             bool *ret_keep)
{
    *ret_keep = false;
    switch (logged->kind) {
    case LOGGED_NEVER:
        return EINVAL;
    case LOGGED_SELECT:
        return slice_to_u64(logged->argv[1], &excerpt->selected) ? 0 : EINVAL;
    case LOGGED_MARK:
    case LOGGED_HISTORY:
        return 0;
    case LOGGED_SWAP:
        *ret_keep = true;
        return swap(excerpt, logged->argv);
    case LOGGED_FLUSH_ALL:
        *ret_keep = true;
        return 0;
    case LOGGED_FLUSH_DB:
        *ret_keep = is_selected(excerpt);
        return 0;
    case LOGGED_MOVE:
    case LOGGED_COPY:
        *ret_keep = has_key(excerpt, logged);
        return 0;
    default:
        *ret_keep = is_selected(excerpt) && has_key(excerpt, logged);
        return 0;
    }
}

/* ---- pieces -------------------------------------------------------------- */

static int
close_piece(struct excerpt *excerpt)
{
    const struct snapshot_effects piece = {
        .position = excerpt->position,
        .sequence = excerpt->effects.sequence,
        .commands = buf_slice(&excerpt->piece),
    };
    int error = 0;

    if (excerpt->piece.failed) {
        return ENOMEM;
    }
    if (piece.commands.len > 0) {
        error = excerpt->fn(excerpt->ctx, &piece);
    }
    excerpt->piece.len = 0;
    return error;
}

/* Adds the command from begin to end of the group's text. */
static void
keep_command(struct excerpt *excerpt, size_t begin, size_t end)
{
    struct buf *piece = &excerpt->piece;

    if (piece->len == 0) {
        char digits[24];
        int len = snprintf(digits, sizeof(digits), "%llu",
                           (unsigned long long)excerpt->selected);

        buf_printf(piece, "*2\r\n$6\r\nSELECT\r\n$%d\r\n%s\r\n", len, digits);
        excerpt->position = excerpt->effects.position + begin - piece->len;
    }
    buf_append(piece, excerpt->effects.commands.data + begin, end - begin);
}

int
excerpt_group(struct excerpt *excerpt, const struct snapshot_effects *effects,
              excerpt_fn fn, void *ctx)
{
    struct logged_reader *reader = &excerpt->reader;
    struct logged logged;

    excerpt->fn = fn;
    excerpt->ctx = ctx;
    excerpt->effects = *effects;
    excerpt->selected = 0; /* a group begins with SELECT */
    excerpt->piece.len = 0;
    logged_begin(reader, effects->commands);
    while (logged_next(reader, &logged)) {
        bool keeps;
        int error = judge_logged(excerpt, &logged, &keeps);

        if (error == 0 && keeps) {
            keep_command(excerpt, logged.begin, logged.end);
        } else if (error == 0) {
            error = close_piece(excerpt);
        }
        if (error != 0) {
            return error;
        }
    }
    return reader->error != 0 ? reader->error : close_piece(excerpt);
}
