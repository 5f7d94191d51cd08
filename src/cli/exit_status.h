/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How the process ends.
 */
#pragma once

/* The exit statuses of the process. bloomery-server(8) explains them. The
 * systemd unit restarts the server only after SERVER_EXIT_FAILED. */
enum server_exit {
    SERVER_EXIT_STOPPED, /* it stopped as it was told to */
    SERVER_EXIT_FAILED,  /* could not start or go on; another start may help */
    SERVER_EXIT_MISTAKE, /* the configuration is wrong, or a file it names */
    SERVER_EXIT_DATA     /* the data was refused (persist_refuses_data) */
};
