# SPDX-License-Identifier: BSD-3-Clause
#
# Runs every transcript of this folder, in RESP2 and RESP3, against a new server and,
# if the file has @oracle, against a new redis-server 7.0.15.

from pathlib import Path

import pytest

from lib import servers, transcript

FILES = sorted(Path(__file__).parent.glob("*.t"))


def cases():
    for path in FILES:
        parsed = transcript.Transcript(path)
        for proto in parsed.protos:
            yield pytest.param(parsed, proto, id="%s-RESP%d" % (path.stem, proto))


@pytest.mark.parametrize("parsed,proto", list(cases()))
def test_transcript(parsed, proto, start_server, start_oracle):
    server = start_server(*parsed.options)
    oracle = None
    if parsed.oracle and servers.oracle_missing() is None:
        oracle = start_oracle()
    transcript.run(parsed, proto, server, oracle)


def test_the_oracle_is_there_for_the_transcripts():
    reason = servers.oracle_missing()
    if reason:
        pytest.skip("oracle: " + reason)
