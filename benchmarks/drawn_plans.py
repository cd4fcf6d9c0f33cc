#!/usr/bin/env python3
"""Draws plans of GPT-3 175B on 1,024 to 16,384 H100 and times `epocast run` of each.

    benchmarks/drawn_plans.py [--plans 120] [--seed 1] [--limit 3] [--keep FOLDER]

A plan is a mesh of pipeline x data x tensor, a schedule, a number of micro-batches, recomputation and, sometimes, a
distributed optimizer; all are equally likely, what is absurd too. Prints the median, the 90th percentile and the
largest of the wall-clock times, and the plans that took longer than the limit [s], with their studies.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time

EPOCAST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "epocast")
LAYERS = 96


def draw(random_, platform):
    while True:
        tensor = random_.choice([1, 2, 4, 8, 16])
        pipeline = random_.choice([1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96])
        devices = random_.choice([1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384])
        if devices % (tensor * pipeline) == 0:
            break
    data = devices // (tensor * pipeline)
    micro_batches = random_.choice([1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536])
    schedule = {"name": random_.choice(["1f1b", "interleaved", "gpipe", "zb_h1"]), "micro_batches": micro_batches}
    if schedule["name"] == "interleaved":
        chunks = [v for v in (2, 3, 4, 6, 8) if LAYERS % (v * pipeline) == 0]
        if pipeline == 1 or not chunks or micro_batches % pipeline:
            schedule["name"] = "1f1b"
        else:
            schedule["virtual_stages"] = random_.choice(chunks)
    strategy = {"mesh": {"pipeline": pipeline, "data": data, "tensor": tensor}, "schedule": schedule}
    if tensor > 1:
        strategy["body"] = {"name": "tensor", "sequence_parallel": random_.choice([True, False])}
    if random_.random() < 0.3:
        strategy["synchronisation"] = {"name": "sharded", "stage": 1}
    study = {
        "study": "drawn",
        "model": {"name": "gpt3_175b", "fused": True},
        "precision": "bf16",
        "optimizer": "adam",
        "dataset": {"tokens": 300e9},
        "platform": platform,
        "workers": devices,
        "batch": {"global": data * micro_batches},
        "compute": {"cost_model": "fitted", "calibration": "h100_bf16"},
        "strategy": strategy,
    }
    if (recompute := random_.choice(["none", "selective", "full"])) != "none":
        study["memory"] = {"recompute": recompute}
    return study


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plans", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=3.0, help="s")
    parser.add_argument("--keep", help="a folder for the studies")
    options = parser.parse_args()
    folder = os.path.abspath(options.keep or tempfile.mkdtemp(prefix="epocast-plans-"))
    os.makedirs(folder, exist_ok=True)
    platform = os.path.join(folder, "pod.xml")
    if not os.path.exists(platform):
        subprocess.run([EPOCAST, "platform", "dgx_h100_pod", "--nodes", "2048", "-o", platform], check=True)
    random_ = random.Random(options.seed)
    taken, refused = [], 0
    for plan in range(options.plans):
        study = os.path.join(folder, f"plan_{options.seed}_{plan}.yaml")
        with open(study, "w") as file:
            json.dump(draw(random_, platform), file)
        began = time.monotonic()
        run = subprocess.run([EPOCAST, "run", study, "--format", "csv"], capture_output=True, text=True)
        took = time.monotonic() - began
        if run.returncode:
            refused += 1
            print(f"{study}: {run.stderr.strip().splitlines()[-1]}", file=sys.stderr)
            continue
        taken.append(took)
        if took > options.limit:
            with open(study) as file:
                print(f"{took:.2f} s: {study}: {json.dumps(json.load(file)['strategy'])}", flush=True)
    taken.sort()
    if taken:
        print(
            f"{len(taken)} plans: median {taken[len(taken) // 2]:.2f} s, 90th percentile "
            f"{taken[int(0.9 * len(taken))]:.2f} s, largest {taken[-1]:.2f} s; "
            f"{sum(t > options.limit for t in taken)} over {options.limit:g} s; {refused} refused"
        )


if __name__ == "__main__":
    main()
