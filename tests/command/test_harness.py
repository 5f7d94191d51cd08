# SPDX-License-Identifier: BSD-3-Clause
#
# The test tools themselves: the RESP reader reads exactly one reply, the text form
# loses nothing, and a wrong transcript fails.

import pytest

from lib import resp, transcript

REPLIES = [
    b"+OK\r\n", b"+\r\n", b"-ERR x with blank \r\n", b":-5\r\n", b"$-1\r\n",
    b"*-1\r\n", b"_\r\n", b"#t\r\n", b",0.01\r\n", b",1e-7\r\n", b"(123\r\n",
    b"$0\r\n\r\n", b"$4\r\n\x00\r\n\xff\r\n", b"=7\r\ntxt:a\nb\r\n", b"*0\r\n",
    b"*2\r\n:1\r\n*2\r\n-ERR a | b\r\n$5\r\n\\\"|x \r\n",
    b"%1\r\n+k\r\n~2\r\n:1\r\n_\r\n", b">2\r\n+a\r\n+b\r\n",
]


@pytest.mark.parametrize("raw", REPLIES, ids=repr)
def test_one_reply_is_taken_whole_and_alone(raw):
    assert resp.reply_end(raw + b"+NEXT\r\n") == len(raw)
    for cut in range(len(raw)):
        with pytest.raises(resp.Incomplete):
            resp.reply_end(raw[:cut])


@pytest.mark.parametrize("raw", [r for r in REPLIES if b" | " not in r],
                         ids=repr)
def test_text_and_back(raw):
    assert resp.encode(resp.render(raw), 3) == raw


@pytest.mark.parametrize("raw", [
    b"hello\r\n", b":x\r\n", b"$3\r\nabcd\r\n", b"*1x\r\n", b",zero\r\n",
    b"#x\r\n", b"*2\r\n:1\r\n?\r\n", b"$-2\r\n", b"-\r\n", b"_x\r\n",
], ids=repr)
def test_what_is_no_reply_is_told(raw):
    with pytest.raises(resp.Malformed):
        resp.reply_end(raw)


def test_one_text_for_both_protocols():
    text = '%1 | "a" | null'
    assert resp.encode(text, 2) == b"*2\r\n$1\r\na\r\n$-1\r\n"
    assert resp.encode(text, 3) == b"%1\r\n$1\r\na\r\n_\r\n"
    assert resp.encode(",0.01", 2) == b"$4\r\n0.01\r\n"


def test_words():
    assert transcript.words(r'SET "a b" \x00c "q\"\r\n" ""') == \
        [b"SET", b"a b", b"\x00c", b'q"\r\n', b""]
    with pytest.raises(ValueError):
        transcript.words('SET "open')


@pytest.mark.parametrize("text", [
    "> PING\n< +PANG\n", "> PING\n< \"PONG\"\n", "> PING\n~ -.*\n",
    "> DBSIZE\n< :1\n", "> PING\n< :?\n", "> PING x\n< *1 | \"x\"\n",
    "> NOPE\n< -ERR unknown command\n",
    "> PING\n< +PONG\n@closed\n", "@changed\n",
    "> WATCH k\n@key k\n@unchanged\n", "@include x.part COMMAND=ECHO\n",
], ids=repr)
def test_a_wrong_expectation_fails(server, tmp_path, text):
    (tmp_path / "x.part").write_text("> $COMMAND two\n< \"one\"\n")
    path = tmp_path / "x.t"
    path.write_text(text)
    with pytest.raises(transcript.Mismatch):
        transcript.run(transcript.Transcript(path), 2, server, None)


def test_an_answer_unlike_the_oracle_fails(server, oracle, tmp_path):
    path = tmp_path / "x.t"
    path.write_text("@oracle\n> LOLWUT\n> INFO nope\n")
    with pytest.raises(transcript.Mismatch, match="1 of 2 steps"):
        transcript.run(transcript.Transcript(path), 2, server, oracle)
