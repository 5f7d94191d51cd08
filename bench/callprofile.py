# SPDX-License-Identifier: BSD-3-Clause
#
# Reads callgrind's files and assigns each instruction to a function of the
# source. callgrind names the source line of every instruction, even of inlined
# code, so the cost of small inline functions is visible too.
"""Instructions by function of the source, from callgrind's files."""

import collections
import functools
import re

import servers

DEFINITION = re.compile(r"^(\w+)\(")


@functools.lru_cache(maxsize=None)
def functions_of(path):
    """Return (first line, last line, name) of the functions of a file."""
    found = []
    name, start = None, 0
    for number, line in enumerate(
            (servers.ROOT / "src" / path).read_text().splitlines(), 1):
        match = DEFINITION.match(line)
        if match:
            name, start = match.group(1), number
        elif line == "}" and name:
            found.append((start, number, name))
            name = None
    return found


@functools.lru_cache(maxsize=None)
def place(path, line, function):
    """Return layer/file:function for our source, another name for others."""
    ours = re.search(r"/src/(\w+/\w+\.[ch])$", path)
    if ours and (servers.ROOT / "src" / ours.group(1)).exists():
        for first, last, name in functions_of(ours.group(1)):
            if first <= line <= last:
                return f"{ours.group(1)}:{name}"
        return f"{ours.group(1)}:?"
    if path.endswith("xxhash.h"):
        return "xxhash"
    return f"libraries:{function}"


class Names:
    """Names that callgrind abbreviates to numbers after their first use."""

    def __init__(self):
        self.known = {}

    def get(self, text):
        """Return the name behind '(12) name' or '(12)'."""
        match = re.match(r"\((\d+)\)(?: (.*))?$", text)
        if not match:
            return text
        if match.group(2) is not None:
            self.known[match.group(1)] = match.group(2)
        return self.known[match.group(1)]


def read(path):
    """Return the instructions of a profile by place."""
    files, functions = Names(), Names()
    costs = collections.Counter()
    file = function = ""
    line = 0
    skip = False  # the callee's own lines have the cost of a call
    with open(path, encoding="utf-8", errors="replace") as profile:
        for text in profile:
            key, equals, value = text.strip().partition("=")
            if equals and key in ("fl", "fi", "fe", "cfi", "cfl"):
                name = files.get(value)
                file = name if key[0] == "f" else file
            elif equals and key in ("fn", "cfn"):
                name = functions.get(value)
                function = name if key == "fn" else function
            elif key == "calls":
                skip = True
            elif re.match(r"[\d+*-]", text):
                where, cost = text.split()[:2]
                line = (line if where == "*" else line + int(where)
                        if where[0] in "+-" else int(where))
                if not skip:
                    costs[place(file, line, function)] += int(cost)
                skip = False
    return costs


def per_command(few, many, commands):
    """Return the cost of each place for one command, from two profiles."""
    return {name: (cost - few.get(name, 0)) / commands
            for name, cost in many.items() if cost != few.get(name, 0)}
