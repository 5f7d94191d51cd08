# SPDX-License-Identifier: BSD-3-Clause
#
# Runs every transcript of this folder, in RESP2 and RESP3, against a new server and,
# if the file has @oracle, against a new redis-server 7.0.15.

from pathlib import Path

import pytest

from lib import neighbour, servers, transcript

FILES = sorted(Path(__file__).parent.glob("*.t"))


def cases():
    for path in FILES:
        parsed = transcript.Transcript(path)
        for proto in parsed.protos:
            yield pytest.param(parsed, proto, id="%s-RESP%d" % (path.stem, proto))


def start_sidecar(parsed, start_server):
    """A server beside a made-up node, when it has its first lease."""
    made = neighbour.Neighbour()
    config = dict(made.config, **parsed.neighbour)
    state = config.pop("state", "ok")
    own = sum(int(last or first) - int(first) + 1 for first, _, last in
              (part.partition("-") for part in parsed.nodes[0]["slots"].split()))
    made.say(nodes=[neighbour.node(**fields) for fields in parsed.nodes],
             myid=parsed.nodes[0]["ident"], shard=config.pop("shard", None),
             config=config)
    server = start_server("--sidecar-of", made.address, *neighbour.EMPTY,
                          *parsed.options)
    neighbour.wait_lease(server)
    neighbour.wait_served(server, own)
    made.say(state=state)
    servers.wait_until(lambda: neighbour.figures(server)["cluster_state"] == state)
    return made, server


@pytest.fixture
def start(start_server):
    made = []

    def start_for(parsed):
        if not parsed.nodes:
            return start_server(*parsed.options)
        node, server = start_sidecar(parsed, start_server)
        made.append(node)
        return server

    yield start_for
    for node in made:
        node.close()


@pytest.mark.port      # some replies have addresses
@pytest.mark.parametrize("parsed,proto", list(cases()))
def test_transcript(parsed, proto, start, start_oracle):
    server = start(parsed)
    oracle = None
    if parsed.oracle and servers.oracle_missing() is None:
        oracle = start_oracle()
    transcript.run(parsed, proto, server, oracle)


def test_the_oracle_is_there_for_the_transcripts():
    reason = servers.oracle_missing()
    if reason:
        pytest.skip("oracle: " + reason)
