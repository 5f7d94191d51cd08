# SPDX-License-Identifier: BSD-3-Clause
#
# The command lines of the README and the man pages, with the output printed below
# them, and a machine to type them into (lib/typed.py).

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from lib import servers

TYPED = servers.TOP / "tests/lib/typed.py"
NAMESPACE = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"]


def readme(path="README.md"):
    """Returns the console blocks of the README, or of another page."""
    return re.findall(r"^```console\n(.*?)^```$",
                      (servers.TOP / path).read_text(), re.M | re.S)


def page(name):
    """Returns the literal blocks of a man page that have command lines."""
    text = (servers.TOP / "packaging/man" / name).read_text()
    blocks = re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed$", text, re.M | re.S)
    return [block.replace("\\-", "-").replace("\\e", "\\") for block in blocks
            if block.startswith(("$ ", "# "))]


def lines(block):
    """Returns [(command, [printed])]; a backslash at the end continues a line."""
    out = []
    for line in block.rstrip("\n").split("\n"):
        text = line.strip()
        if text.startswith(("$ ", "# ")):
            out.append((text[2:], []))
        elif out[-1][0].endswith("\\"):
            out[-1] = (out[-1][0][:-1] + text, [])
        else:
            out[-1][1].append(line.rstrip())
    return out


def missing():
    """Returns the reason why this machine cannot run the commands, or None."""
    if not shutil.which("unshare") or not shutil.which("redis-cli"):
        return "no unshare or no redis-cli"
    got = subprocess.run([*NAMESPACE, "mount", "-t", "tmpfs", "none", "/var/lib"],
                         capture_output=True, check=False)
    return None if got.returncode == 0 else "no namespaces of its own"


def type_in(folder, commands):
    """Runs the commands in a folder that looks like the checkout but has its own
    `data/`; returns [[exit status, output]] of each."""
    for name in os.listdir(servers.TOP):
        # Without .git, a make here would give the sources another version.
        if name == ".git" or not name.startswith(".") and name != "data":
            (folder / name).symlink_to(servers.TOP / name)
    got = subprocess.run(
        [*NAMESPACE, "/usr/bin/python3", str(TYPED),
         str(Path(servers.server_binary()).parent)],
        input=json.dumps(commands), cwd=folder, text=True,
        stdout=subprocess.PIPE, check=True,
        timeout=120 * servers.time_factor())
    return json.loads(got.stdout)
