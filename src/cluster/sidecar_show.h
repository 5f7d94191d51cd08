/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What commands see of each slot (cluster/view.h).
 */
#pragma once

struct sidecar;

/* Publishes the present states. */
void sidecar_show(struct sidecar *sidecar);
