/* SPDX-License-Identifier: BSD-3-Clause */
#include "pieces_help.h"

void
add_word(struct command_text *command, struct slice word)
{
    struct batch *batch = &command->batch;

    assert_true(batch_reserve(batch, 1));
    batch->argv[batch->argv_count++] =
        (struct slice){ command->text.data + command->text.len, word.len };
    buf_append_slice(&command->text, word);
}

void
put(struct command_text *command, const char *head, unsigned first,
    unsigned count)
{
    struct batch *batch = &command->batch;

    *command = (struct command_text){ .batch = { .count = 0 } };
    assert_non_null(
        buf_reserve(&command->text, strlen(head) + count * ITEM_BYTES));
    while (*head != '\0') {
        struct slice word = { head, strcspn(head, " ") };

        add_word(command, word);
        head += word.len;
        head += *head == ' ';
    }
    for (unsigned i = first; i < first + count; i++) {
        char item[ITEM_BYTES];
        int len = snprintf(item, sizeof(item), "i%u", i);

        add_word(command, (struct slice){ item, (size_t)len });
    }
    batch->command[batch->count++] =
        (struct batch_command){ .argc = (uint32_t)batch->argv_count };
}

void
drop(struct command_text *command)
{
    batch_fini(&command->batch);
    buf_free(&command->text);
}

unsigned
run(struct rig *rig, const struct command_text *command)
{
    unsigned calls = 0;
    uint32_t done = 0;

    rig->out.len = 0;
    while (done == 0) {
        done = dispatch_batch(rig->worker, &rig->session, &command->batch, 0,
                              UINT64_MAX, &rig->out);
        calls++;
        assert_true(done == 1 || rig->session.again != NULL);
        assert_true(done == 1 || rig->out.len == 0);
    }
    assert_null(rig->session.again);
    return calls;
}

unsigned
call(struct rig *rig, const char *head, unsigned first, unsigned count)
{
    struct command_text command;
    unsigned calls;

    put(&command, head, first, count);
    calls = run(rig, &command);
    drop(&command);
    return calls;
}

int64_t
number(struct rig *rig, const char *head)
{
    (void)call(rig, head, 0, 0);
    assert_int_equal(':', rig->out.data[0]);
    buf_append(&rig->out, "", 1);
    return strtoll(rig->out.data + 1, NULL, 10);
}

unsigned
ones(const struct rig *rig, unsigned count)
{
    char header[16];
    int len = snprintf(header, sizeof(header), "*%u\r\n", count);
    unsigned sum = 0;

    assert_int_equal((size_t)len + 4 * count, rig->out.len);
    assert_memory_equal(header, rig->out.data, (size_t)len);
    for (unsigned i = 0; i < count; i++) {
        const char *answer = rig->out.data + len + 4 * i;

        assert_true(answer[0] == ':' && answer[2] == '\r');
        sum += answer[1] == '1';
    }
    return sum;
}

void
remove_key(struct rig *rig, const char *name)
{
    struct key key = { .name = slice_of(name),
                       .hash = hash_name(slice_of(name)) };

    assert_true(keyspace_delete(rig->service.keyspace, &key, 1));
}
