# SPDX-License-Identifier: BSD-3-Clause
#
# What the behaviour tests share: a raw RESP client (resp), the servers under
# test and the oracle (servers), and the transcript format (transcript).
