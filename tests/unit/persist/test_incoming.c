/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A file that is written while it arrives.
 */
#include "persist/incoming.h"

#include "persist_rig.h"

#include "base/metrics.h"
#include "base/random.h"

struct rig {
    char dir[64];
    struct incoming *incoming;
    atomic_int done;
};

static void
on_done(void *ctx)
{
    atomic_fetch_add(&((struct rig *)ctx)->done, 1);
}

static struct rig *
rig_new(void)
{
    struct rig *rig = mem_zalloc(sizeof(*rig));

    strcpy(rig->dir, "/tmp/bloomery-incoming-XXXXXX");
    home_make(rig->dir);
    rig->incoming = incoming_new(on_done, rig);
    return rig;
}

static void
rig_free(struct rig *rig)
{
    incoming_free(rig->incoming);
    home_remove(rig->dir);
    mem_free(rig);
}

static void
put(const struct rig *rig, const char *text)
{
    struct transfer_copy copy = incoming_copy(rig->incoming);
    size_t len = strlen(text);
    char *memory = mem_alloc(len + 8);

    memcpy(memory + 8, text, len); /* the bytes may be anywhere in it */
    copy.take(copy.ctx, memory, (struct slice){ memory + 8, len });
}

static void
end(const struct rig *rig, bool good)
{
    struct transfer_copy copy = incoming_copy(rig->incoming);

    copy.end(copy.ctx, good);
}

static enum incoming_state
wait_end(const struct rig *rig, int *ret_error)
{
    enum incoming_state state;

    while ((state = incoming_state(rig->incoming, ret_error)) ==
           INCOMING_RUNS) {
        (void)poll(NULL, 0, 1);
    }
    return state;
}

static bool
has_file(const struct rig *rig, const char *text)
{
    char path[128];
    char got[64] = "";
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/name", rig->dir);
    file = fopen(path, "r");
    if (file == NULL) {
        return false;
    }
    (void)!fread(got, 1, sizeof(got) - 1, file);
    (void)fclose(file);
    return text == NULL || strcmp(got, text) == 0;
}

/* The thread removes it, and then it is ready for another one. */
static void
wait_gone(const struct rig *rig)
{
    while (has_file(rig, NULL)) {
        (void)poll(NULL, 0, 1);
    }
}

static void
begin(const struct rig *rig)
{
    while (!incoming_begin(rig->incoming, rig->dir, "name")) {
        (void)poll(NULL, 0, 1);
    }
}

TEST(incoming_bytes_are_in_the_file_in_order)
{
    struct rig *rig = rig_new();
    int error;

    for (int i = 0; i < 3; i++) { /* one after the other */
        begin(rig);
        put(rig, "one ");
        put(rig, "two ");
        put(rig, "three");
        end(rig, true);
        assert_int_equal(wait_end(rig, &error), INCOMING_READY);
        assert_true(has_file(rig, "one two three"));
        incoming_forget(rig->incoming);
        assert_int_equal(incoming_state(rig->incoming, &error), INCOMING_NONE);
        assert_true(has_file(rig, NULL));
    }
    while (atomic_load(&rig->done) < 3) {
        (void)poll(NULL, 0, 1);
    }
    rig_free(rig);
}

TEST(incoming_file_that_is_not_wanted_goes)
{
    struct rig *rig = rig_new();
    uint64_t before = mem_used();
    int error;

    for (int when = 0; when < 4; when++) {
        begin(rig);
        put(rig, "text");
        if (when >= 1) {
            end(rig, when > 1);
        }
        if (when == 3) {
            assert_int_equal(wait_end(rig, &error), INCOMING_READY);
        }
        incoming_cancel(rig->incoming);
        assert_int_equal(wait_end(rig, &error), INCOMING_NONE);
        wait_gone(rig);
    }
    begin(rig); /* at the end of the server */
    put(rig, "text");
    incoming_free(rig->incoming);
    wait_gone(rig);
    rig->incoming = incoming_new(on_done, rig);
    assert_int_equal(mem_used(), before);
    rig_free(rig);
}

/* The source is never told: it loads what comes, and the rest is dropped. */
TEST(incoming_file_fails_with_any_call)
{
    static const enum file_call calls[] = { FILE_CALL_OPEN, FILE_CALL_WRITE,
                                            FILE_CALL_SYNC };

    for (size_t i = 0; i < 3; i++) {
        bool fired = true;

        for (unsigned nth = 1; fired; nth++) {
            struct rig *rig = rig_new();
            int error;

            file_fail_at(calls[i], nth, ENOSPC, false);
            begin(rig);
            for (int n = 0; n < 3; n++) {
                put(rig, "text");
            }
            end(rig, true);
            if (wait_end(rig, &error) == INCOMING_READY) {
                assert_true(has_file(rig, "texttexttext"));
            } else {
                wait_gone(rig);
            }
            fired = file_fail_clear();
            assert_int_equal(error, fired ? ENOSPC : 0);
            rig_free(rig);
        }
    }
}

static void *
put_much(void *arg)
{
    char *text = mem_zalloc((4 << 20) + 1);

    memset(text, 'x', 4 << 20);
    for (int i = 0; i < 8; i++) { /* more than the queue takes */
        put(arg, text);
    }
    mem_free(text);
    metric_thread_exit();
    return NULL;
}

/* However much the source has, and whether or not the thread writes it. */
TEST(incoming_source_never_waits_for_what_is_cancelled)
{
    struct rig *rig = rig_new();
    pthread_t source;
    int error;

    begin(rig);
    assert_int_equal(pthread_create(&source, NULL, put_much, rig), 0);
    incoming_cancel(rig->incoming);
    assert_int_equal(pthread_join(source, NULL), 0);
    end(rig, false);
    assert_int_equal(wait_end(rig, &error), INCOMING_NONE);
    wait_gone(rig);
    rig_free(rig);
}
