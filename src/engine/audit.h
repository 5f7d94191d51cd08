/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lines of the log about who administers the server: commands of rows with
 * CMD_AUDITED, with their user, address, client name and result, and failed
 * logins. At most AUDIT_A_SECOND lines about the same command are logged in a
 * second; a later line tells how many were left out. Any loop.
 */
#pragma once

#include "engine/request.h"

enum { AUDIT_A_SECOND = 10, AUDIT_LOGINS_A_SECOND = 1000 };

/* Logs a command that has run for a client. err: the command's result. */
void audit_note(const struct request *req, enum err err);

/* Logs a failed login as this user. The caller calls it at most once a second
 * for each address (access/auth_delay.h). */
void audit_failed_login(const struct request *req, struct slice user);

/* Logs how many lines of a second that is over were left out. Loop 0 calls it
 * at each tick, so that the end of a flood is counted, too. */
void audit_tick(void);
