/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the pull and the drop of slots have done, for SIDECAR STATUS, INFO and
 * the status page. Any thread reads what loop 0 has published. One mutex, a
 * leaf.
 */
#pragma once

struct pull;
struct service;
struct slot_drop;
struct slot_figures;

/* Makes the figures, and sets the service's slot_calls. */
struct slot_figures *slot_figures_new(struct service *service,
                                      const struct pull *pull,
                                      const struct slot_drop *drop);
void slot_figures_free(struct slot_figures *figures);

/* Publishes the present figures. Loop 0. */
void slot_figures_publish(struct slot_figures *figures);
