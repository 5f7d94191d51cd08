#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# Measures the cost of durability, each figure with its mark: loading and saving
# 1 GiB compared with the least that a disk and a hash need, the longest hold of a
# save, the journal's CPU time per command compared with a server without one, adds per
# fsync, and latencies. Compared programs run in turn, in pairs, and the ratio is
# taken within the pair. Absolute times depend on the machine. The data are in a
# separate folder below the build folder, so on the disk of the source tree.
"""Measure snapshots and the journal."""

import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import compare
import servers
import tables

MIB = 1 << 20
CONNECTIONS = 50
NO_REWRITE = ["--auto-aof-rewrite-percentage", "0"]

# Each kind of keyspace holds 1 GiB: prefix, keys, capacity and items of each.
LARGE = [("big", 12, 52_600_000, 1_000_000), ("mid", 64, 3_200_000, 60_000)]
SMALL_KEYS = 3_300_000

MARK_LOAD, MARK_JOURNAL = 1.5, 1.25
MARK_SAVE_LARGE, MARK_SAVE_SMALL = 1.3, 2.0
MARK_HOLD_MS, MARK_GROWN_MIB = 0.3, 64
MARK_RATE, MARK_LOOP = 0.8, 1.1
MARK_ADDS_A_SYNC, SYNC_MS = 20, 5


class Connection:
    """A client that stays connected."""

    def __init__(self, server):
        self.socket = socket.create_connection(("127.0.0.1", server.port))
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.file.close()
        self.socket.close()

    def call(self, *words):
        """Return a status, an integer's text or a bulk string."""
        request = f"*{len(words)}\r\n" + "".join(
            f"${len(word)}\r\n{word}\r\n" for word in map(str, words))
        self.socket.sendall(request.encode())
        line = self.file.readline().decode().strip()
        if line.startswith("-"):
            raise SystemExit(f"{words[0]}: {line}")
        if line.startswith("$"):
            return self.file.read(int(line[1:]) + 2)[:-2].decode()
        return line[1:]

    def info(self, name):
        """Return one field of INFO."""
        return re.search(rf"^{name}:(.*)\r$", self.call("INFO", "everything"),
                         re.MULTILINE).group(1)

    def wait(self, name, value, seconds=60):
        """Wait until a field of INFO is VALUE."""
        end = time.monotonic() + seconds
        while self.info(name) != value:
            if time.monotonic() > end:
                raise SystemExit(f"{name} is not {value}")
            time.sleep(0.01)


class Durable(servers.Bloomery):
    """A server on a data directory that exists longer than the server."""

    def __init__(self, build, data, threads=1, options=(), wrapper=()):
        os.makedirs(data, exist_ok=True)
        super().__init__(build / "bloomery-server", [
            "--threads", str(threads), "--dir", str(data), "--save", "",
            *NO_REWRITE, *options], wrapper=wrapper)

    def journaled(self):
        """Wait until the journal runs, if the options ask for one."""
        if "--appendonly" in self.options:
            with Connection(self) as peer:
                peer.wait("journal_state", "on")


FIGURES = []  # all that was said, for --json
ANSWERS = []  # sentences for the top of the report


def say(what, figure, mark="", met=None, note=""):
    """Print a line of the table; return whether the mark is met."""
    FIGURES.append((what.strip(), figure, mark, met, note))
    verdict = "" if met is None else "met" if met else "MISSED"
    print(f"{what:<44}{figure:>26}{mark:>10}{verdict:>8}  {note}".rstrip(),
          flush=True)
    return met is not False


def answer(sentence):
    """Print a sentence that the report shows at its top."""
    ANSWERS.append(sentence)
    print(sentence, flush=True)


def spread(values):
    """Return the median with its interval as text, and the median."""
    low, high = compare.interval(values)
    median = statistics.median(values)
    return f"{median:.2f} ({low:.2f}..{high:.2f})", median


def command(words):
    """Run a program and return its line of key=value as a dict."""
    done = subprocess.run([str(word) for word in words], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)
    if done.returncode != 0:
        raise SystemExit(f"{words[0]}: {done.stderr.strip()}")
    return [dict(word.split("=", 1) for word in line.split())
            for line in done.stdout.splitlines()]


# ---- keyspaces ---------------------------------------------------------------


def fill_large(bench, server):
    """Layers of 64 MiB and 4 MiB, every page of them touched."""
    with Connection(server) as peer:
        for prefix, keys, capacity, _ in LARGE:
            for key in range(keys):
                peer.call("BF.RESERVE", f"{prefix}{key:08x}", "0.01", capacity)
    for prefix, keys, _, items in LARGE:
        bench.load.run(server, [
            "--command", "madd", "--items", "1000", "--pipeline", "1",
            "--connections", "8", "--keys", str(keys), "--key", prefix,
            "--range", str(2**32 - 1), "--requests",
            str(bench.scaled(keys * items // 1000))])


def fill_small(bench, server):
    """Filters as BF.ADD makes them, one item in each."""
    bench.load.run(server, [
        "--command", "add", "--pipeline", "100", "--keys", str(2**32 - 1),
        "--key", "k", "--requests", str(bench.scaled(SMALL_KEYS))])


# ---- walks -------------------------------------------------------------------


def pulse(bench, server, seconds, keys, during=None):
    """Ping both loops and add at random places; return the latencies."""
    with Connection(server) as peer:
        # The loops get connections in turn; loop 0 gets the first.
        first = int(peer.info("total_connections_received")) % 2
    words = [bench.build / "bench" / "pulse", server.port, seconds, 100,
             keys, LARGE[0][0] if keys else "none"]
    lines = []
    thread = threading.Thread(target=lambda: lines.extend(command(words)))
    thread.start()
    if during is not None:
        time.sleep(0.3)
        during()
    thread.join()
    worst = [float(line["max_us"]) / 1000 for line in lines[:-1]]
    if first == 1:
        worst[:2] = worst[1::-1]
    text = (f"longest PING on loop 0 {worst[0]:.1f}, loop 1 {worst[1]:.1f}, "
            + (f"BF.ADD {max(worst[2:]):.1f}, " if keys else ""))
    late = float(lines[-1]["late_max_us"]) / 1000
    return f"{text}the client itself was late by {late:.1f}"


GAP = """
import sys, time
longest, before = 0, time.thread_time_ns()
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for _ in range(20):
        now = time.thread_time_ns()
        longest, before = max(longest, now - before), now
    time.sleep(0.0001)
    before = time.thread_time_ns()
print(longest / 1e6)
"""


def gap(seconds, during):
    """Return the longest step of CPU time of a program that only counts, in ms:
    the kernel adds interrupts to the thread that they meet."""
    with subprocess.Popen([sys.executable, "-c", GAP, str(seconds)], text=True,
                          stdout=subprocess.PIPE) as counter:
        during()
        return float(counter.communicate()[0])


def write_beside(data):
    """Write 1 GiB with dd in the background."""
    file = data / "dd"
    subprocess.run(["dd", "if=/dev/zero", f"of={file}", "bs=1M", "count=1024",
                    "conv=fsync"], check=True, stderr=subprocess.DEVNULL)
    file.unlink()


def resident_mib(server, field="VmRSS"):
    """Return how much memory the process has, or had at most."""
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
        return int(re.search(rf"{field}:\s+(\d+)", file.read()).group(1)) / 1024


def forget_peak(server):
    """Let VmHWM begin anew."""
    with open(f"/proc/{server.process.pid}/clear_refs", "w",
              encoding="ascii") as file:
        file.write("5")


def longest_hold_ms(peer):
    """Return the longest time under a lock since CONFIG RESETSTAT, CPU time.

    INFO does not show what took less than 0.2 ms.
    """
    return max(int(peer.info("longest_lock_usec")), 200) / 1000


def walks(bench, server, data, large):
    """Save repeatedly under a scattered load; measure holds and latencies."""
    keys = LARGE[0][1] if large else 0
    holds, grown, steps = [], [], []

    say("  clients, ms: no save", "", note=pulse(bench, server, 1, keys))
    # Measure how writing as much affects clients on this machine.
    say("  clients, ms: no save, dd beside", "", note=pulse(
        bench, server, 1.5, keys, lambda: write_beside(data)))
    with Connection(server) as peer:
        for number in range(bench.pairs(4, 2)):
            peer.call("CONFIG", "RESETSTAT")
            forget_peak(server)
            before = resident_mib(server)
            seen = []
            steps.append(gap(1.5, lambda: seen.append(pulse(
                bench, server, 1.5, keys, lambda: peer.call("BGSAVE")))))
            peer.wait("rdb_bgsave_in_progress", "0")
            holds.append(longest_hold_ms(peer))
            grown.append(resident_mib(server, "VmHWM") - before)
            say(f"  clients, ms: save {number + 1}", "",
                note=f"{seen[0]}; {peer.info('last_save_holds')} holds, the "
                f"longest lock was of '{peer.info('longest_lock')}'")
    return all([
        say("  longest time under a lock in a save, ms", f"<= {max(holds):.2f}",
            f"<= {MARK_HOLD_MS:g}", max(holds) <= MARK_HOLD_MS,
            "CPU time; each save: " + " ".join(f"{ms:.2f}" for ms in holds)
            + "; a program that only counts, beside it: "
            + " ".join(f"{ms:.2f}" for ms in steps)),
        say("  more memory during a save, MiB", f"{max(grown):.0f}",
            f"<= {MARK_GROWN_MIB}", max(grown) <= MARK_GROWN_MIB)])


# ---- snapshots ---------------------------------------------------------------


def saves(bench, server, data, pairs, mark):
    """Compare the duration of SAVE for its client with dd and fsync."""
    snapshot = data / "bloomery.snapshot"
    ratios, save_ms, dd_ms = [], [], []

    def save():
        began = time.monotonic()
        with Connection(server) as peer:
            peer.call("SAVE")
        return (time.monotonic() - began) * 1000

    def copy():
        blocks = round(snapshot.stat().st_size / MIB)
        began = time.monotonic()
        subprocess.run(["dd", "if=/dev/zero", f"of={data / 'dd'}", "bs=1M",
                        f"count={blocks}", "conv=fsync"], check=True,
                       stderr=subprocess.DEVNULL)
        return (time.monotonic() - began) * 1000

    copy()  # so that both replace an old file
    for number in range(pairs):
        if number % 2 == 0:
            save_ms.append(save())
            dd_ms.append(copy())
        else:
            dd_ms.append(copy())
            save_ms.append(save())
        ratios.append(save_ms[-1] / dd_ms[-1])
    (data / "dd").unlink()
    text, median = spread(ratios)
    return say("  SAVE / dd conv=fsync", text, f"<= {mark:g}" if mark else "",
               median <= mark if mark else None,
               f"{statistics.median(save_ms):.0f} / "
               f"{statistics.median(dd_ms):.0f} ms, "
               f"{snapshot.stat().st_size / MIB:.0f} MiB")


def loads(bench, data, pairs, mark):
    """Compare loading with reading into fresh memory and hashing, cache warm."""
    snapshot = data / "bloomery.snapshot"
    reader = [bench.build / "bench" / "readhash", snapshot]
    ratios, load_ms, read_ms = [], [], []

    def load():
        with Durable(bench.build, data) as server, Connection(server) as peer:
            peer.wait("loading", "0")
            load_ms.append(float(peer.info("last_load_time_ms")))

    def read():
        read_ms.append(float(command(reader)[0]["ms"]))

    for number in range(pairs):
        for step in ((load, read) if number % 2 == 0 else (read, load)):
            # A virtual machine may have returned its free memory to its host. The
            # next program gets the memory that this one frees.
            command(reader)
            step()
        ratios.append(load_ms[-1] / read_ms[-1])
    text, median = spread(ratios)
    return say("  load / read and hash", text, f"<= {mark:g}" if mark else "",
               median <= mark if mark else None,
               f"{statistics.median(load_ms):.0f} / "
               f"{statistics.median(read_ms):.0f} ms")


def snapshots(bench, large):
    """Measure one kind of keyspace."""
    data = bench.folder / ("large" if large else "small")
    results = []
    print(f"snapshot of 1 GiB in "
          f"{'layers of 64 and 4 MiB' if large else 'small filters'}")
    with Durable(bench.build, data, threads=2) as server:
        (fill_large if large else fill_small)(bench, server)
        with Connection(server) as peer:
            used = int(peer.info("used_memory")) / MIB
            say("  memory used, MiB", f"{used:.0f}",
                note=f"{peer.call('DBSIZE')} keys")
        results.append(walks(bench, server, data, large))
        results.append(saves(bench, server, data, bench.pairs(5, 3)
                             if large else bench.pairs(3, 1),
                             MARK_SAVE_LARGE if large else MARK_SAVE_SMALL))
    results.append(loads(bench, data, bench.pairs(5, 3) if large
                         else bench.pairs(3, 1),
                         MARK_LOAD if large else None))
    (data / "bloomery.snapshot").unlink()
    return all(results)


# ---- adds during a save ------------------------------------------------------


def loop_ns(server):
    """Return the CPU time of loop 0, the process's first thread."""
    with open(f"/proc/{server.process.pid}/task/{server.process.pid}/schedstat",
              encoding="ascii") as file:
        return int(file.read().split()[0])


def read_adds(server, peer):
    """Return the time, the commands so far and the loop's ns so far."""
    commands = int(peer.info("total_commands_processed"))
    return time.monotonic(), commands, loop_ns(server)


def rate_and_cost(begin, end):
    """Return commands a second, and the loop's ns for each."""
    seconds, commands, used_ns = (after - before
                                  for before, after in zip(begin, end))
    return commands / seconds, used_ns / commands


def during_and_after(server, peer):
    """Save; return rate_and_cost of the save, and of as long a time after it."""
    begin = read_adds(server, peer)
    peer.call("BGSAVE")
    peer.wait("rdb_bgsave_in_progress", "0")
    saved = read_adds(server, peer)
    if peer.info("rdb_last_bgsave_status") != "ok":
        raise SystemExit("BGSAVE failed")
    while time.monotonic() - saved[0] < saved[0] - begin[0]:
        peer.wait("rdb_bgsave_in_progress", "0")  # asks as often as above
        time.sleep(0.01)
    return (rate_and_cost(begin, saved),
            rate_and_cost(saved, read_adds(server, peer)))


def add_and_save(bench, server, pairs):
    """Add new items without a pause, and save; return during_and_after of each
    save."""
    words = [*bench.load.words, "--port", server.port, "--command", "add",
             "--pipeline", 16, "--connections", CONNECTIONS, "--keys",
             LARGE[0][1], "--key", LARGE[0][0], "--range", 2**32 - 1,
             "--seed", 7, "--seconds", 600]
    with subprocess.Popen([str(word) for word in words],
                          stdout=subprocess.DEVNULL) as load:
        try:
            with Connection(server) as peer:
                time.sleep(bench.seconds(1))
                return [during_and_after(server, peer) for _ in range(pairs)]
        finally:
            load.kill()


def adds(bench):
    """Compare adds during saves with adds without one."""
    results = []
    print("BF.ADD of new items at random places of 1 GiB, pipeline 16, "
          f"{CONNECTIONS} connections, one loop; during a save / after it")
    for policy, marks in (("everysec", (MARK_RATE, MARK_LOOP)),
                          ("none", (None, None))):
        with Durable(bench.build, bench.folder / f"adds-{policy}", options=[
                *servers.LARGE_FILTERS, *journal_options(policy)]) as server:
            fill_large(bench, server)
            server.journaled()
            pairs = add_and_save(bench, server, bench.pairs(9, 1))
        what = "no journal" if policy == "none" else policy
        text, rate = spread([during[0] / after[0] for during, after in pairs])
        results.append(say(f"  adds a second, {what}", text,
                           f">= {marks[0]:g}" if marks[0] else "",
                           rate >= marks[0] if marks[0] else None))
        text, cost = spread([during[1] / after[1] for during, after in pairs])
        results.append(say(f"  CPU time of the loop per add, {what}", text,
                           f"<= {marks[1]:g}" if marks[1] else "",
                           cost <= marks[1] if marks[1] else None,
                           f"{pairs[-1][0][1]:.0f} / {pairs[-1][1][1]:.0f} ns"))
    return all(results)


# ---- the journal -------------------------------------------------------------


def journal_options(policy):
    """Return the server's options for a policy; 'none': no journal."""
    return [] if policy == "none" else ["--appendonly", "yes",
                                        "--appendfsync", policy]


def journal_pair(bench, plain, other, workload, number):
    """Return both CPU times a command, all items new to a new filter.

    The workload's own options go before those that are usual here."""
    words, requests, items = workload
    costs = {}
    for server in ((plain, other) if number % 2 == 0 else (other, plain)):
        with Connection(server) as peer:
            peer.call("FLUSHALL")
            peer.call("BF.RESERVE", "bench", "0.01", int(items * 1.1))
        costs[server] = float(bench.load.run(server, [
            "--pipeline", "16", "--connections", str(CONNECTIONS), "--depth",
            "1", "--sequential", "--range", str(items), "--requests",
            str(requests), *words])["server_cpu_ns"])
    return costs[plain], costs[other]


def journal(bench):
    """Compare the CPU time of all threads with a server without a journal."""
    adds = bench.scaled(400_000)
    workloads = {"BF.ADD": (["--command", "add"], adds, adds),
                 "BF.MADD of 100": (["--command", "madd"], adds // 100, adds)}
    plan = [("everysec", "BF.ADD", bench.pairs(21, 3)),
            ("no", "BF.ADD", bench.pairs(5, 1)),
            ("always", "BF.ADD", bench.pairs(5, 1)),
            ("everysec", "BF.MADD of 100", bench.pairs(5, 1))]
    results = []
    print(f"journal: CPU time per command, pipeline 16, {CONNECTIONS} "
          "connections, one loop, all items new; with / without")
    for policy, name, pairs in plan:
        running = [Durable(bench.build, bench.folder / word,
                           options=journal_options(word),
                           wrapper=bench.server_pin)
                   for word in ("none", policy)]
        costs = []
        with running[0], running[1]:
            running[1].journaled()
            for number in range(pairs):
                costs.append(journal_pair(bench, *running, workloads[name],
                                          number))
        text, median = spread([with_ns / without_ns
                               for without_ns, with_ns in costs])
        counts = policy == "everysec" and name == "BF.ADD"
        without_ns, with_ns = map(statistics.median, zip(*costs))
        results.append(say(
            f"  {name}, {policy}", text,
            f"< {MARK_JOURNAL:g}" if counts else "",
            median < MARK_JOURNAL if counts else None,
            f"{with_ns:.0f} / {without_ns:.0f} ns"))
    return all(results)


def group(bench):
    """Count acknowledged adds for each fsync of 5 ms."""
    sys.path.append(str(servers.ROOT / "tests"))
    os.environ["BLOOMERY_SERVER"] = str(bench.build / "bloomery-server")
    from lib import shim  # pylint: disable=import-outside-toplevel
    data = bench.folder / "group"
    slow = shim.Shim(str(bench.folder), data, skip_syncs=True)
    slow.arm(0, "delay", ["sync"], flags=shim.FOR_GOOD, delay_ms=SYNC_MS)
    wrapper = ["env"] + [f"{name}={value}"
                         for name, value in slow.env().items()]
    print(f"group commit: always, {CONNECTIONS} clients, no pipeline, an fsync "
          f"of {SYNC_MS} ms")
    with Durable(bench.build, data, options=journal_options("always"),
                 wrapper=wrapper) as server, Connection(server) as peer:
        server.journaled()
        peer.call("BF.RESERVE", "bench", "0.01", "1000000")
        before = int(peer.info("journal_syncs"))
        done = bench.load.run(server, [
            "--command", "add", "--pipeline", "1", "--depth", "1",
            "--connections", str(CONNECTIONS), "--sequential", "--range",
            "1000000", "--seconds", str(bench.seconds(3))])
        syncs = int(peer.info("journal_syncs")) - before
    slow.close()
    adds = int(done["ones"]) / max(syncs, 1)
    return say(f"  adds acknowledged per fsync of {SYNC_MS} ms, always", f"{adds:.1f}",
               f"> {MARK_ADDS_A_SYNC}", adds > MARK_ADDS_A_SYNC,
               f"{done['ones']} adds, {syncs} fsyncs, p50 "
               f"{float(done['p50_us']) / 1000:.1f} ms")


def latency(bench):
    """Measure BF.ADD without a pipeline, all items new, on this disk."""
    print("latency of BF.ADD, not pipelined, one loop")
    for connections in (1, CONNECTIONS):
        for policy in ("none", "everysec", "always"):
            with Durable(bench.build, bench.folder / f"latency-{policy}",
                         options=journal_options(policy),
                         wrapper=bench.server_pin) as server:
                server.journaled()
                server.call("FLUSHALL")
                server.call("BF.RESERVE", "bench", "0.01", "1000000")
                done = bench.load.run(server, [
                    "--command", "add", "--pipeline", "1", "--depth", "1",
                    "--connections", str(connections), "--sequential",
                    "--range", "1000000", "--seconds",
                    str(bench.seconds(2))])
            say(f"  BF.ADD, {connections} clients, {policy}: p50 p99 max, us",
                " ".join(f"{float(done[key]):.0f}"
                         for key in ("p50_us", "p99_us", "max_us")),
                note=f"{done['rps']} a second")
    return True


# ---- all of it ---------------------------------------------------------------

PARTS = {
    "large": lambda bench: snapshots(bench, True),
    "small": lambda bench: snapshots(bench, False),
    "adds": adds,
    "journal": journal,
    "group": group,
    "latency": latency,
}


class Bench:
    """The settings of all parts."""

    def __init__(self, args, folder):
        self.quick = args.quick
        self.build = args.build.resolve()
        self.folder = pathlib.Path(folder)
        self.server_pin, load_pin = compare.pins()
        self.load = servers.Load(self.build, wrapper=load_pin)

    def pairs(self, usual, quick):
        """Return how many pairs to measure."""
        return quick if self.quick else usual

    def scaled(self, number):
        """Return a number of requests."""
        return number // 10 if self.quick else number

    def seconds(self, usual):
        """Return how long to measure."""
        return usual / 5 if self.quick else usual


def parse_args(parts, text):
    """Return the command line."""
    parser = servers.arguments(text, "few and short: a smoke test, no figures")
    parser.add_argument("part", nargs="*", choices=[*parts, []],
                        help="only these")
    parser.add_argument("--dir", type=pathlib.Path, default=None,
                        help="where the data go (default: the build)")
    parser.add_argument("--check", action="store_true",
                        help="exit 1 if a mark is missed")
    return parser.parse_args()


def keep(path, text):
    """Write all printed figures as a table."""
    result = tables.table(
        pathlib.Path(sys.argv[0]).stem,
        text.rstrip(".").replace("Measure ", "").capitalize(),
        ["what", "measured", "asked", "met", "note"],
        [[what, figure, mark, "" if met is None else met, note]
         for what, figure, mark, met, note in FIGURES])
    result["marks"] = [tables.mark(what, mark, figure, met)
                       for what, figure, mark, met, _ in FIGURES
                       if met is not None]
    result["says"] = ANSWERS
    tables.save(path, [result])


def main(parts, text):
    """Measure the parts that the command line names."""
    args = parse_args(parts, text)
    servers.exit_on_sigterm()
    began = time.monotonic()
    print(compare.machine())
    with tempfile.TemporaryDirectory(
            prefix="bench-", dir=(args.dir or args.build).resolve()) as folder:
        bench = Bench(args, folder)
        met = [parts[name](bench) for name in args.part or parts]
    keep(args.json, text)
    print(f"{time.monotonic() - began:.0f} s")
    return 0 if all(met) or not args.check else 1


if __name__ == "__main__":
    sys.exit(main(PARTS, __doc__))
