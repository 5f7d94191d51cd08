/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --ping: asks a running server whether it is well, as a client does, at the
 * address that its configuration gives. For health checks of containers and
 * service managers. With =alive any reply is good; without a word only PONG is.
 * With =ready the server must also have data to serve, and with =complete all
 * of it (info/readiness.h).
 */
#pragma once

struct conf;
struct conf_args;

/* Prints the reply, or why there is no good one. words: the arguments
 * --ping-..., args->ping_words of them. Returns an exit status:
 * SERVER_EXIT_MISTAKE for a bad word, SERVER_EXIT_FAILED if the server is not
 * well. */
int ping(const struct conf *conf, const struct conf_args *args,
         char *const *words);
