# SPDX-License-Identifier: BSD-3-Clause
#
# Makes RDB files: the parts that tests put into files of redis-server, and values of
# types that only older or newer versions write.

import json
import struct
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "data"


def _table():
    out = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x95AC9329AC4BC9B5 if crc & 1 else 0)
        out.append(crc)
    return out


TABLE = _table()


def crc64(data):
    crc = 0
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xff]
    return crc


def length(number):
    if number < 64:
        return bytes([number])
    if number < 1 << 14:
        return struct.pack(">H", 0x4000 | number)
    if number < 1 << 32:
        return b"\x80" + struct.pack(">I", number)
    return b"\x81" + struct.pack(">Q", number)


def string(text):
    return length(len(text)) + text


def packed(text):
    """LZF of literals only."""
    data = b"".join(bytes([len(text[at:at + 32]) - 1]) + text[at:at + 32]
                    for at in range(0, len(text), 32))
    return b"\xc3" + length(len(data)) + length(len(text)) + data


def select(db):
    return b"\xfe" + length(db)


def expires(ms):
    return b"\xfc" + struct.pack("<Q", ms)


def filter_entry(key, payload):
    """An entry for a filter from its DUMP; key is a string of this file."""
    return payload[:1] + key + payload[1:-10]


def body(rdb):
    """Returns an RDB without its end: operation 255 and the checksum."""
    assert rdb[-9] == 0xff
    return rdb[:-9]


def close(data):
    data += b"\xff"
    return data + struct.pack("<Q", crc64(data))


def dump(payload_value):
    data = payload_value + struct.pack("<H", 10)
    return data + struct.pack("<Q", crc64(data))


class Dump:
    """A filter that a module wrote: the payload of its DUMP, its items, and for
    RedisBloom the replies of BF.SCANDUMP."""

    def __init__(self, name, payload, items, chunks=()):
        self.chunks = list(chunks)
        self.name, self.payload = name, payload
        self.items = [item.encode() for item in items]
        self.module = "MBbloom--" if payload[2] == 0x30 else "bloomfltr"


REDISBLOOM = {"default3": ["apple", "banana", "cherry"],
              "scaled_cap10_e001_150": ["item:%d" % i for i in range(150)],
              "cap1000_e0001_500": ["item:%d" % i for i in range(500)]}


def dumps():
    """Returns filters of both modules."""
    out = []
    for name, items in REDISBLOOM.items():
        path = DATA / "redisbloom/filters" / (name + ".json")
        one = json.loads(path.read_text())
        out.append(Dump(name, bytes.fromhex(one["redis7_DUMP_hex"]), items, [
            (chunk["iterator_returned"], bytes.fromhex(chunk["hex"]))
            for chunk in one["chunks"]]))
    for one in json.loads((DATA / "valkey-bloom/filters.json").read_text()):
        out.append(Dump(one["name"],
                        bytes.fromhex(one["dump_rdb11_uncompressed"]),
                        one["items"]))
    return out
