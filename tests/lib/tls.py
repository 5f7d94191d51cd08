# SPDX-License-Identifier: BSD-3-Clause
#
# Certificates for tests, made by the command openssl, with small EC keys so that
# handshakes are fast; and servers and connections that use them.

import ssl
import subprocess

from lib import resp, servers

KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


def openssl(*args):
    subprocess.run(["openssl", *map(str, args)], check=True,
                   capture_output=True)


class Authority:
    """Signs certificates in a folder: authority.make("server") writes server.pem
    and server.key."""

    def __init__(self, folder, name="ca"):
        self.folder = folder
        self.name = name
        self.cert = folder / (name + ".pem")
        self.key = folder / (name + ".key")
        openssl("req", "-x509", *KEY, "-keyout", self.key, "-out", self.cert,
                "-days", 30, "-subj", "/CN=" + name)

    def make(self, name, names="DNS:localhost,IP:127.0.0.1", days=20):
        request = self.folder / (name + ".csr")
        extension = self.folder / (name + ".ext")
        key, cert = self.folder / (name + ".key"), self.folder / (name + ".pem")
        extension.write_text("subjectAltName=" + names + "\n" if names else "")
        openssl("req", *KEY, "-keyout", key, "-out", request, "-subj",
                "/CN=" + name)
        openssl("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey",
                self.key, "-CAcreateserial", "-out", cert, "-days", days,
                "-extfile", extension)
        return cert, key


class Files:
    """One authority, and certificates of it for a server and for a client."""

    def __init__(self, folder):
        self.folder = folder
        self.authority = Authority(folder)
        self.ca = self.authority.cert
        self.server = self.authority.make("server")
        self.client = self.authority.make("client")

    def options(self, port, *more):
        """The options of a server that listens for TLS on `port`."""
        return ("--tls-port", port, "--tls-cert-file", self.server[0],
                "--tls-key-file", self.server[1],
                "--tls-ca-cert-file", self.ca) + more

    def context(self, cert=True, ca=None):
        """A client's context. cert: True for the client's own, a pair of files,
        or None for none."""
        context = ssl.create_default_context(cafile=str(ca or self.ca))
        pair = self.client if cert is True else cert
        if pair:
            context.load_cert_chain(str(pair[0]), str(pair[1]))
        return context

    def redis_py(self, cert=True):
        """Arguments for redis.Redis."""
        pair = self.client if cert is True else cert
        arguments = {"ssl": True, "ssl_ca_certs": str(self.ca)}
        if pair:
            arguments.update(ssl_certfile=str(pair[0]),
                             ssl_keyfile=str(pair[1]))
        return arguments

    def redis_cli(self, port):
        """The beginning of a command line."""
        return ["redis-cli", "--tls", "--cacert", str(self.ca), "--cert",
                str(self.client[0]), "--key", str(self.client[1]), "-p",
                str(port)]


class Conn(resp.Conn):
    """A raw client over TLS."""

    def __init__(self, port, context, **kwargs):
        self.context = context
        super().__init__(("127.0.0.1", port), **kwargs)

    def wrap(self, sock):
        return self.context.wrap_socket(sock, server_hostname="127.0.0.1")


def free_ports(count):
    """Returns distinct free ports."""
    ports = set()
    while len(ports) < count:
        ports.add(servers.free_port())
    return sorted(ports)
