# SPDX-License-Identifier: BSD-3-Clause
#
# Computes what a disk may contain after a power failure at a point of a recording
# (lib/shim.py). For each file, the writes that ended before a successful sync
# began are certain. For each directory, the changes before its sync are certain.
# Everything else may vary as a journaling file system allows. A file may have any
# subset of its other writes, torn into sectors or pages, with or without their
# effect on its length. A directory may have its other changes up to some point, in
# order. The same log shows which replies had been sent.
#
# Method: Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014;
# Mohan et al., "CrashMonkey", OSDI 2018.

import bisect
import os
from collections import defaultdict


class Inode:
    def __init__(self):
        self.changes = []  # (index, offset, data); data None: truncated to it
        self.syncs = []    # (index of the end, index of the begin)


class Directory:
    def __init__(self):
        self.changes = []  # (index, [(name, Inode, Directory or None), ...])
        self.syncs = []


class Recording:
    """The log of one server that began with an empty data directory."""

    def __init__(self, log):
        self.log = log
        self.times = [record.time for record in log]
        self.top = Directory()
        self.inodes = []
        self.sends = defaultdict(list)  # ports: [(index, time, bytes so far)]
        self._open, self._begins = {}, {}
        self._names = {"": self.top}    # as they are while the log is read
        for index, record in enumerate(log):
            step = getattr(self, "_" + record.type.replace("-", "_"))
            step(index, record)

    # ---- reading the log ---------------------------------------------------

    def _parent(self, name):
        return self._names[os.path.dirname(name)]

    def _change(self, index, parent, *entries):
        parent.changes.append((index, list(entries)))

    def _create(self, index, record):
        name = record.data.decode()
        if record.a:
            inode = Inode()
            self.inodes.append(inode)
            self._names[name] = inode
            self._change(index, self._parent(name),
                         (os.path.basename(name), inode))
        elif record.b:
            self._names[name].changes.append((index, 0, None))
        self._open[record.handle] = self._names[name]

    def _opened(self, index, record):
        self._open[record.handle] = self._names[record.data.decode()]

    def _write(self, index, record):
        self._open[record.handle].changes.append((index, record.a, record.data))

    def _truncate(self, index, record):
        self._open[record.handle].changes.append((index, record.a, None))

    def _sync_begin(self, index, record):
        self._begins[record.number] = index

    def _sync_end(self, index, record):
        self._open[record.handle].syncs.append(
            (index, self._begins[record.number]))

    def _sync_failed(self, index, record):
        pass

    def _rename(self, index, record):
        old, new = record.data.decode().split("\0")
        moved = self._names.pop(old)
        self._names[new] = moved
        for name in [n for n in self._names if n.startswith(old + "/")]:
            self._names[new + name[len(old):]] = self._names.pop(name)
        if self._parent(old) is self._parent(new):
            self._change(index, self._parent(new),
                         (os.path.basename(old), None),
                         (os.path.basename(new), moved))
        else:
            self._change(index, self._parent(old),
                         (os.path.basename(old), None))
            self._change(index, self._parent(new),
                         (os.path.basename(new), moved))

    def _link(self, index, record):
        old, new = record.data.decode().split("\0")
        self._names[new] = self._names[old]
        self._change(index, self._parent(new),
                     (os.path.basename(new), self._names[old]))

    def _unlink(self, index, record):
        name = record.data.decode()
        self._names.pop(name)
        self._change(index, self._parent(name), (os.path.basename(name), None))

    def _mkdir(self, index, record):
        name = record.data.decode()
        self._names[name] = Directory()
        if name != "":
            self._change(index, self._parent(name),
                         (os.path.basename(name), self._names[name]))

    def _send_begin(self, index, record):
        self._begins[record.handle, record.b] = index

    def _send_end(self, index, record):
        ports = record.handle, record.b
        sends = self.sends[ports]
        begin = self._begins.pop(ports)
        sends.append((begin, self.times[begin],
                      (sends[-1][2] if sends else 0) + record.a))

    def _other(self, index, record):
        raise AssertionError("a call that no image can model: %r" % (record,))

    # ---- what is asked of it -----------------------------------------------

    def sent(self, ports, point, before=None):
        """Returns the bytes of replies that a connection (the client's port, the
        server's) had sent before the point, and before a time."""
        sends = self.sends[ports]
        at = bisect.bisect_right(sends, point, key=lambda send: send[0])
        if before is not None:
            at = min(at, bisect.bisect_right(sends, before,
                                             key=lambda send: send[1]))
        return sends[at - 1][2] if at else 0

    def image(self, point, how):
        """Returns the existing files {path: bytes} and directories {path: None}."""
        out = {}
        self._fill(out, "", self.top, point, how)
        return out

    def _fill(self, out, prefix, directory, point, how):
        changes = [c for c in directory.changes if c[0] <= point]
        sure = _sure(directory, changes, point)
        entries = {}
        for _, change in changes[:how.names(changes, sure)]:
            for name, node in change:
                entries.pop(name, None)
                if node is not None:
                    entries[name] = node
        for name, node in entries.items():
            path = prefix + name
            if isinstance(node, Directory):
                out[path] = None
                self._fill(out, path + "/", node, point, how)
            else:
                out[path] = self._content(node, point, how)

    def _content(self, inode, point, how):
        changes = [c for c in inode.changes if c[0] <= point]
        sure = _sure(inode, changes, point)
        data = bytearray()
        for change in changes[:sure]:
            _apply(data, *change[1:])
        how.data(data, changes[sure:])
        return bytes(data)


def _sure(node, changes, point):
    """Returns how many of the changes are certain to be on the disk."""
    begin = max((b for end, b in node.syncs if end <= point), default=-1)
    return bisect.bisect_left(changes, begin, key=lambda change: change[0])


def _apply(data, offset, piece):
    if piece is None:
        del data[offset:]
        data.extend(bytes(max(0, offset - len(data))))
        return
    if len(data) < offset:
        data.extend(bytes(offset - len(data)))
    data[offset:offset + len(piece)] = piece


class Everything:
    """Keeps all writes: the state after kill -9, which the page cache survives."""

    def names(self, changes, sure):
        return len(changes)

    def data(self, data, changes):
        for change in changes:
            _apply(data, *change[1:])


class Nothing:
    """Keeps only the certain writes and changes."""

    def names(self, changes, sure):
        return sure

    def data(self, data, changes):
        pass


class Prefix:
    """Keeps the writes in order, up to one that is torn."""

    def __init__(self, rng, recording, point):
        unsure = [point]
        for inode in recording.inodes:
            changes = [c for c in inode.changes if c[0] <= point]
            unsure += [c[0] for c in changes[_sure(inode, changes, point):]]
        self.last = rng.choice(unsure)
        self.rng = rng

    def names(self, changes, sure):
        return max(sure, bisect.bisect_right(changes, self.last,
                                             key=lambda change: change[0]))

    def data(self, data, changes):
        for index, offset, piece in changes:
            if index < self.last:
                _apply(data, offset, piece)
            elif index == self.last and piece is not None:
                _apply(data, offset, piece[:self.rng.randrange(len(piece) + 1)])


class Random:
    """Keeps any subset of the writes, in pieces of a sector or a page."""

    def __init__(self, rng):
        self.rng = rng
        self.size = rng.choice((512, 4096))
        self.keep = rng.choice((0.05, 0.5, 0.5, 0.95))
        self.newest_names = rng.random() < 0.3

    def names(self, changes, sure):
        if self.newest_names:
            return len(changes)
        return self.rng.randrange(sure, len(changes) + 1)

    def data(self, data, changes):
        full = len(data)
        for _, offset, piece in changes:
            if piece is None:
                if self.rng.random() < self.keep:
                    _apply(data, offset, None)
                continue
            full = max(full, offset + len(piece))
            self._pieces(data, offset, piece)
        # The length may have reached the disk without what lies there.
        if len(data) < full and self.rng.random() < 0.5:
            data.extend(bytes(self.rng.choice(
                (full, self.rng.randrange(len(data), full + 1))) - len(data)))

    def _pieces(self, data, offset, piece):
        at, end = 0, len(piece)
        while at < end:
            stop = min(end, at + self.size - (offset + at) % self.size)
            if self.rng.random() < self.keep:
                _apply(data, offset + at, piece[at:stop])
            at = stop


def choose(rng, recording, point):
    """Chooses one of the possible states after a power failure."""
    kind = rng.random()
    if kind < 0.1:
        return Everything()
    if kind < 0.25:
        return Nothing()
    if kind < 0.5:
        return Prefix(rng, recording, point)
    return Random(rng)


def private(path, flags):
    """Opens a file as the server makes those that only it may read."""
    return os.open(path, flags, 0o600)


def write(image, folder):
    """Writes the files of an image below a folder."""
    os.makedirs(folder, exist_ok=True)
    for path, data in image.items():
        full = os.path.join(folder, path)
        if data is None:
            os.makedirs(full, exist_ok=True)
        else:
            with open(full, "wb", opener=private) as file:
                file.write(data)
