#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `twinstep run --ranks mpi` under mpirun and holds it against simulated ranks.

    mpi_ranks.py BINARY [--whole] [--kills N] [--only NAME]...

Traces with --reproducible must be those of simulated ranks, byte for byte, whatever Open MPI would
add with (it is told to add with each of its all-reduces, which nothing here calls). What cannot be
trained so is refused with one text. A rank that is killed, or stopped, ends the job within 10 seconds
with a status that is not 0, a .part that can be read where the trace had been begun, and no process
left. Exit status 77: there is no mpirun, or the module was not built."""

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SEED = 24
HEAD = "twinstep: 1\nname: %s\nsteps: %d\n"
LOOP = "  loop: {update: [reduce, clip, optimize, log, count, schedule, zero]}\n"
SMALL = "common:\n  model: {layers: 1, hidden: 16, heads: 2, mlp: 32}\n"
SCENARIOS = {
    # one rank against several
    "arms": (HEAD % ("arms", 3) + SMALL + "  batch: {size: 8, micro: 2}\n  numerics: {shards: 8}\n" + LOOP
             + "arms:\n  baseline: {}\n  test: {parallel: {ranks: RANKS}}\n"),
    # one shard, whose chains go from rank to rank; uneven shares, a tied tensor
    "relay": (HEAD % ("relay", 3) + "common:\n  model: {layers: 1, hidden: 16, heads: 2, mlp: 32, tied: true}\n"
              "  batch: {size: 10, micro: 2}\n  dropout: {residual: 0.1}\n" + LOOP
              + "arms:\n  baseline: {}\n  test: {parallel: {ranks: RANKS}}\n"),
    # ranks that own parts, of what DeepSpeed cuts and of rows; masters, a norm that clips
    "parts": (HEAD % ("parts", 3) + "common:\n  task: sft\n  model: {family: llama, layers: 1, hidden: 64, heads: 4, "
              "mlp: 96}\n  batch: {size: 10, micro: 2}\n  clip: {max_norm: 0.1}\n  optimizer: {lr: 1e-3, decay: "
              "matrices}\n  numerics: {shards: SHARDS, param: bf16, master: f32}\n" + LOOP
              + "arms:\n  baseline: {parallel: {ranks: RANKS, zero: 2}}\n  test: {parallel: {ranks: RANKS, zero: 3}}\n"),
    # several ranks in both arms, two causes, so hybrids; uneven shares, dropout, stored states
    "hybrids": (HEAD % ("hybrids", 4) + "record: {snapshots: 2}\n" + SMALL
                + "  batch: {size: 12, micro: 3}\n  dropout: {residual: 0.1}\n  clip: {max_norm: 0.5}\n"
                "  numerics: {shards: 8, threads: THREADS}\n  parallel: {ranks: RANKS}\n" + LOOP
                + "arms:\n  baseline: {}\n  test: {optimizer: {beta2: 0.95}, schedule: {name: cosine}}\n"),
    # the tokens of a rank, f16 with a loss scale that overflows
    "scaled": (HEAD % ("scaled", 4) + SMALL
               + "  task: sft\n  batch: {size: 24, micro: 2}\n  loss: {divisor: mean-of-ranks}\n"
               "  numerics: {shards: SHARDS, param: f16, master: f32}\n  parallel: {ranks: RANKS}\n"
               "  scaler: {kind: dynamic, init_scale: 1e9, growth_interval: 2}\n" + LOOP
               + "arms:\n  baseline: {}\n  test: {optimizer: {lr: 2e-6}}\n"),
    # sums that are cut, tensor-parallel ranks that bugs count, and an arm that rank 0 trains alone
    "tensor": (HEAD % ("tensor", 2) + "common:\n  task: sft\n"
               "  model: {family: llama, layers: 1, hidden: 16, heads: 4, kv_heads: 4, mlp: 32}\n"
               "  batch: {size: 12, micro: 2}\n  optimizer: {lr: 1e-3}\n" + LOOP
               + "arms:\n  baseline: {numerics: {cuts: 4, shards: 8},\n"
               "    parallel: {ranks: RANKS, tensor: 2, scale: world, draws: own, counts: each}}\n"
               "  test: {numerics: {cuts: 4}, parallel: {tensor: 4, forgets: norms}}\n"),
}
# long enough to be killed
LONG = SCENARIOS["hybrids"].replace("steps: 4", "steps: 400")
ALGORITHMS = [1, 3, 4, 6]
TRIES = 4


class Bench:
    def __init__(self, options, folder):
        self.binary, self.folder, self.errors, self.longest, self.missed = options.binary, folder, [], 0.0, 0
        self.environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMP_WAIT_POLICY": "passive",
                            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1",
                            "OMPI_MCA_mpi_yield_when_idle": "1", "TWINSTEP_JOB": folder}

    def check(self, holds, text):
        if not holds:
            self.errors.append(text)
            print(f"FAILED: {text}", flush=True)

    def mpirun(self, ranks, *words, mca=()):
        # binding would put ranks on fewer processors than there are
        return ["mpirun", "--oversubscribe", "--bind-to", "none", *mca, "-n", str(ranks), self.binary, *words]

    def run(self, words, **more):
        return subprocess.run(words, cwd=self.folder, env=self.environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=180, check=False, **more)

    def read(self, name):
        with open(os.path.join(self.folder, name), "rb") as file:
            return file.read()

    def scenario(self, text, ranks, threads=1, name="case.yaml"):
        text = text.replace("RANKS", str(ranks)).replace("THREADS", str(threads))
        text = text.replace("SHARDS", str({2: 2, 3: 8, 4: 4}[ranks]))
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)
        return name

    def left(self):
        """Processes of this job: their environment names its folder."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if f"TWINSTEP_JOB={self.folder}\0".encode() in file.read() and int(pid) != os.getpid():
                        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
                            if stat.read().rsplit(")", 1)[1].split()[0] != "Z":
                                found.append(int(pid))
            except OSError:
                pass
        return found

    def serving(self, child):
        """The processes of twinstep that mpirun started, in the order of their ranks."""
        ranks = {}
        for pid in self.left():
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    rank = re.search(rb"OMPI_COMM_WORLD_RANK=(\d+)", file.read())
                with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
                    parent = int(stat.read().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            if rank and parent == child.pid:
                ranks[int(rank[1])] = pid
        return ranks


# ---- the same bits ----

SAME = ["run", "case.yaml", "--quiet", "--overwrite", "--reproducible"]


def verify_same_trace(bench, name, ranks, threads, mca=()):
    words = f"{name}, {ranks} ranks, {threads} threads, {' '.join(mca)}"
    bench.scenario(SCENARIOS[name], ranks, threads)
    simulated = bench.run([bench.binary, *SAME, "-o", "simulated.h5"])
    real = bench.run(bench.mpirun(ranks, *SAME, "-o", "real.h5", "--ranks", "mpi", mca=mca))
    bench.check(simulated.returncode in (0, 1), f"{words}: simulated: {simulated.stderr}")
    bench.check(real.returncode == simulated.returncode, f"{words}: {real.returncode}, {real.stderr}")
    if not bench.errors:
        bench.check(bench.read("simulated.h5") == bench.read("real.h5"), f"{words}: other bytes")
        bench.check(simulated.stdout.replace("simulated.h5", "real.h5") == real.stdout,
                    f"{words}: other output: {real.stdout}")


def verify_traces(bench, whole):
    for ranks in (2, 3, 4) if whole else (2, 3):
        for number, name in enumerate(SCENARIOS):
            if name == "scaled" and ranks == 3:
                continue  # mean-of-ranks has equal shares, and 3 divides no power of two
            # a scenario has 2 ranks or 3; scaled cannot have 3, and arms has them with the algorithm below
            if whole or ranks == (2 if name in ("scaled", "arms") else 2 + number % 2):
                verify_same_trace(bench, name, ranks, 2 if (ranks + number) % 2 else 1)
    for algorithm in ALGORITHMS if whole else ALGORITHMS[2:3]:
        verify_same_trace(bench, "arms", 3, 1, ["--mca", "coll_tuned_use_dynamic_rules", "1", "--mca",
                                                "coll_tuned_allreduce_algorithm", str(algorithm)])


def verify_resume(bench):
    """What real ranks have left goes on with simulated ones, and the reverse."""
    bench.scenario(LONG.replace("steps: 400", "steps: 12"), 2)
    whole = bench.run([bench.binary, *SAME, "-o", "whole.h5"])
    bench.check(whole.returncode in (0, 1), f"resume: {whole.stderr}")
    for first, second in (("mpi", None), (None, "mpi")):
        for old in os.listdir(bench.folder):
            if old.startswith("part"):
                os.remove(os.path.join(bench.folder, old))
        words = [*SAME, "--keep-every", "0", "-o", "part.h5"]
        command = bench.mpirun(2, *words, "--ranks", "mpi") if first else [bench.binary, *words]
        with subprocess.Popen(command, cwd=bench.folder, env=bench.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            while child.poll() is None and not os.path.exists(os.path.join(bench.folder, "part.h5.part.kept-2")):
                time.sleep(0.002)
            target = bench.serving(child).get(0, child.pid) if first else child.pid
            try:
                os.kill(target, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()
        if not os.path.exists(os.path.join(bench.folder, "part.h5.part")):
            continue  # it was quicker
        words = [*SAME, "--resume", "part.h5.part", "-o", "rest.h5"]
        rest = bench.run(bench.mpirun(2, *words, "--ranks", "mpi") if second else [bench.binary, *words])
        bench.check(rest.returncode == whole.returncode, f"resume with {second}: {rest.stderr}")
        bench.check(rest.returncode == whole.returncode and bench.read("rest.h5") == bench.read("whole.h5"),
                    f"resume with {second}: other bytes")


def verify_page(bench):
    """The commands of docs/RANKS.md with mpirun print what the page says."""
    with open(os.path.join(ROOT, "docs", "RANKS.md"), encoding="utf-8") as page:
        blocks = [block for block in re.findall(r"```console\n(.*?)```", page.read(), re.S) if "mpirun" in block]
    bench.check(len(blocks) == 1, f"RANKS.md: {len(blocks)} blocks with mpirun")
    folder = os.path.join(bench.folder, "page")
    os.mkdir(folder)
    path = {"PATH": os.path.dirname(bench.binary) + ":" + os.environ["PATH"]}
    for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", blocks[0], re.M):
        done = subprocess.run(["sh", "-c", command], cwd=folder, env={**bench.environment, **path}, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=180, check=False)
        bench.check(done.returncode == 0 and done.stdout == output,
                    f"RANKS.md: {command}: status {done.returncode}, {done.stdout}{done.stderr}")


# ---- what is refused ----

REFUSED = [
    (2, 3, "", [], "parallel.ranks: expected 2 with --ranks, the number of processes that were started (or 1, which "
                   "rank 0 trains alone), got 3"),
    (2, 2, "mode: deterministic, ", [], "numerics.mode: expected invariant with --ranks"),
    (1, 2, "", [], "run: --ranks mpi: expected two processes or more, got 1"),
    (2, 1, "", [], "parallel.ranks: expected 2 in one arm or both, the number of processes that were started, got 1"),
    (2, 2, "", ["--set", "steps=0"], "steps: expected"),
    (2, 2, "", ["--backend", "tpu"], "--backend: expected cpu or cuda"),
    (2, 2, "", ["--ranks-wait", "0"], "run: --ranks-wait: expected a number of seconds above 0, got \"0\""),
]


def verify_refusals(bench):
    for started, ranks, mode, words, text in REFUSED:
        scenario = SCENARIOS["arms"].replace("RANKS", str(ranks)).replace("{shards", "{" + mode + "shards")
        with open(os.path.join(bench.folder, "case.yaml"), "w", encoding="utf-8") as file:
            file.write(scenario)
        done = bench.run(bench.mpirun(started, *SAME, "-o", "no.h5", "--ranks", "mpi", *words))
        bench.check(done.returncode == 2, f"{text}: status {done.returncode}, {done.stderr}")
        bench.check(done.stderr.count(text) == 1 and done.stdout == "", f"{text}: got {done.stderr}")
        bench.check(not os.path.exists(os.path.join(bench.folder, "no.h5.part")), f"{text}: wrote a trace")
    # BADINPUT.md: the status and the text of a command without mpirun, with a module and without
    alone = bench.run([bench.binary, *SAME, "-o", "no.h5", "--ranks", "mpi"])
    bench.check(alone.returncode == 2 and "run: --ranks mpi" in alone.stderr, alone.stderr)
    alone = bench.run([bench.binary, *SAME, "-o", "no.h5", "--ranks", "smoke"])
    bench.check(alone.returncode == 2 and 'run: --ranks: expected mpi, got "smoke"' in alone.stderr, alone.stderr)
    alone = bench.run([bench.binary, *SAME, "-o", "no.h5", "--ranks-wait", "5"])
    bench.check(alone.returncode == 2 and "run: --ranks-wait: expected with --ranks" in alone.stderr, alone.stderr)


# ---- ranks that die or hang ----

def verify_end(bench, what, rank, begun, after):
    """Starts a job, waits until it writes if `begun`, or until the rank is there, and `after` seconds;
    does `what` (a signal) to a rank, and waits for the end. Returns why it could not."""
    live = os.path.join(bench.folder, "long.h5.part")
    for old in os.listdir(bench.folder):
        if old.startswith("long.h5"):
            os.remove(os.path.join(bench.folder, old))
    words = f"{what.name} to rank {rank} {after:.2f} s {'after the first row' if begun else 'from the start'}"
    command = bench.mpirun(2, *SAME, "-o", "long.h5", "--ranks", "mpi", "--ranks-wait", "3")
    with subprocess.Popen(command, cwd=bench.folder, env=bench.environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as child:
        while child.poll() is None and (rank not in bench.serving(child) or begun and not os.path.exists(live)):
            time.sleep(0.01)
        time.sleep(after)
        pid = bench.serving(child).get(rank)
        if pid is None:
            child.wait()
            return f"{words}: it was over: {child.stderr.read()}"
        os.kill(pid, what)
        began = time.monotonic()
        try:
            _, text = child.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            _, text = child.communicate()
        took = time.monotonic() - began
    bench.longest = max(bench.longest, took)
    bench.check(child.returncode != 0 and took < 10, f"{words}: status {child.returncode} after {took:.1f} s: {text}")
    until = time.monotonic() + 2
    while bench.left() and time.monotonic() < until:
        time.sleep(0.05)
    bench.check(not bench.left(), f"{words}: processes {bench.left()} are left")
    for pid in bench.left():
        os.kill(pid, signal.SIGKILL)
    bench.check(not os.path.exists(os.path.join(bench.folder, "long.h5")), f"{words}: a trace that claims to be whole")
    if os.path.exists(live):
        read = bench.run([bench.binary, "recover", "long.h5.part", "-o", "recovered.h5", "--overwrite"])
        # a file without one whole update has nothing to recover, and is told so
        bench.check(read.returncode == 0 or "no update" in read.stderr, f"{words}: recover: {read.stderr}")
        return None
    bench.check(not begun, f"{words}: no .part")
    return None


def verify_deaths(bench, kills):
    draw = random.Random(SEED)
    bench.scenario(LONG, 2)
    for kill in range(kills):
        what = signal.SIGSTOP if kill % 3 == 2 else signal.SIGKILL
        # where other work takes the processors, a rank may give up by itself before the signal comes
        for _ in range(TRIES):
            missed = verify_end(bench, what, (kill + kill // 3) % 2, kill % 4 != 3, draw.uniform(0.0, 1.0))
            if missed is None:
                break
            bench.missed += 1
        bench.check(missed is None, f"in {TRIES} tries: {missed}")


def verify_interruption(bench):
    """SIGTERM to rank 0 ends the job at the border of an update, as it ends a run of one process."""
    bench.scenario(LONG, 2)
    command = bench.mpirun(2, *SAME, "--overwrite", "-o", "stopped.h5", "--ranks", "mpi")
    with subprocess.Popen(command, cwd=bench.folder, env=bench.environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as child:
        while not os.path.exists(os.path.join(bench.folder, "stopped.h5.part")) and child.poll() is None:
            time.sleep(0.01)
        time.sleep(0.3)
        os.kill(bench.serving(child)[0], signal.SIGTERM)
        _, text = child.communicate(timeout=60)
    bench.check(child.returncode == 130 and text.count("interrupted after") == 1, f"SIGTERM: {child.returncode}, {text}")
    # The command that is told is typed as it stands: without mpirun, so with simulated ranks.
    told = text.split("This goes on with it: ")[-1].splitlines()[0].split()
    bench.check("--resume" in told and "--ranks" not in told, f"SIGTERM: goes on with {told}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--only", action="append")
    options = parser.parse_args()
    options.binary = os.path.abspath(options.binary)
    module = os.path.join(os.path.dirname(options.binary), "..", "twinstep_mpi.so")
    if shutil.which("mpirun") is None or not os.path.exists(module):
        print("skipped: " + ("no mpirun" if shutil.which("mpirun") is None else "no twinstep_mpi.so")
              + " (install openmpi-bin and libopenmpi-dev, and configure again)")
        return 77
    tests = {"traces": lambda bench: verify_traces(bench, options.whole), "refusals": verify_refusals,
             "page": verify_page, **({"resume": verify_resume} if options.whole else {}), "interruption": verify_interruption,
             "deaths": lambda bench: verify_deaths(bench, options.kills)}
    errors = 0
    with tempfile.TemporaryDirectory(prefix="twinstep-mpi-") as folder:
        for name, test in tests.items():
            if options.only and name not in options.only:
                continue
            began, bench = time.monotonic(), Bench(options, os.path.join(folder, name))
            os.mkdir(bench.folder)
            test(bench)
            errors += len(bench.errors)
            ended = f", ended within {bench.longest:.1f} s" if bench.longest else ""
            ended += f", {bench.missed} were over before the signal" if bench.missed else ""
            print(f"{name}: {len(bench.errors)} failed, {time.monotonic() - began:.1f} s{ended}", flush=True)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
