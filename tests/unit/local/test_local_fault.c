/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The texts of connections that failed.
 */
#include "local/local_fault.h"

#include "../test.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>

static enum bloomery_local_code
tell(enum client_fault fault, int code, char text[200])
{
    struct client client;

    client_init(&client, 100);
    if (fault != CLIENT_FINE) {
        (void)client_fail(&client, fault, code);
    }
    return local_fault_text(&client, text, 200);
}

TEST(a_fault_has_a_code_and_a_text)
{
    char text[200] = "kept";

    assert_int_equal(tell(CLIENT_FINE, 0, text), BLOOMERY_LOCAL_OK);
    assert_string_equal(text, "kept");
    assert_int_equal(tell(CLIENT_NO_SERVER, ECONNREFUSED, text),
                     BLOOMERY_LOCAL_CONNECT);
    assert_string_equal(text, "cannot connect: Connection refused");
    assert_int_equal(tell(CLIENT_NO_NAME, EAI_NONAME, text),
                     BLOOMERY_LOCAL_CONNECT);
    assert_non_null(strstr(text, "cannot connect: "));
    assert_int_equal(tell(CLIENT_READ, ECONNRESET, text),
                     BLOOMERY_LOCAL_CONNECT);
    assert_non_null(strstr(text, "the connection failed: "));
    assert_int_equal(tell(CLIENT_NO_MEMORY, 0, text), BLOOMERY_LOCAL_NOMEM);
    assert_int_equal(tell(CLIENT_FOREIGN, 0, text), BLOOMERY_LOCAL_FOREIGN);
    assert_string_equal(text, "the server does not speak RESP");
}
