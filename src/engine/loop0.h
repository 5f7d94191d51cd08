/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the rooms that run on loop 0 (links to other servers, roles, slots, the
 * sidecar) may reach of the server. It stays at these three members, since the
 * service has the rest.
 */
#pragma once

struct loop;
struct service;
struct worker;

/* The server sets it before the loops run. */
struct loop0 {
    struct service *service;
    struct loop *loop;     /* loop 0 itself */
    struct worker *worker; /* its worker */
};
