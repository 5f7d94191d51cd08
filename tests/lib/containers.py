# SPDX-License-Identifier: BSD-3-Clause
#
# Runs the commands of containers on this machine.

import subprocess
import urllib.error
import urllib.request

from lib import servers


def here(command, conf):
    """The command of a container, with the programs and files of this machine."""
    assert command[0] == "bloomery-server"
    return [servers.server_binary()] + [
        str(conf) if w == "/etc/bloomery/bloomery.conf" else w for w in command[1:]]


def get(probe, host, port):
    """Returns the status of an httpGet probe, or None without an answer."""
    try:
        with urllib.request.urlopen("http://%s:%d%s" % (
                host, port, probe["httpGet"]["path"]), timeout=60) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


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
