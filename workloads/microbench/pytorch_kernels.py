#!/usr/bin/env python3
"""Times the kernels of training steps with PyTorch, on a GPU or CPU, for `epocast calibrate compute --from`.

    epocast calibrate compute --model resnet50 --batch 32,64 --kernel-list kernels.csv
    python3 pytorch_kernels.py kernels.csv -o my_gpu.csv
    epocast calibrate compute --from my_gpu.csv -o my_gpu.yaml

`epocast calibrate compute --kernels pytorch` does the three in one.

The list says the precision: fp32 (without TF32), tf32, fp16 or bf16. In 16 bits, images lie with their channels last,
norms scale in fp32, and updates are of fp32 weights. Before each timed run a buffer of twice the last caches is
overwritten, so that operands come from memory as in a step of a large network; on a GPU as often as needed for the
host to have issued the kernel when its turn comes. Each kernel is run until the median's
standard error is below 1 %, 10 to 100 times, fewer if --budget would not last for all kernels. On CPUs, time in which
other programs had the CPU is left out.
Kinds that are not timed (e3d_lstm, rearrange, attention with additive scores, lstm with feedback) are named on stderr.
"""

import argparse
import csv
import datetime
import glob
import os
import re
import signal
import statistics
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the folder of an installed epocast may belong to others
from pytorch_functions import Functions, dtype_of

# Kinds whose gradients PyTorch computes together: one measurement of the pass `backward`.
BOTH_GRADIENTS = {"batch_norm", "layer_norm", "lstm", "fused_attention"}
NOT_TIMED = {"e3d_lstm", "rearrange", "recurrence", "scores_attention", "experts"}
NUMBERS = """batch inputs channels height width depth input_values out_channels out_height out_width out_depth
kernel_height kernel_width kernel_depth stride dilation groups padding_height padding_width padding_depth neighbours heads steps
parameters""".split()
LEAST, MOST, ENOUGH = 10, 100, 0.01
REMEDY = "give more time, a smaller batch, or fewer models"


def fail(problem):
    sys.exit(f"pytorch_kernels.py: {problem}")


def read_kernels(path):
    """Rows of the list, numbers as numbers; gradients that are computed together appear once."""
    try:
        with open(0 if path == "-" else path, newline="") as file:
            table = list(csv.DictReader(file))
    except OSError as error:
        fail(f"{path}: {error.strerror}")
    needed = {"operator", "pass", "shape", "precision", "kind", "variant", *NUMBERS}
    if not table or not needed <= table[0].keys():
        fail(f"{path}: is no list of `epocast calibrate compute --kernel-list`")
    if len({row["precision"] for row in table}) > 1:
        fail(f"{path}: has kernels of several precisions; measure one list for each")
    rows, seen = [], {}
    for line, row in enumerate(table, 2):
        try:
            row.update({key: int(row[key]) for key in NUMBERS})
        except (TypeError, ValueError):
            fail(f"{path}:{line}: is cut off, or holds something else than whole numbers")
        both = row["kind"] in BOTH_GRADIENTS and row["pass"] != "forward"
        if both:
            row["pass"] = "backward"
        # Gradients that are computed together move different numbers of values where every access is counted.
        of_pass = both and row["operator"] == "memory"
        key = tuple(value for name, value in row.items() if not (of_pass and name == "shape"))
        if key not in seen:
            seen[key] = row
            row["shapes"] = [row["shape"]]
            rows.append(row)
        elif of_pass and row["shape"] not in seen[key]["shapes"]:
            seen[key]["shapes"].append(row["shape"])
    for row in rows:
        row["shape"] = joined(row.pop("shapes"))
    return rows


def precision_of(rows):
    return rows[0]["precision"] if rows else "fp32"


def joined(shapes):
    """Of both gradients in one: half of what each moves, since the pass `backward` counts its values twice."""
    if len(shapes) == 1:
        return shapes[0]
    values = sum(int(shape.split("values=")[1]) for shape in shapes)
    return shapes[0].split("values=")[0] + f"values={(values + 1) // 2}"


def is_timed(row):
    if row["kind"] == "lstm":  # what comes back from other layers would have to be between the steps
        return row["parameters"] <= 4 * row["out_channels"] * (row["channels"] + row["out_channels"] + 2)
    return row["kind"] not in NOT_TIMED and row["variant"] not in ("additive", "location")


def last_level_caches():
    """Bytes of all last-level caches of this machine's CPUs, as Linux tells; 0 if it does not."""
    caches = {}
    for folder in glob.glob("/sys/devices/system/cpu/cpu[0-9]*/cache/index[0-9]*"):
        try:
            level, size, sharers = (open(f"{folder}/{name}").read().strip()
                                    for name in ("level", "size", "shared_cpu_list"))
            caches[int(level), sharers] = int(size.removesuffix("K")) << 10
        except (OSError, ValueError):
            pass
    last = max((level for level, _ in caches), default=0)
    return sum(size for (level, _), size in caches.items() if level == last)


def delays():
    """How long each thread of this process has been ready to run while other programs had its CPU [s]."""
    out = {}
    for path in glob.glob("/proc/self/task/*/schedstat"):
        try:
            out[path] = 1e-9 * int(open(path).read().split()[1])
        except (OSError, ValueError, IndexError):
            pass
    return out


class Clock:
    """Wall-clock time; on a CPU less the longest that one of the threads waited while other programs had its CPU."""

    def __init__(self, torch, device):
        self.torch, self.cuda = torch, device == "cuda"
        self.flush = torch.zeros(max(256 << 20, 0 if self.cuda else 2 * last_level_caches()), dtype=torch.int8,
                                 device=device)
        self.flushes = 1

    def issue_in_time(self, function):
        """Empties caches for longer than the host needs to issue the function: else the GPU would wait for it."""
        if not self.cuda:
            return
        self.flushes = 1
        flush = min(self.once(lambda: self.flush.add_(1)) for _ in range(3))
        hosts = []
        for _ in range(3):
            self.torch.cuda.synchronize()
            begin = time.perf_counter()
            function()
            hosts.append(time.perf_counter() - begin)
        self.torch.cuda.synchronize()
        self.flushes = min(50, 1 + int(2 * max(hosts) / flush))

    def once(self, function):
        for _ in range(self.flushes):
            self.flush.add_(1)  # reads and writes; plain stores may go past the caches
        if not self.cuda:
            while True:
                before, begin = delays(), time.perf_counter()
                function()
                elapsed = time.perf_counter() - begin
                waited = max((delay - before[thread] for thread, delay in delays().items() if thread in before),
                             default=0.0)
                if waited < elapsed:  # or they waited while the clocks were read
                    return elapsed - waited
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        function()
        end.record()
        end.synchronize()
        return 1e-3 * begin.elapsed_time(end)

    def sample(self, function, until):
        """Times of repetitions, as many as are needed; at least two, also if that takes longer than `until`."""
        for _ in range(3):  # the first runs choose algorithms and take memory; where caches are large, emptying them is dear
            function()
            if time.monotonic() > until:
                break
        self.issue_in_time(function)
        times = []
        while len(times) < MOST:
            begin = time.monotonic()
            times.append(self.once(function))
            if len(times) >= LEAST and 0.93 * spread(times) / len(times) ** 0.5 <= ENOUGH:
                break
            if len(times) >= 2 and 2 * time.monotonic() - begin > until:
                break
        return times


def spread(times):
    low, middle, high = statistics.quantiles(times, n=4, method="inclusive")
    return (high - low) / middle


def rate_of(clock, function, amount, seconds):
    """The best of those runs that begin within `seconds`, at most ten."""
    end, best = time.monotonic() + seconds, clock.once(function)
    for _ in range(9):
        if time.monotonic() > end:
            break
        best = min(best, clock.once(function))
    return amount / best


def header(torch, device, clock, precision, arguments):
    name = torch.cuda.get_device_name() if device == "cuda" else arguments.name or "CPU"
    units = torch.cuda.get_device_properties(0).multi_processor_count if device == "cuda" else torch.get_num_threads()
    side = 8192 if device == "cuda" and precision != "fp32" else 4096 if device == "cuda" else 2048
    a, b = (torch.randn(side, side, device=device, dtype=dtype_of(torch, precision)) for _ in range(2))
    share = 0.02 * arguments.budget  # for each rate
    x, y = (torch.zeros(256 << 20, dtype=torch.int8, device=device) for _ in range(2))
    peak = arguments.peak_rate or f"{rate_of(clock, lambda: a @ b, 2 * side ** 3, share) / 1e9:.6g} GFLOP/s"
    bandwidth = arguments.memory_bandwidth or f"{rate_of(clock, lambda: x.copy_(y), 2 * (256 << 20), share) / 1e9:.6g} GB/s"
    library = f"PyTorch {torch.__version__}" + (f", cuDNN {torch.backends.cudnn.version()}" if device == "cuda" else "")
    return {"device": arguments.name or name, "source": "workloads/microbench/pytorch_kernels.py",
            "precision": precision,
            "library": library, "date": datetime.date.today().isoformat(), "threads": torch.get_num_threads(),
            "peak_rate": peak, "memory_bandwidth": bandwidth, "units": units,
            "note": "medians; caches flushed before each run; until the median is known to 1 % or the time is up"}


def print_to(file, head, rows):
    for key, value in head.items():
        file.write(f"# {key}: {value}\n")
    file.write("operator,pass,shape,repetition,time_s,repetitions,spread\n")
    known = {}
    for row, times in rows:
        key = (row["operator"], row["pass"], row["shape"])
        known[key] = known.get(key, 0) + 1
        file.write(",".join(key) + f",{known[key]},{statistics.median(times):.7g},{len(times)},{spread(times):.3g}\n")


def write(path, head, rows):
    """Writes the measurements; the file appears whole or not at all."""
    if path == "-":
        return print_to(sys.stdout, head, rows)
    folder = os.path.dirname(os.path.abspath(path))
    handle, part = tempfile.mkstemp(dir=folder, prefix="." + os.path.basename(path))
    try:
        with os.fdopen(handle, "w", newline="") as file:
            print_to(file, head, rows)
        os.chmod(part, 0o644)
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.unlink(part)
        raise


def show_progress(done, total, begin):
    if sys.stderr.isatty():
        left = (time.monotonic() - begin) * (total - done) / max(1, done)
        end = "\r\033[K" if done == total else ""
        print(f"\r\033[K{done} of {total} kernels, {left:.0f} s left{end}", end="", file=sys.stderr, flush=True)


def measure(rows, arguments):
    stop = time.monotonic() + arguments.budget
    # A kernel cannot be interrupted otherwise.
    signal.signal(signal.SIGALRM, lambda *_: fail(f"--budget: time is up before every kernel was timed; {REMEDY}"))
    signal.setitimer(signal.ITIMER_REAL, 1.03 * arguments.budget)
    try:
        import torch
    except ImportError:
        fail("PyTorch is not installed; --dry-run shows what would be timed")
    precision = precision_of(rows)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.benchmark = True
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    device = arguments.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cpu" and precision != "fp32":
        fail(f"{precision} is timed on GPUs only; write the list in fp32")
    clock, functions = Clock(torch, device), Functions(torch, device, precision)
    head, begin, out = header(torch, device, clock, precision, arguments), time.monotonic(), []
    for index, row in enumerate(rows):
        now = time.monotonic()
        if now > stop:
            fail(f"--budget: time is up, and {len(rows) - index} of {len(rows)} kernels have not been timed; {REMEDY}")
        # A kernel that needs less than its share leaves the rest to those after it.
        out.append((row, clock.sample(functions.of(row), now + (stop - now) / (len(rows) - index))))
        show_progress(index + 1, len(rows), begin)
    signal.setitimer(signal.ITIMER_REAL, 0)
    return head, out


def duration(text):
    """Seconds, from "90 s", "10min", "1 h"."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?) ?(s|min|h)", text)
    if not match or float(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no time; write as in '10min' or '90 s'")
    return float(match[1]) * {"s": 1, "min": 60, "h": 3600}[match[2]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", help="list written by `epocast calibrate compute --kernel-list`; - for stdin")
    parser.add_argument("-o", "--output", help="measurements (CSV); - for stdout")
    parser.add_argument("--device", choices=["cpu", "cuda"], help="default: cuda if there is one")
    parser.add_argument("--name", help="of the device, for the file")
    parser.add_argument("--threads", type=int, help="of a CPU")
    parser.add_argument("--budget", type=duration, default=600.0, help="how long it may take; default: 10min")
    parser.add_argument("--peak-rate",
                        help="peak in the list's precision, as in '15.7 TFLOP/s'; default: measured with a large product")
    parser.add_argument("--memory-bandwidth", help="as in '900 GB/s'; default: measured with a large copy")
    parser.add_argument("--dry-run", action="store_true", help="needs no PyTorch: give every kernel 1 s")
    arguments = parser.parse_args()
    if not arguments.output:
        fail("-o is missing: where to write the measurements")
    rows = read_kernels(arguments.kernels)
    left_out = sorted({row["kind"] for row in rows if not is_timed(row)})
    for kind in left_out:
        print(f"left out: {kind}: it has no kernel of its own in PyTorch", file=sys.stderr)
    rows = [row for row in rows if is_timed(row)]
    if arguments.dry_run:
        head = {"device": arguments.name or "none (dry run)", "source": "dry run", "library": "PyTorch",
                "precision": precision_of(rows), "peak_rate": "1 GFLOP/s", "memory_bandwidth": "1 GB/s", "units": 1}
        write(arguments.output, head, [(row, [1.0, 1.0]) for row in rows])
    else:
        write(arguments.output, *measure(rows, arguments))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
