"""Two CPU workers on this machine, over a link of a chosen rate: measured and forecast side by side.

`./epocast testbed` runs it. Two network namespaces are joined by a virtual Ethernet link whose ends are shaped by token
buckets; in each, one PyTorch process on a core of its own trains a small network with gloo. What the forecast knows is
measured alone: steps of one worker. Its other constants are those of the stack `gloo`.

Needs root, iproute2 (ip, tc), and PyTorch for the system's python3 (Debian: python3-torch); where one is missing, it says
so and exits with 0. It leaves nothing behind but the folder that --keep names.
"""
import argparse
import csv
import io
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RUNS = os.path.join(ROOT, "experiments", "reproduce", "measured_runs")
ADDRESS = "10.213.77.1"
EXCHANGES = {  # what the workers do -> the same in a study
    "ddp": "{name: data_parallel, bucket: 25 MB, first_bucket: 1 MB, update: after_all}",
    "fused": "{name: data_parallel, granularity: model, overlap: false}",
}


def skip(reason):
    print("testbed: skipped: " + reason)
    sys.exit(0)


# ---- a worker ----


def network(torch):
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 8 * 8, 512), nn.ReLU(), nn.Linear(512, 10))


def work(arguments):
    """Prints the median time of a step [s]."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    torch.manual_seed(1)
    rank, mode = arguments.rank, arguments.exchange
    model = network(torch)
    if mode != "alone":
        os.environ["GLOO_SOCKET_IFNAME"] = arguments.interface
        dist.init_process_group("gloo", init_method=f"tcp://{ADDRESS}:{arguments.port}", rank=rank, world_size=2)
    trained = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=25) if mode == "ddp" else model
    parameters = list(model.parameters())
    images = torch.randn(arguments.batch, 3, 32, 32)
    labels = torch.randint(0, 10, (arguments.batch,))

    def step():
        for parameter in parameters:
            parameter.grad = None
        torch.nn.functional.cross_entropy(trained(images), labels).backward()
        if mode == "fused":
            flat = torch.cat([parameter.grad.flatten() for parameter in parameters])
            dist.all_reduce(flat)
            flat /= 2
            at = 0
            for parameter in parameters:
                parameter.grad.copy_(flat[at:at + parameter.numel()].view_as(parameter))
                at += parameter.numel()
        with torch.no_grad():
            for parameter in parameters:
                parameter.sub_(parameter.grad, alpha=0.01)

    times = []
    for turn in range(arguments.steps + 3):
        start = time.perf_counter()
        step()
        if turn >= 3:
            times.append(time.perf_counter() - start)
    print(statistics.median(times))


# ---- the testbed ----


class Link:
    """Two namespaces and the shaped link between them."""

    def __init__(self, rate):
        self.spaces = [f"epocast{os.getpid()}{side}" for side in "ab"]
        self.ends = [f"ep{os.getpid()}{side}" for side in "ab"]
        try:
            for space in self.spaces:
                run("ip", "netns", "add", space)
            run("ip", "link", "add", self.ends[0], "netns", self.spaces[0], "type", "veth", "peer", "name", self.ends[1],
                "netns", self.spaces[1])
            for side, (space, end) in enumerate(zip(self.spaces, self.ends)):
                run("ip", "-n", space, "addr", "add", f"{ADDRESS[:-1]}{side + 1}/24", "dev", end)
                run("ip", "-n", space, "link", "set", "lo", "up")
                # Segments as large as the bucket would pass at the wire's speed.
                run("ip", "-n", space, "link", "set", end, "gso_max_size", "16000", "up")
                depth = max(20000, int(rate * 1e6 / 8 * 0.5e-3))
                run("ip", "netns", "exec", space, "tc", "qdisc", "add", "dev", end, "root", "tbf", "rate", f"{rate}mbit",
                    "burst", str(depth), "limit", "4mb")
        except BaseException:
            self.close()
            raise

    def close(self):
        for space in self.spaces:
            subprocess.run(["ip", "netns", "del", space], stderr=subprocess.DEVNULL, check=False)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(" ".join(command) + ": " + done.stderr.strip())


def start_worker(rank, batch, exchange, arguments, link=None, port=0):
    cores = sorted(os.sched_getaffinity(0))
    command = [sys.executable, os.path.abspath(__file__), "--rank", str(rank), "--batch", str(batch), "--exchange",
               exchange, "--steps", str(arguments.steps), "--port", str(port)]
    if link:
        command = ["ip", "netns", "exec", link.spaces[rank]] + command + ["--interface", link.ends[rank]]
    def pin():
        """One thread each, on a core of its own."""
        os.sched_setaffinity(0, {cores[rank % len(cores)]})

    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=pin,
                            env=dict(os.environ, OMP_NUM_THREADS="1"))


def median_step(workers):
    """Of the slower worker [s]; ends all if one fails."""
    try:
        answers = [worker.communicate(timeout=300) for worker in workers]
    finally:
        for worker in workers:
            if worker.poll() is None:
                worker.kill()
                worker.wait()
    for worker, (_, error) in zip(workers, answers):
        if worker.returncode != 0:
            raise RuntimeError("a worker failed: " + (error.strip().splitlines() or ["no message"])[-1])
    return max(float(answer) for answer, _ in answers)


def check():
    if os.geteuid() != 0:
        skip("network namespaces need root; run it as root")
    for tool in ("ip", "tc"):
        if not shutil.which(tool):
            skip(f"{tool} is missing; install iproute2")
    if len(os.sched_getaffinity(0)) < 2:
        skip("two workers need two cores")
    if subprocess.run([sys.executable, "-c", "import torch.distributed as d; assert d.is_gloo_available()"],
                      capture_output=True).returncode != 0:
        skip(f"{sys.executable} has no PyTorch with gloo; install python3-torch")
    try:
        Link(100).close()
    except RuntimeError as error:
        skip(f"no network namespaces here ({error})")


def write(folder, alone, rows):
    steps = ", ".join(f"{{batch: {batch}, time: {seconds:.6f} s}}" for batch, seconds in alone.items())
    with open(os.path.join(folder, "study.yaml"), "w") as out:
        out.write(f"""study: testbed
platform: two_cpu_workers
workers: 2
model: {RUNS}/cnn6.yaml
dataset: {{samples: 1000000}}
batch: {{per_worker: {next(iter(alone))}}}
compute:
  cost_model: measured
  timings: {RUNS}/cnn6.csv
  step_time: [{steps}]
optimizer: {{name: sgd, fused: false}}
network: {{efficiency: 0.956}}   # 1448 B of payload in each frame of 1514 B
collective: {{algorithm: ring}}
stack: gloo
""")
    with open(os.path.join(folder, "target.yaml"), "w") as out:
        out.write("""target: testbed/two_workers
description: two workers of this machine over a shaped link, measured just now
study: study.yaml
runs: runs.csv
groups: [exchange, link]
intervals: true
""")
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["series", "role", "exchange", "link", "platform", "batch.per_worker", "strategy", "iteration_s"])
    for exchange, rate, batch, seconds in rows:
        platform = f"{{name: two_cpu_workers, cards: {{rate: {rate} Mb/s, latency: 60 us}}}}"
        table.writerow([exchange, "run", exchange, f"{rate} Mb/s", platform, batch, EXCHANGES[exchange], f"{seconds:.6f}"])
    with open(os.path.join(folder, "runs.csv"), "w") as out:
        out.write("# source: measured by `epocast testbed` on this machine\n" + text.getvalue())


def measure(arguments):
    check()
    if os.getloadavg()[0] > 1:
        print(f"testbed: this machine is busy (load {os.getloadavg()[0]:.1f}): runs take longer than they would alone",
              file=sys.stderr)
    numbers = lambda text: [int(part) for part in text.split(",")]
    folder = arguments.keep or tempfile.mkdtemp(prefix="epocast-testbed-")
    os.makedirs(folder, exist_ok=True)
    try:
        # Both at once, without exchange: cores share caches and memory.
        alone = {batch: median_step([start_worker(rank, batch, "alone", arguments) for rank in (0, 1)])
                 for batch in numbers(arguments.batches)}
        rows, port = [], 29500
        for rate in numbers(arguments.rates):
            link = Link(rate)
            try:
                for batch in alone:
                    for exchange in EXCHANGES:
                        port += 1
                        print(f"testbed: {exchange}, {rate} Mb/s, batch {batch}", file=sys.stderr)
                        workers = [start_worker(rank, batch, exchange, arguments, link, port) for rank in (0, 1)]
                        rows.append((exchange, rate, batch, median_step(workers)))
            finally:
                link.close()
        write(folder, alone, rows)
        return subprocess.run([arguments.program, "reproduce", os.path.join(folder, "target.yaml")]).returncode
    finally:
        if not arguments.keep:
            shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(prog="epocast testbed", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", default="200,1000", help="of the link in Mb/s; default: 200,1000")
    parser.add_argument("--batches", default="8,32", help="per worker; default: 8,32")
    parser.add_argument("--steps", type=int, default=20, help="timed in each run; default: 20")
    parser.add_argument("--keep", help="a folder for what was measured: study.yaml, runs.csv, target.yaml")
    for hidden in ("--program", "--exchange", "--interface"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    for hidden in ("--rank", "--batch", "--port"):
        parser.add_argument(hidden, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.exchange:
        work(arguments)
        return 0
    try:
        return measure(arguments)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"testbed: {error}", file=sys.stderr)
        return 3


sys.exit(main())
