#!/usr/bin/env python3
"""The cost of a step with several ranks: measured between two network namespaces, predicted by a model, tabulated for Ethernet.

    distributed_cost.py PROGRAM [--units 200] [--rates 1000 2500] [--delay 0] [--rounds 3] [--steps 15] [--mpirun mpirun]

PROGRAM is benchmarks/distributed/ranks_step. Requires root and iproute2: two namespaces are joined by a pair of virtual
interfaces, and a rank runs in each. `--rates` in Mbit/s and `--delay` in milliseconds one way shape both ends, by netem where
the kernel has it; otherwise the rate by tbf, and the delay by a thread of this program that forwards packets between the ends
(DelayLine; requires /dev/net/tun). The model of a step of n ranks that share the columns of a batch, one shard each, for a
gradient of M bytes:

    t(n) = P + A + 2 (latency + (n - 1) / n M / bandwidth)

P, the computation of a rank, and A, its processing of received numbers, are measured on the unshaped link, latency and
bandwidth of each link with messages; the times on shaped links are predicted and then measured. The last table is for P and A
of this machine, the latency and 94 % of the rate of 10 Gbit/s Ethernet, and the same number of columns per rank throughout.
"""
import argparse
import collections
import fcntl
import os
import pathlib
import select
import shlex
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
from inputs import at_least, require_programs  # noqa: E402

HOSTS, ADDRESSES, NET = ("isogloss-a", "isogloss-b"), ("10.77.0.1", "10.77.0.2"), "10.77.0.0/24"
COLUMNS = 20


def ip(*words, check=True):
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if check and done.returncode != 0:
        sys.exit(f"distributed_cost.py: ip {' '.join(words)}: {done.stderr.strip()}")
    return done


class DelayLine(threading.Thread):
    """Interfaces end0 and end1, each in its namespace: what one sends the other receives `delay` seconds later."""

    def __init__(self):
        super().__init__(daemon=True)
        self.delay, self.over = 0.0, False
        self.ends = []
        set_interface, tun, without_header = 0x400454CA, 0x0001, 0x1000  # TUNSETIFF, IFF_TUN, IFF_NO_PI of linux/if_tun.h
        for k, host in enumerate(HOSTS):
            end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(end, set_interface, struct.pack("16sH22x", f"end{k}".encode(), tun | without_header))
            ip("link", "set", f"end{k}", "mtu", "65535", "netns", host)
            self.ends.append(end)

    def run(self):
        waiting = [collections.deque(), collections.deque()]  # for each end: (time, packet)
        while not self.over:
            now = time.monotonic()
            for end, packets in zip(self.ends, waiting):
                while packets and packets[0][0] <= now:
                    os.write(end, packets.popleft()[1])
            due = min((packets[0][0] for packets in waiting if packets), default=now + 0.1)
            ready, _, _ = select.select(self.ends, [], [], max(0, due - time.monotonic()))
            for end in ready:
                other = waiting[1 - self.ends.index(end)]
                try:
                    while True:
                        packet = os.read(end, 65536)
                        other.append((time.monotonic() + self.delay, packet))
                except BlockingIOError:
                    pass

    def close(self):
        self.over = True
        if self.is_alive():
            self.join()
        for end in self.ends:
            os.close(end)


class Link:
    """Two namespaces and the link between them, for the lifetime of the object."""

    def __init__(self, folder, mpirun, delayed):
        self.mpirun = mpirun
        self.refused = set()
        self.delayed = delayed
        self.line = None
        self.added = []
        self.agent = os.path.join(folder, "agent")
        with open(self.agent, "w") as f:  # with which mpirun starts the other host
            f.write(f'#!/bin/sh\nshift\nexec ip netns exec {HOSTS[1]} unshare --uts sh -c "hostname {HOSTS[1]}; exec $*"\n')
        os.chmod(self.agent, 0o755)

    def __enter__(self):
        try:
            self.connect()
        except BaseException:
            self.__exit__()
            raise
        return self

    def connect(self):
        for host in HOSTS:
            ip("netns", "add", host)
            self.added.append(host)
        if self.delayed and not self.has_netem():
            self.line = DelayLine()
        else:
            ip("-n", HOSTS[0], "link", "add", "end0", "type", "veth", "peer", "name", "end1", "netns", HOSTS[1])
        for k, host in enumerate(HOSTS):
            ip("-n", host, "addr", "add", f"{ADDRESSES[k]}/24", "dev", f"end{k}")
            for device in ("lo", f"end{k}"):
                ip("-n", host, "link", "set", device, "up")
        if self.line:
            self.line.start()

    def __exit__(self, *_):
        if self.line:
            self.line.close()
        for host in self.added:  # not one that another run has added
            ip("netns", "del", host, check=False)

    def has_netem(self):
        lo = ["dev", "lo", "root", "netem", "delay", "1ms"]
        done = subprocess.run(["ip", "netns", "exec", HOSTS[0], "tc", "qdisc", "add", *lo], capture_output=True, text=True)
        if done.returncode != 0:
            self.refused.add(f"tc … netem: {done.stderr.strip()}")
            return False
        subprocess.run(["ip", "netns", "exec", HOSTS[0], "tc", "qdisc", "del", *lo[:3]], check=True)
        return True

    def shape(self, rate, delay):
        """Shapes the link; returns a description. A rate of 0: neither rate limit nor delay."""
        if self.line:
            self.line.delay = delay / 1000 if rate else 0.0
        for k, host in enumerate(HOSTS):
            subprocess.run(["ip", "netns", "exec", host, "tc", "qdisc", "del", "dev", f"end{k}", "root"], capture_output=True)
            if rate == 0:
                continue
            base = ["ip", "netns", "exec", host, "tc", "qdisc", "add", "dev", f"end{k}", "root"]
            how = ["netem", "delay", f"{delay}ms", "rate", f"{rate}mbit", "limit", "100000"]
            done = None if self.line else subprocess.run(base + how, capture_output=True, text=True)
            if not done or done.returncode != 0:
                if done:
                    self.refused.add(f"tc … {' '.join(how[:3])}: {done.stderr.strip()}")
                how = ["tbf", "rate", f"{rate}mbit", "burst", "256kb", "latency", "500ms"]
                done = subprocess.run(base + how, capture_output=True, text=True)
                if done.returncode != 0:
                    sys.exit(f"distributed_cost.py: tc {' '.join(how)}: {done.stderr.strip()}")
        return "as it is" if rate == 0 else f"{rate} Mbit/s" + (f", {delay} ms" if delay else "")

    def run(self, *arguments, both=True):
        """The lines of numbers printed by the program, run on both hosts or on one."""
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1",
                       "OMPI_MCA_hwloc_base_binding_policy": "none"}
        hosts = ",".join(f"{a}:1" for a in ADDRESSES[:2 if both else 1])
        command = [self.mpirun, "--host", hosts, "-n", "2" if both else "1", "--mca", "plm_rsh_agent", self.agent, "--mca",
                   "oob_tcp_if_include", NET, "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include",
                   NET, *map(str, arguments)]
        script = f"hostname {HOSTS[0]}; exec {shlex.join(command)}"
        done = subprocess.run(["ip", "netns", "exec", HOSTS[0], "unshare", "--uts", "sh", "-c", script], capture_output=True,
                              text=True, env=environment)
        if done.returncode != 0:
            sys.exit(f"distributed_cost.py: {shlex.join(command)} ended with status {done.returncode}:\n{done.stderr}")
        return [[float(word) for word in line.split()] for line in done.stdout.splitlines() if line.strip()]


def latency_and_bandwidth(link, program):
    lines = link.run(program, "link")
    return lines[0][1], lines[-1][0] / lines[-1][1]


def median_step(link, o, units):
    """Seconds of a step, seconds of it that are waiting and sending, bytes of the gradient."""
    rounds = [link.run(o.program, "step", units, COLUMNS, 2, 1, o.steps)[0] for _ in range(o.rounds)]
    return [statistics.median(column) for column in zip(*rounds)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("--units", type=at_least(1), nargs="+", default=[200])
    parser.add_argument("--rates", type=at_least(1), nargs="+", default=[1000, 2500])
    parser.add_argument("--delay", type=float, default=0)
    parser.add_argument("--rounds", type=at_least(1), default=3)
    parser.add_argument("--steps", type=at_least(2), default=15)
    parser.add_argument("--ethernet-latency", type=float, default=50e-6, help="seconds, of the last table")
    parser.add_argument("--mpirun", default="mpirun")
    o = parser.parse_args()
    require_programs(o.program, *(shutil.which(name) or name for name in ("ip", "tc", "unshare", o.mpirun)))
    own = {}
    with tempfile.TemporaryDirectory() as folder, Link(folder, o.mpirun, o.delay > 0) as link:
        for rate in [0, *o.rates]:
            name = link.shape(rate, o.delay)
            latency, bandwidth = latency_and_bandwidth(link, o.program)
            print(f"link {name}: {1e6 * latency:.0f} us, {bandwidth / 1e6:.0f} MB/s each way at the same time", flush=True)
            for units in o.units:
                whole, waited, size = median_step(link, o, units)
                travel = 2 * (latency + size / 2 / bandwidth)
                if rate == 0:
                    own[units] = (whole - waited, max(0, waited - travel), size)
                P, A, _ = own[units]
                predicted = P + A + travel
                print(f"    2 x {units}: predicted {1e3 * predicted:.1f} ms, measured {1e3 * whole:.1f} ms "
                      f"({100 * (predicted / whole - 1):+.0f} %), of it waiting and sending {1e3 * waited:.1f} ms", flush=True)
        for error in sorted(link.refused):
            print(f"refused by this kernel: {error}")
    latency, bandwidth = o.ethernet_latency, 0.94 * 10e9 / 8
    print(f"\n10 Gbit/s Ethernet, {1e6 * latency:.0f} us, {bandwidth / 1e6:.0f} MB/s, {COLUMNS // 2} columns a rank:")
    print("model      gradient      P      A   " + "".join(f"{n:>5} ranks     " for n in (2, 4, 8, 16, 32, 64)))
    for units, (P, A, size) in own.items():
        cells = []
        for n in (2, 4, 8, 16, 32, 64):
            # In the reduction a rank adds n terms over 1/n of the array: the same work for any n.
            t = P + A + 2 * (latency + (n - 1) / n * size / bandwidth)
            cells.append(f"{1e3 * t:7.1f} ms {P / t:4.2f}")
        print(f"2 x {units:<6} {size / 1e6:5.1f} MB {1e3 * P:6.1f} {1e3 * A:6.1f}   " + "  ".join(cells))


if __name__ == "__main__":
    main()
