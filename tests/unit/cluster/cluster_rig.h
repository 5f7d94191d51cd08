/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A cluster of three primaries and a replica, for the tests of this layer.
 */
#pragma once

#include "cluster/topology.h"

#define RIG_A "1111111111111111111111111111111111111111"
#define RIG_B "2222222222222222222222222222222222222222"
#define RIG_C "3333333333333333333333333333333333333333"
#define RIG_R "4444444444444444444444444444444444444444"

#define RIG_INFO_REST                                                          \
    "\r\ncluster_slots_assigned:16384\r\n"                                     \
    "cluster_current_epoch:7\r\ncluster_my_epoch:1\r\n"                        \
    "cluster_stats_messages_sent:123\r\n"
#define RIG_INFO "cluster_state:ok" RIG_INFO_REST

/* A is myself; R is a replica of A; B has a hostname, C an IPv6 address. */
#define RIG_NODES                                                              \
    RIG_A                                                                      \
    " 10.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-5460\n" RIG_B      \
    " 10.0.0.2:7001@17001,b.example master - 0 1426238317239 2 "               \
    "connected 5461-10922\n" RIG_C                                             \
    " 2001:db8::3:7002@17002 master - 0 1426238316232 3 connected "            \
    "10923-16383\n" RIG_R " 10.0.0.4:7003@17003 slave " RIG_A                  \
    " 0 1426238316741 1 connected\n"

/* Parses texts that must be good. */
struct topology *rig_topology(const char *nodes, const char *info,
                              const char *myid);
