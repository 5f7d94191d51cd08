/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The line of a client without a connection: its fields, their order, and the
 * changes that flags and ages show.
 */
#include "engine/client.h"

#include "../test.h"
#include "access/table.h"
#include "command/rows.h"

static struct session
new_session(void)
{
    struct session session;

    command_table_init(command_rows);
    session_init(&session, true);
    session.id = 7;
    session.created_ms = 1000;
    session.active_ms = 3500;
    return session;
}

static void
expect_line(const struct session *session, const struct command *running,
            const char *part)
{
    struct buf line = { 0 };

    client_line(&line, session, running, 5000);
    buf_append(&line, "", 1);
    assert_false(line.failed);
    if (strstr(line.data, part) == NULL) {
        fail_msg("no \"%s\" in %s", part, line.data);
    }
    buf_free(&line);
}

TEST(client_line_has_the_fields_in_their_order)
{
    struct session session = new_session();

    assert_true(session_set_text(&session.name, slice_lit("n")));
    expect_line(
        &session, NULL,
        "id=7 addr= laddr= fd=-1 name=n age=4 idle=1 flags=N capa= db=0 "
        "sub=0 psub=0 ssub=0 multi=-1 qbuf=0");
    expect_line(&session, NULL,
                " cmd=NULL user=default redir=-1 resp=2 filters=0 "
                "lib-name= lib-ver=\n");
    expect_line(&session, command_at(CMD_ID_PING), " cmd=ping ");
    session_fini(&session);
}

TEST(client_flags_follow_the_session)
{
    struct session session = new_session();
    char flags[CLIENT_FLAGS_MAX + 1];

    session.multi_count = 0;
    session.blocked = SESSION_WAITS;
    session.no_evict = true;
    session.no_touch = true;
    client_flags(&session, flags);
    assert_string_equal("xbeT", flags);
    session_fini(&session);
}

TEST(client_ages_never_go_below_zero)
{
    struct session session = new_session();

    assert_int_equal(0, client_age_s(&session, 999));
    assert_int_equal(4, client_age_s(&session, 5000));
    assert_int_equal(0, client_idle_s(&session, 0));
    assert_int_equal(1, client_idle_s(&session, 5000));
    session_fini(&session);
}
