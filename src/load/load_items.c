/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The items go out as BF.MADD, each on the connection that owes the fewest
 * replies. A new filter is made for --capacity items; with `auto` the items are
 * counted before.
 */
#include "load/load_items.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/num.h"
#include "load/load_link.h"
#include "load/load_report.h"
#include "load/load_text.h"
#include "proto/reply.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FILES_MAX = TOOL_WORDS_MAX,
    LINKS_MAX = 64,
    BATCH_ITEMS = 256,
    BATCH_BYTES = 64 * 1024,
    WINDOW = 16, /* batches without a reply on one connection */
    PUSH_BYTES = 32 * 1024,
    WHY_MAX = 128,
    PIPE_BYTES = 64 * 1024 * 1024 /* a longer pipe needs --capacity */
};

/* One input file. */
struct input {
    const char *path;
    int fd;
    bool regular;
    off_t start; /* where a regular file is to be read from: a shell may have
                    read the first lines of standard input */
    uint64_t bytes;
    struct buf before; /* bytes that were read from a pipe */
};

/* A connection, and how many items each batch without a reply has. */
struct lane {
    struct load_link link;
    uint32_t batches[WINDOW];
    uint64_t sent, answered; /* batches */
};

struct loading {
    struct load *load;
    struct slice key;
    struct input inputs[FILES_MAX];
    size_t input_count;
    struct lane *lanes;
    struct load_link *links[LINKS_MAX];
    size_t lane_count;
    struct buf batch; /* RESP of its items */
    uint32_t batch_items;
    bool exists; /* the filter was there before */
    uint64_t capacity;
    uint64_t added, there, refused;
    char why[WHY_MAX]; /* the first refusal */
};

/* ---- the files ----------------------------------------------------------- */

static bool
open_input(struct loading *loading, const char *path)
{
    struct input *input = &loading->inputs[loading->input_count];
    struct stat status;

    *input = (struct input){ .path = path, .fd = STDIN_FILENO };
    if (strcmp(path, "-") == 0) {
        input->path = "standard input";
    } else {
        input->fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    if (input->fd < 0 || fstat(input->fd, &status) != 0) {
        tool_complain(&loading->load->tool, LOAD_UNREADABLE,
                      "%s: cannot be opened: %s", path, strerror(errno));
        file_close(input->fd);
        return false;
    }
    loading->input_count++;
    input->regular = S_ISREG(status.st_mode);
    input->start = input->regular ? lseek(input->fd, 0, SEEK_CUR) : 0;
    input->bytes = input->regular && status.st_size > input->start
                       ? (uint64_t)(status.st_size - input->start)
                       : 0;
    return true;
}

static void
close_inputs(struct loading *loading)
{
    for (size_t i = 0; i < loading->input_count; i++) {
        if (loading->inputs[i].fd != STDIN_FILENO) {
            file_close(loading->inputs[i].fd);
        }
        buf_free(&loading->inputs[i].before);
    }
}

/* ---- how many items there are -------------------------------------------- */

static bool
count_item(void *ctx, struct slice item)
{
    struct loading *loading = ctx;

    tool_bar_add(&loading->load->tool, item.len + 1);
    return true;
}

/* Counts the items of a file, or of the bytes that were read of a pipe. */
static bool
count_input(struct loading *loading, struct input *input)
{
    struct load_text text;

    if (!load_text_begin(loading->load, &text) ||
        !load_text_read(&text, input->path, input->regular ? input->fd : -1,
                        buf_slice(&input->before), count_item, loading)) {
        return false;
    }
    loading->capacity += text.items;
    if (input->regular &&
        lseek(input->fd, input->start, SEEK_SET) != input->start) {
        tool_complain(&loading->load->tool, LOAD_UNREADABLE,
                      "%s: cannot be read twice: %s", input->path,
                      strerror(errno));
        return false;
    }
    return true;
}

/* Reads a pipe into memory, if it ends soon. */
static bool
read_pipe(struct loading *loading, struct input *input)
{
    bool failed = false;

    while (load_text_fill(loading->load, input->path, input->fd, &input->before,
                          &failed)) {
        if (input->before.len >= PIPE_BYTES) {
            tool_complain(&loading->load->tool, LOAD_USAGE,
                          "%s: nobody knows how many items follow: give "
                          "--capacity",
                          input->path);
            return false;
        }
    }
    return !failed;
}

static bool
count_items(struct loading *loading)
{
    struct tool *tool = &loading->load->tool;
    uint64_t bytes = 0;
    bool ok = true;

    for (size_t i = 0; i < loading->input_count; i++) {
        bytes += loading->inputs[i].bytes;
    }
    tool_bar_begin(tool, TOOL_UNIT_MIB, bytes);
    for (size_t i = 0; ok && i < loading->input_count; i++) {
        struct input *input = &loading->inputs[i];

        ok = input->regular || read_pipe(loading, input);
        ok = ok && count_input(loading, input);
    }
    tool_bar_end(tool);
    loading->capacity += loading->capacity == 0;
    return ok;
}

/* ---- the filter ---------------------------------------------------------- */

static bool
refuse_reply(struct loading *loading, struct slice reply)
{
    struct slice text = resp_text(reply);

    load_link_fail(&loading->lanes[0].link, "%.*s", resp_shown(text),
                   text.data);
    return false;
}

/* Makes the filter, unless it exists. */
static bool
make_filter(struct loading *loading)
{
    struct load *load = loading->load;
    struct load_link *link = &loading->lanes[0].link;
    const struct slice ask[] = { slice_lit("BF.CARD"), loading->key };
    const struct slice exists[] = { slice_lit("EXISTS"), loading->key };
    char capacity[NUM_U64_MAX];
    struct slice reply;
    int64_t found = 0;

    load_link_send(link, ask, 2);
    load_link_send(link, exists, 2);
    if (!load_link_reply(link, &reply)) {
        return false;
    }
    if (resp_is_error(reply)) {
        return refuse_reply(loading, reply);
    }
    if (!load_link_reply(link, &reply)) {
        return false;
    }
    loading->exists = resp_integer(reply, &found) && found > 0;
    if (loading->exists) {
        return true;
    }
    if (strcmp(load->capacity, "auto") == 0) {
        if (!count_items(loading)) {
            return false;
        }
    } else if (!slice_to_u64(slice_of(load->capacity), &loading->capacity)) {
        tool_complain(&load->tool, LOAD_USAGE,
                      "--capacity: is auto or a number of items");
        return false;
    }
    {
        const struct slice reserve[] = {
            slice_lit("BF.RESERVE"),
            loading->key,
            slice_of(load->error_rate),
            { capacity, num_format_u64(loading->capacity, capacity) },
        };

        load_link_send(link, reserve, 4);
    }
    return load_link_reply(link, &reply) &&
           (!resp_is_error(reply) || refuse_reply(loading, reply));
}

/* ---- batches ------------------------------------------------------------- */

static void
note_refusal(struct loading *loading, struct slice text)
{
    if (loading->why[0] == '\0') {
        (void)snprintf(loading->why, sizeof(loading->why), "%.*s",
                       resp_shown(text), text.data);
    }
}

/* Counts the results of one batch. A full filter that cannot grow ends the
 * array with an error; the items behind it were not added. */
static bool
take_reply(struct loading *loading, struct lane *lane, struct slice reply)
{
    uint32_t items = lane->batches[lane->answered++ % WINDOW];
    struct slice rest, element;
    uint32_t seen = 0;

    if (!resp_array(reply, &rest)) {
        struct slice text = resp_text(reply);

        load_link_fail(&lane->link, "%.*s", resp_shown(text), text.data);
        return false;
    }
    while (resp_element(&rest, &element)) {
        if (resp_is_error(element)) {
            note_refusal(loading, resp_text(element));
            break;
        }
        seen++;
        loading->added += element.data[1] == '1';
        loading->there += element.data[1] == '0';
    }
    loading->refused += items - seen;
    tool_bar_add(&loading->load->tool, items);
    return true;
}

static bool
take_replies(struct loading *loading)
{
    for (size_t i = 0; i < loading->lane_count; i++) {
        struct lane *lane = &loading->lanes[i];
        struct slice reply;

        while (load_link_next(&lane->link, &reply)) {
            if (!take_reply(loading, lane, reply)) {
                return false;
            }
        }
        if (lane->link.client.ended && lane->link.awaited > 0) {
            load_link_fail(&lane->link, "closed the connection");
        }
        if (lane->link.failed) {
            return false;
        }
    }
    return true;
}

/* Returns the lane that owes the fewest replies, or NULL after a failure. */
static struct lane *
find_lane(struct loading *loading)
{
    for (;;) {
        struct lane *best = &loading->lanes[0];

        if (!take_replies(loading)) {
            return NULL;
        }
        for (size_t i = 1; i < loading->lane_count; i++) {
            if (loading->lanes[i].link.awaited < best->link.awaited) {
                best = &loading->lanes[i];
            }
        }
        if (best->link.awaited < WINDOW) {
            return best;
        }
        if (!load_link_wait(loading->links, loading->lane_count, 1000)) {
            return NULL;
        }
    }
}

static bool
send_batch(struct loading *loading)
{
    struct lane *lane = find_lane(loading);
    struct reply head;

    if (lane == NULL) {
        return false;
    }
    head = (struct reply){ &lane->link.client.out, 2 };
    reply_array(&head, 2 + loading->batch_items);
    reply_bulk(&head, slice_lit("BF.MADD"));
    reply_bulk(&head, loading->key);
    load_link_send_raw(&lane->link, buf_slice(&loading->batch), 1);
    lane->batches[lane->sent++ % WINDOW] = loading->batch_items;
    loading->batch_items = 0;
    buf_reset(&loading->batch, SIZE_MAX);
    return lane->link.client.out.len < PUSH_BYTES ||
           load_link_wait(loading->links, loading->lane_count, 0);
}

static bool
send_item(void *ctx, struct slice item)
{
    struct loading *loading = ctx;
    struct reply batch = { &loading->batch, 2 };

    reply_bulk(&batch, item);
    if (loading->batch.failed) {
        tool_complain(&loading->load->tool, LOAD_UNREADABLE,
                      "no memory for an item");
        return false;
    }
    return (++loading->batch_items < BATCH_ITEMS &&
            loading->batch.len < BATCH_BYTES) ||
           send_batch(loading);
}

static bool
send_files(struct loading *loading, struct load_text *text)
{
    bool ok = true;

    for (size_t i = 0; ok && i < loading->input_count; i++) {
        const struct input *input = &loading->inputs[i];

        ok = load_text_read(text, input->path, input->fd,
                            buf_slice(&input->before), send_item, loading);
    }
    ok = ok && (loading->batch_items == 0 || send_batch(loading));
    for (size_t i = 0; ok && i < loading->lane_count; i++) {
        while (ok && loading->lanes[i].link.awaited > 0) {
            ok = load_link_wait(loading->links, loading->lane_count, 1000) &&
                 take_replies(loading);
        }
    }
    return ok;
}

/* ---- all of it ----------------------------------------------------------- */

static void
report_items(struct loading *loading, const struct load_text *text, uint64_t ns)
{
    double seconds = (double)ns / 1e9;

    load_report_begin(loading->load, loading->key);
    load_report_number("items read", text->items);
    load_report_number("added", loading->added);
    load_report_number("there before", loading->there);
    load_report_number("refused", loading->refused);
    load_report_number("empty, left out", text->left_out);
    if (loading->exists) {
        load_report_text("filter", "existed; --error and --capacity not used");
    } else {
        load_report_format(
            "capacity", "%" PRIu64 " (%s)", loading->capacity,
            strcmp(loading->load->capacity, "auto") != 0 ? "given" : "counted");
        load_report_text("error rate", loading->load->error_rate);
    }
    load_report_format("seconds", "%.3f", seconds);
    load_report_format("items per second", "%.0f",
                       seconds > 0 ? (double)text->items / seconds : 0);
    if (loading->refused > 0) {
        tool_complain(&loading->load->tool, LOAD_INCOMPLETE,
                      "%" PRIu64 " items were refused: %s", loading->refused,
                      loading->why[0] != '\0' ? loading->why
                                              : "behind the first error");
    }
}

static bool
open_lanes(struct loading *loading)
{
    for (uint64_t i = 0; i < loading->load->connections; i++) {
        if (!load_link_open(loading->load, &loading->load->to,
                            &loading->lanes[i].link)) {
            return false;
        }
        loading->links[i] = &loading->lanes[i].link;
        loading->lane_count++;
    }
    return true;
}

static void
run_load(struct loading *loading)
{
    struct load_text text;
    uint64_t begun_ns;
    bool ok;

    if (!load_text_begin(loading->load, &text) || !open_lanes(loading) ||
        !make_filter(loading)) {
        return;
    }
    begun_ns = clock_mono_ns();
    tool_bar_begin(&loading->load->tool, TOOL_UNIT_ITEMS, loading->capacity);
    ok = send_files(loading, &text);
    tool_bar_end(&loading->load->tool);
    report_items(loading, &text, clock_mono_ns() - begun_ns);
    if (!ok) {
        tool_complain(&loading->load->tool, LOAD_INCOMPLETE,
                      "not all items were added: to add the rest, repeat the "
                      "command");
    }
}

void
load_items(struct load *load, const char *key, const char *const *paths,
           size_t count)
{
    static struct lane lanes[LINKS_MAX];
    static struct loading loading;
    bool ok = true;

    load->error_rate = load->error_rate != NULL ? load->error_rate : "0.01";
    load->capacity = load->capacity != NULL ? load->capacity : "auto";
    memset(lanes, 0, sizeof(lanes));
    memset(&loading, 0, sizeof(loading));
    loading.load = load;
    loading.key = slice_of(key);
    loading.lanes = lanes;
    for (size_t i = 0; ok && i < count; i++) {
        ok = open_input(&loading, paths[i]);
    }
    ok = ok && (count > 0 || open_input(&loading, "-"));
    if (ok) {
        run_load(&loading);
    }
    for (size_t i = 0; i < loading.lane_count; i++) {
        load_link_close(&lanes[i].link);
    }
    close_inputs(&loading);
    buf_free(&loading.batch);
}
