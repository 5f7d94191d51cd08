# SPDX-License-Identifier: BSD-3-Clause
#
# Runs the commands of containers on this machine.

import subprocess

from lib import servers


def here(command, conf):
    """The command of a container, with the programs and files of this machine."""
    assert command[0] == "bloomery-server"
    return [servers.server_binary()] + [
        str(conf) if w == "/etc/bloomery/bloomery.conf" else w for w in command[1:]]


class Running:
    """A server that runs a container's command."""

    def __init__(self, command, conf, folder, *options):
        (folder / "data").mkdir()
        text = conf.replace("/var/lib/bloomery", str(folder / "data"))
        self.port = servers.free_port()
        text = text.replace("7379", str(self.port))
        self.conf = folder / "bloomery.conf"
        self.conf.write_text(text)
        self.child = subprocess.Popen(here(command, self.conf) + list(options),
                                      stdout=subprocess.DEVNULL,
                                      stderr=open(folder / "log", "wb"))

    def ask(self, probe):
        return subprocess.run(here(probe, self.conf), text=True,
                              capture_output=True, timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()
