/* SPDX-License-Identifier: BSD-3-Clause */
#include "local/local_fault.h"

#include "tls/tls.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

enum bloomery_local_code
local_fault_text(const struct client *client, char *ret_text, size_t room)
{
    enum bloomery_local_code code = BLOOMERY_LOCAL_CONNECT;
    const char *what = "cannot connect", *why = "";

    switch (client->fault) {
    case CLIENT_FINE:
        return BLOOMERY_LOCAL_OK;
    case CLIENT_NO_NAME:
        why = gai_strerror(client->code);
        break;
    case CLIENT_NO_SERVER:
        why = strerror(client->code);
        break;
    case CLIENT_LATE:
        what = "the server does not answer in time";
        break;
    case CLIENT_NO_MEMORY:
        code = BLOOMERY_LOCAL_NOMEM;
        what = "not enough memory";
        break;
    case CLIENT_READ:
    case CLIENT_WRITE:
        what = "the connection failed";
        why = strerror(client->code);
        break;
    case CLIENT_TLS:
    case CLIENT_TLS_SEAL:
        code = BLOOMERY_LOCAL_TLS;
        what = "TLS failed";
        why = tls_reason(client->tls);
        break;
    case CLIENT_CLOSED:
        what = "the server closed the connection";
        break;
    case CLIENT_TOO_LONG:
    case CLIENT_FOREIGN:
        code = BLOOMERY_LOCAL_FOREIGN;
        what = "the server does not speak RESP";
        break;
    }
    (void)snprintf(ret_text, room, "%s%s%s", what, why[0] != '\0' ? ": " : "",
                   why);
    return code;
}
