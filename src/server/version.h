/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What --version prints: the version, and what this program was built with.
 */
#pragma once

void version_print(void);
