#!/usr/bin/env python3
"""Times the kernels of training steps with PyTorch, on a GPU or CPU, for `epocast calibrate compute --from`.

    epocast calibrate compute --model resnet50 --batch 32,64 --kernel-list kernels.csv
    python3 pytorch_kernels.py kernels.csv -o my_gpu.csv
    epocast calibrate compute --from my_gpu.csv -o my_gpu.yaml

`epocast calibrate compute --kernels pytorch` does the three in one.

The list says the precision: fp32 (without TF32), tf32, fp16 or bf16. In 16 bits, images lie with their channels last,
norms scale in fp32, and updates are of fp32 weights. Before each timed run a buffer of twice the last caches is
overwritten, so that operands come from memory as in a step of a large network. Each kernel is run until the median's
standard error is below 1 %, 10 to 100 times, fewer if --budget would not last for all kernels. On CPUs, time in which
other programs had the CPU is left out.
Kinds that are not timed (e3d_lstm, rearrange, attention with additive scores, lstm with feedback) are named on stderr.
"""

import argparse
import csv
import datetime
import glob
import inspect
import os
import re
import signal
import statistics
import sys
import tempfile
import time

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


class Maker:
    """Makes, for a row, the function to time."""

    def __init__(self, torch, device, precision):
        self.torch, self.device = torch, device
        self.dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(precision, torch.float32)
        self.narrow = self.dtype != torch.float32
        self.in_parts = precision != "fp32"  # layers are several kernels each
        torch.manual_seed(1)

    def tensor(self, *shape, gradient=True, dtype=None):
        out = self.torch.randn(*shape, device=self.device, dtype=dtype or self.dtype)
        if self.narrow and len(shape) == 4:
            out = out.contiguous(memory_format=self.torch.channels_last)
        return out.requires_grad_(gradient)

    def scale(self, *shape):
        """Parameters of norms, which stay in fp32."""
        return self.tensor(*shape, dtype=self.torch.float32)

    def function(self, row):
        kind = row["kind"]
        if kind == "gradient_sum":
            values = row["batch"] * row["out_channels"] * row["out_height"] * row["out_width"] * row["out_depth"]
            parts = [self.tensor(values, gradient=False) for _ in range(row["inputs"])]
            return lambda: sum(parts[1:], start=parts[0])
        if kind == "update":
            return self.update(row)
        if kind == "product":
            return self.product_of(row)
        if kind == "bias":
            return self.bias(row)
        if self.in_parts and kind == "softmax":
            kind = "loss"
        if row["variant"] in ("rms", "rotary"):
            kind = {"rms": "rms_norm"}.get(row["variant"], row["variant"])
        forward, wanted_data, wanted_weights = getattr(self, kind)(row)
        if row["pass"] == "forward":
            return forward
        out = forward()
        gradient = self.torch.randn_like(out)
        wanted = {"backward_data": wanted_data, "backward_weights": wanted_weights}.get(
            row["pass"], wanted_data + wanted_weights)
        return lambda: self.torch.autograd.grad(out, wanted, gradient, retain_graph=True)

    def update(self, row):
        torch = self.torch
        parameter = torch.nn.Parameter(self.tensor(row["parameters"], gradient=False, dtype=torch.float32))
        parameter.grad = self.tensor(row["parameters"], gradient=False, dtype=torch.float32)
        name = row["shape"].split()[0].removeprefix("op=update_")
        kind, options = {"sgd": (torch.optim.SGD, {}), "momentum": (torch.optim.SGD, {"momentum": 0.9}),
                         "adam": (torch.optim.Adam, {})}[name]
        if self.device == "cuda" and "fused" in inspect.signature(kind).parameters:
            options["fused"] = True
        return kind([parameter], lr=1e-6, **options).step

    def image(self, row):
        """The input, with the depth first if there is one."""
        deep = [row["depth"]] if row["depth"] > 1 else []
        return self.tensor(row["batch"], row["channels"], *deep, row["height"], row["width"])

    def window(self, row):
        """Directions that a window slides in: size, stride, padding before and after."""
        names = (["depth"] if row["depth"] > 1 else []) + ["height", "width"]
        out = []
        for name in names:
            slices = name == "depth" and row["kernel_depth"] == 1 and row["out_depth"] == row["depth"]
            stride = 1 if slices else row["stride"]
            size, before = row[f"kernel_{name}"], row[f"padding_{name}"]
            extent = row["dilation"] * (size - 1) + 1
            after = max(0, (row[f"out_{name}"] - 1) * stride + extent - row[name] - before)
            out.append((size, stride, before, after))
        return out

    def padded(self, x, window):
        pads = [side for _, _, before, after in reversed(window) for side in (before, after)]
        return self.torch.nn.functional.pad(x, pads).detach().requires_grad_() if any(pads) else x

    def convolution(self, row):
        functional, window = self.torch.nn.functional, self.window(row)
        x = self.image(row)
        if row["variant"] == "transposed":
            return self.transposed_convolution(row, x, window)
        padding = tuple(before for _, _, before, _ in window)
        if any(after > before for _, _, before, after in window):  # uneven, as `same` may be
            x, padding = self.padded(x, window), (0,) * len(window)
        weight = self.tensor(row["out_channels"], row["channels"] // row["groups"], *(w[0] for w in window))
        convolve = functional.conv3d if len(window) == 3 else functional.conv2d
        stride = tuple(w[1] for w in window)
        return (lambda: convolve(x, weight, None, stride, padding, row["dilation"], row["groups"])), [x], [weight]

    def transposed_convolution(self, row, x, window):
        functional, names = self.torch.nn.functional, ["depth", "height", "width"][-len(window):]
        size, stride, padding = (tuple(w[i] for w in window) for i in range(3))
        # Rows behind the output, by the size that it has and that it would have without them.
        behind = tuple(row[f"out_{n}"] - (row[n] - 1) * w[1] + 2 * w[2] - row["dilation"] * (w[0] - 1) - 1
                       for n, w in zip(names, window))
        weight = self.tensor(row["channels"], row["out_channels"] // row["groups"], *size)
        spread = functional.conv_transpose3d if len(window) == 3 else functional.conv_transpose2d
        return (lambda: spread(x, weight, None, stride, padding, behind, row["groups"], row["dilation"])), [x], [weight]

    def product(self, rows, inputs, outputs):
        x, weight = self.tensor(rows, inputs), self.tensor(outputs, inputs)
        return (lambda: self.torch.nn.functional.linear(x, weight)), [x], [weight]

    def product_of(self, row):
        """C (m x n) = A (m x k) B (k x n) column by column, as the shape says: row by row its transpose."""
        size = {key: int(value) for key, value in (word.split("=") for word in row["shape"].split())}
        m, n, k, count = size["m"], size["n"], size["k"], size.get("count", 1)
        side = [] if count == 1 else [count]
        a = self.tensor(*side, m, k, gradient=False).transpose(-1, -2) if size["ta"] else \
            self.tensor(*side, k, m, gradient=False)
        b = self.tensor(*side, k, n, gradient=False).transpose(-1, -2) if size["tb"] else \
            self.tensor(*side, n, k, gradient=False)
        return lambda: b @ a

    def fused_attention(self, row):
        size = {key: int(value) for key, value in (word.split("=") for word in row["shape"].split())}
        functional = self.torch.nn.functional

        def part(heads, length, features):
            rows = self.torch.randn(size["batch"], length, heads, features, device=self.device, dtype=self.dtype)
            return rows.transpose(1, 2).requires_grad_()

        query = part(size["heads"], size["queries"], size["key_features"])
        key = part(size["kv_heads"], size["keys"], size["key_features"])
        value = part(size["kv_heads"], size["keys"], size["value_features"])
        shared = size["kv_heads"] != size["heads"]
        return (lambda: functional.scaled_dot_product_attention(
            query, key, value, is_causal=size["causal"] == 1, enable_gqa=shared)), [query, key, value], []

    def rms_norm(self, row):
        x, scale = self.sequence(row), self.tensor(row["channels"])
        norm = getattr(self.torch.nn.functional, "rms_norm", None)  # since PyTorch 2.4
        if norm:
            return (lambda: norm(x, (row["channels"],), scale)), [x], [scale]
        return (lambda: x * self.torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * scale), [x], [scale]

    def rotary(self, row):
        """As models of Hugging Face's transformers do: x cos + rotate_half(x) sin."""
        torch, features = self.torch, row["channels"] // max(1, row["heads"])
        turned = self.sequence(row)
        cos, sin = (self.tensor(row["width"], features // 2, gradient=False).repeat(1, 2) for _ in range(2))

        def turn():
            x = turned.view(row["batch"], row["width"], -1, features).transpose(1, 2)
            half = torch.cat((-x[..., features // 2:], x[..., :features // 2]), -1)
            return x * cos + half * sin

        return turn, [turned], []

    def bias(self, row):
        """The gradient of a bias: the sum over all positions."""
        gradient = self.tensor(row["batch"] * row["out_width"] * row["out_height"] * row["out_depth"],
                               row["out_channels"], gradient=False)
        return lambda: gradient.sum(0)

    def loss(self, row):
        """Cross-entropy in fp32 of logits."""
        torch, positions = self.torch, row["batch"] * row["width"] * row["height"]
        x = self.tensor(positions, row["channels"])
        wanted = torch.randint(row["channels"], (positions,), device=self.device)
        return (lambda: torch.nn.functional.cross_entropy(x.float(), wanted)), [x], []

    def scores_softmax(self, row):
        values = int(row["shape"].split("values=")[1]) // (2 if row["pass"] == "forward" else 3)
        x = self.tensor(max(1, values // row["width"]), row["width"])
        return (lambda: self.torch.softmax(x, 1)), [x], []

    def scores_dropout(self, row):
        x = self.tensor(int(int(row["shape"].split("values=")[1]) / (2 + 8 / self.torch.finfo(self.dtype).bits)))
        return (lambda: self.torch.nn.functional.dropout(x, 0.1)), [x], []

    def fully_connected(self, row):
        return self.product(row["batch"], row["input_values"], row["out_channels"])

    def linear(self, row):
        return self.product(row["batch"] * row["width"] * row["height"] * row["depth"], row["channels"],
                            row["out_channels"])

    def pooling(self, row):
        functional, window = self.torch.nn.functional, self.window(row)
        x = self.padded(self.image(row), window)
        name = ("max" if row["variant"] == "max" else "avg") + f"_pool{len(window)}d"
        size, stride = tuple(w[0] for w in window), tuple(w[1] for w in window)
        return (lambda: getattr(functional, name)(x, size, stride)), [x], []

    def batch_norm(self, row):
        if row["variant"] == "frozen":
            x, fixed = self.image(row), self.tensor(row["channels"], *[1] * (3 if row["depth"] > 1 else 2), gradient=False)
            return (lambda: x * fixed + fixed), [x], []
        x, scale, shift = self.image(row), self.scale(row["channels"]), self.scale(row["channels"])
        norm = self.torch.nn.functional.batch_norm
        return (lambda: norm(x, None, None, scale, shift, training=True)), [x], [scale, shift]

    def sequence(self, row):
        return self.tensor(row["batch"], row["width"] * row["height"] * row["depth"], row["channels"])

    def layer_norm(self, row):
        x, scale, shift = self.sequence(row), self.tensor(row["channels"]), self.tensor(row["channels"])
        norm = self.torch.nn.functional.layer_norm
        return (lambda: norm(x, (row["channels"],), scale, shift)), [x], [scale, shift]

    def local_response_norm(self, row):
        x = self.image(row)
        return (lambda: self.torch.nn.functional.local_response_norm(x, row["neighbours"])), [x], []

    def activation(self, row):
        x = self.image(row)
        if row["variant"] == "gated_tanh":
            value, gate = x.chunk(2, dim=1)
            return (lambda: self.torch.tanh(value) * self.torch.sigmoid(gate)), [x], []
        if row["variant"] == "swiglu":
            gate, value = self.sequence(row).chunk(2, dim=-1)
            gate, value = gate.detach().requires_grad_(), value.detach().requires_grad_()
            return (lambda: self.torch.nn.functional.silu(gate) * value), [gate, value], []
        functional = self.torch.nn.functional
        named = {"gelu": functional.gelu, "silu": functional.silu, "leaky_relu": functional.leaky_relu}
        function = named.get(row["variant"]) or getattr(self.torch, row["variant"])
        return (lambda: function(x)), [x], []

    def softmax(self, row):
        x = self.image(row)
        return (lambda: self.torch.softmax(x, 1)), [x], []

    def dropout(self, row):
        x = self.image(row)
        return (lambda: self.torch.nn.functional.dropout(x)), [x], []

    def parts(self, row):
        share = row["input_values"] // row["inputs"] * row["batch"]
        return [self.tensor(share) for _ in range(row["inputs"])]

    def add(self, row):
        parts = self.parts(row)
        return (lambda: sum(parts[1:], start=parts[0])), parts, []

    def concat(self, row):
        values = row["input_values"] // row["inputs"]
        parts = [self.tensor(row["batch"], values) for _ in range(row["inputs"])]
        return (lambda: self.torch.cat(parts, 1)), parts, []

    def multiply(self, row):
        parts = self.parts(row)
        return (lambda: parts[0] * parts[1]), parts[:2], []

    def embedding(self, row):
        torch, units = self.torch, row["out_channels"]
        table = self.tensor(row["parameters"] // units, units)
        if row["variant"] == "position":
            x = self.sequence(row)
            return (lambda: x + table[:x.shape[1]]), [x], [table]
        tokens = torch.randint(table.shape[0], (row["batch"], row["out_width"]), device=self.device)
        return (lambda: torch.nn.functional.embedding(tokens, table)), [], [table]

    def attention(self, row):
        # One stacked input of query, key and value; with three inputs, `channels` are those of the query.
        stacked = 3 if row["inputs"] == 1 else 1
        heads, features = row["heads"], row["channels"] // stacked // row["heads"]
        shape = (row["batch"], heads, row["width"], features)
        parts = [self.tensor(*shape) for _ in range(3)]
        attend = self.torch.nn.functional.scaled_dot_product_attention
        return (lambda: attend(*parts, is_causal=row["variant"] == "causal")), parts, []

    def lstm(self, row):
        layer = self.torch.nn.LSTM(row["channels"], row["out_channels"], batch_first=True).to(self.device)
        x = self.sequence(row)
        return (lambda: layer(x)[0]), [x], list(layer.parameters())


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

    def once(self, function):
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
    kind = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(precision, torch.float32)
    a, b = (torch.randn(side, side, device=device, dtype=kind) for _ in range(2))
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
    clock, maker = Clock(torch, device), Maker(torch, device, precision)
    head, begin, out = header(torch, device, clock, precision, arguments), time.monotonic(), []
    for index, row in enumerate(rows):
        now = time.monotonic()
        if now > stop:
            fail(f"--budget: time is up, and {len(rows) - index} of {len(rows)} kernels have not been timed; {REMEDY}")
        # A kernel that needs less than its share leaves the rest to those after it.
        out.append((row, clock.sample(maker.function(row), now + (stop - now) / (len(rows) - index))))
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
