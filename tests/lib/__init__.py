# SPDX-License-Identifier: BSD-3-Clause
#
# The shared code of the behaviour tests: a raw RESP client (resp), the servers
# under test and the oracle (servers), and the transcript format (transcript).
