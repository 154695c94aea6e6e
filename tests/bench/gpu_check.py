# SPDX-License-Identifier: Apache-2.0
"""Runs tests/bench/gpu.sh on a made-up machine, and checks what it says of a good run, of a broken
one and of none.

Every program that the script calls is a stand-in of a few lines, so that the figures are known; the
programs themselves are run by test gpu_shim (nightly) and on a device. It takes about 15 seconds.
With --compile NVCC it checks instead that what the script builds on a device compiles, and what
kernel_times.c makes of made-up records; 77 without nvcc."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from concurrent import futures

SCRIPT = pathlib.Path(__file__).with_name("gpu.sh")

# One file under many names. PLANTED is a list of faults.
STAND_IN = r"""#!/bin/sh
planted() { case " $PLANTED " in *" $1 "*) true ;; *) false ;; esac; }
case ${0##*/} in
nvidia-smi) echo 'NVIDIA H9000 80GB, 999.1, 9.0, 80000 MiB, 7 MHz, 7 MHz, 7 MHz, 700.00 W, 35' ;;
nvcc)
    case $* in *--version*) echo 'tools, release 13.0, V1'; exit ;; esac
    while [ $# -gt 0 ]; do [ "$1" != -o ] || cp "$0" "$2"; shift; done ;;
probe)
    planted ill && { echo 'probe: cudaSetDevice(0): no device' >&2; exit 2; }
    printf 'device\tNVIDIA H9000\t\t\ncopy\t3000\tGB/s\tread and written\n' ;;
peak) planted nopeak && exit 1; printf 'peak\t700\n' ;;
ncu)
    echo '==PROF== noise'
    echo '"ID","gpu__time_duration.sum","sm__throughput.avg.pct_of_peak_sustained_elapsed","dram__throughput.avg.pct_of_peak_sustained_elapsed","sm__warps_active.avg.pct_of_peak_sustained_active","launch__registers_per_thread","launch__grid_size"'
    echo '"","us","%","%","%","register/thread",""'
    echo '"0","12.5","61","33","48","96","132"' ;;
cmake)
    planted build && { echo 'error: no header'; exit 1; }
    case $* in *--build*) ;; *) exit 0 ;; esac
    mkdir -p "$2/bin" # what --build makes
    for name in twinstep bench_train bench_linear test_cuda_ops test_dropout test_golden_curves; do
        cp "$0" "$2/bin/$name"
    done
    case $* in *twinstep_cuda*) cp "$0" "$2/twinstep_cuda.so" ;; esac ;;
strip) ;;
nproc) echo 16 ;;
ctest)
    case $* in *json*) exec sed "s|BUILD|$PWD|g; s|ROOT|$ROOT|g" "${0%/path/ctest}/tests.json" ;; esac
    planted hang && { echo $$ >"$0.hangs"; exec sleep 30; }
    result=' Passed ' status=0
    planted skipped && result=***Skipped
    planted failed && result=***Failed status=8
    echo '1/2 Test #228: gpu_test_cuda_ops ...............   Passed    4.60 sec' |
        { planted skipped && sed 's/   Passed /***Skipped /' || cat; }
    echo "2/2 Test #229: gpu_test_dropout ................$result    0.01 sec"
    exit $status ;;
compute-sanitizer)
    case $* in */planted\ *) planted blind && exit 0; exit 9 ;; esac
    case $* in
    *test_cuda_ops*)
        planted tardy && exec sleep 30
        planted race && { echo '========= ERROR SUMMARY: 2 errors'; exit 9; } ;;
    *racecheck*exclude*test_cuda_library*)
        echo 'an illegal memory access was encountered'
        echo '========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)'
        exit 9 ;;
    *racecheck*test_cuda_library*) ;;
    *check*exclude*library*) ;;
    *memcheck*library*) ;;
    *library*) echo '========= ERROR SUMMARY: 7 errors of a library'; exit 9 ;;
    esac
    echo '========= ERROR SUMMARY: 0 errors' ;;
twinstep)
    case $* in
    *--help*) echo '--backend' ;;
    env)
        echo 'openblas none'
        planted blank && echo 'cuda            none (no driver)' || echo 'cuda            NVIDIA H9000' ;;
    noise*)
        planted refused && { echo '  untestable: x does not have mode y yet'; exit 3; }
        echo "row of $*"
        case $* in
        *modes\ fast*dtypes\ own*) planted halfway && { printf '  stratum  grads\n'; exec sleep 30; } ;;
        esac
        exit 1 ;;
    *mode=shaped*) echo 'error: cuda does not have mode shaped yet'; exit 2 ;;
    run*) planted apart && { echo outside-floor; exit 1; }; planted broken && exit 2; exit 0 ;;
    esac ;;
bench_train) # NAME, parameters, tokens, median, best, rows of logits, passes, updates, GiB
    p=0.2
    case $2 in
    fast-f32) s=0.5 p=0.4 ;;
    fast-bf16)
        s=0.1 p=0.08
        case $* in *order=free*) p=0.088 ;; *atomics=off*) p=0.084 ;; --recorded*) s=0.113 ;; esac ;;
    deterministic-bf16)
        s=0.102 p=0.0816
        planted slow && p=0.084
        case $* in
        *fill=none*) p=0.0804 ;;
        *hidden=2048*) s=0.101 p=0.0808; planted slow-1B && s=0.104 ;;
        esac ;;
    deterministic-f32) s=0.505 p=0.41; planted slow-f32 && p=0.42 ;;
    invariant-f32) s=0.9 p=0.7 ;;
    shaped-*) printf '%s\t-\tcuda does not have mode shaped yet\n' "$2"; exit 1 ;;
    shuffled-f32) planted crawl && exec sleep 30; s=0.3 ;;
    *) s=0.3 ;;
    esac
    planted nomodule && { printf '%s\t-\texpected twinstep_cuda.so\n' "$2"; exit 1; }
    case $* in *batch.micro=8*) planted large && p=0 ;; esac
    planted huge && p=0
    [ $p != 0 ] || { printf '%s\t-\tneeds 87 GiB, may take 60 GiB\n' "$2"; exit 1; }
    [ -z "${KERNEL_TIMES:-}" ] || planted untimed || {
        printf 'span\t200000\t150000\n'
        printf 'nvjet_tst_128 <132>\t9\t75000\t1\t2\t3\n'
        printf 'norm_weight_kernel <24>\t25\t30000.0\t1100.00\t1200.00\t1300.00\n'
        printf 'tensor_queries_bf16 <64>\t9\t20.0\t1.00\t2.00\t3.00\n'
    } >"$KERNEL_TIMES"
    # Of the records, one after the first step began before that one ended; waits of 60 us before the
    # first step and behind the last one do not count.
    [ -z "${KERNEL_ORDER:-}" ] || printf '%s\t%s\t%s\n' 0.0 10.0 fill 70.0 90.0 'step_adam <4>' \
        80.0 95.0 'fill <0>' 125.5 130.0 norm 131.0 140.0 'step_adam <4>' 200.0 201.0 fill >"$KERNEL_ORDER"
    printf '%s\t1000000000\t8192\t%s\t%s\t6144\t%s\t9\t48.3\n' "$2" $s $s $p
    echo "$2: 48.3 GiB will be taken" >&2 ;;
bench_linear) # NAME, 10^12 operations, median, best, rounds
    case $1 in
    invariant-f32) s=1.5 ;; fast-f32) s=1 ;; deterministic-bf16) s=0.101 ;; *) s=0.1 ;;
    esac
    printf '%s\t3\t%s\t%s\t20\n' "$1" $s $s ;;
python3)
    case $* in
    *import*) ! planted notorch ;;
    *peak*) planted nopeak && { echo 'out of memory'; exit 1; }; printf 'peak\t800\n' ;;
    *--compile*)
        parameters=1000000000
        planted other && parameters=999
        planted stuck && exec sleep 30
        printf 'compile\t%s\t8192\t0.125\t0.12\t6144\n' $parameters ;;
    *)
        planted sluggish && sleep 3
        printf 'eager\t1000000000\t8192\t0.2\t0.2\t6144\n' ;;
    esac ;;
test_* | curand)
    planted broken-test && [ "${0##*/}" = test_dropout ] && { echo 'it is broken'; exit 5; }
    planted skipped && exit 77
    planted asleep && [ "${0##*/}" = test_dropout ] && { echo $$ >"$0.sleeps"; exec sleep 30; }
    exit 0 ;;
esac
"""


PROGRAMS = ("twinstep", "bench_train", "bench_linear", "test_cuda_ops", "test_cuda_library",
            "test_cuda_tensor", "test_dropout", "test_golden_curves")
TOOLS = ("nvcc", "compute-sanitizer", "ncu")


class Machine:
    """A machine made up of stand-ins. `toolkit` says where CUDA's tools are: "path", or a folder
    that CUDA_PATH names."""

    def __init__(self, folder, faults="", toolkit="path"):
        self.folder = pathlib.Path(folder)
        for place, names in (("path", ("nvidia-smi", "cmake", "ctest", "python3")),
                             ("path" if toolkit == "path" else f"{toolkit}/bin", TOOLS),
                             ("build/bin", PROGRAMS)):
            (self.folder / place).mkdir(parents=True, exist_ok=True)
            for name in names:
                file = self.folder / place / name
                file.write_text(STAND_IN)
                file.chmod(0o755)
        self.environment = dict(os.environ, PLANTED=faults, CUDA_PATH=f"{self.folder}/{toolkit}",
                                PATH=f"{self.folder}/path:/usr/bin:/bin")

    def run(self, *arguments):
        done = subprocess.run(["sh", SCRIPT, "--build", self.folder / "build", "--out",
                               self.folder / "out", *arguments], env=self.environment,
                              capture_output=True, text=True, cwd=self.folder)
        reports = list((self.folder / "out").glob("gpu-*.md"))
        return done, reports[0].read_text() if reports else "", [r.name for r in reports]


def expect(condition, what, shown=""):
    if not condition:
        sys.exit(f"gpu_check: {what}\n{shown}")


def run(faults, *arguments, status, has=(), lacks=(), toolkit="path"):
    with tempfile.TemporaryDirectory() as folder:
        done, report, names = Machine(folder, faults, toolkit).run(*arguments)
        about = f"[{faults}] {' '.join(map(str, arguments))}"
        shown = done.stdout + done.stderr + report
        expect(done.returncode == status, f"{about}: exit status {done.returncode}", shown)
        for text in has:
            expect(text in report, f"{about}: no {text!r}", shown)
        for text in lacks:
            expect(text not in report, f"{about}: has {text!r}", shown)
        return names


PARTS = ("build", "probe", "env", "tests-ops", "bits-100", "bits-1000", "sanitize-tensor", "peak",
         "modes", "profile", "speed-125M", "floor", "tests-trainings", "sanitize-memcheck",
         "sanitize-racecheck", "sanitize-synccheck", "sanitize-initcheck", "speed-1B")


def good():
    names = run("", status=0, has=(
        "# Measured on NVIDIA H9000 80GB", "| driver_version | 999.1 |", "| temperature.gpu | 35 |", "| nvcc | 13.0, V1 |",
        *(f"| {part} | held |" for part in PARTS), "openblas none",
        "| `gpu_test_cuda_ops` | Passed | 4.60 |",
        "| `test_cuda_ops` | ERROR SUMMARY: 0 errors, exit status 0, ",
        "| `planted.cu` | its fault was found |", "| `test_cuda_library` | left out",
        "| copy | 3000 GB/s | read and written |", "cuda            NVIDIA H9000",
        "fast, bf16: 200 ms from the first launch to the last, 75 % of it with one at work.",
        "| `nvjet_tst_128 <132>` | 50.0 | 9 | 2 | 1 | 3 |",
        "|---:|---|---|\n| 30.5 | `fill <0>` | `norm` |\n| 1.0 | `norm` | `step_adam <4>` |\n\ndet",
        "| `norm_weight_kernel <24>` | 20.0 | 25 | 1200.00 | 1100.00 | 1300.00 |",
        "| `norm_weight_kernel` | 132 | 12.5 us | 61 | 33 | 48 | 96 |\n"
        "| `tensor_queries_bf16` | 132 | 12.5 us | 61 | 33 | 48 | 96 |\n\n",
        "| invariant | f32 | equal, every digest |", "shaped | f32 | not run: error: cuda does not have",
        "over `fast` (bf16): forward and backward | 2 % | met |",
        "over `fast` (bf16): whole update | 2 % | met |",
        "over `fast` (f32): forward and backward | 2.5 % | met |",
        "over `fast` (f32): whole update | 1 % | met |",
        "over `fast` (bf16, 1B): forward and backward | 1 % | met |",
        "over `fast` (bf16, 1B): whole update | 1 % | met |",
        "| deterministic | micro-batches of 8 pairs, 48.3 GiB, 9 updates | 0.101 |",
        "**deep-shuffled-f32**\n",
        "`fill: none`: forward and backward | 0.5 % | shown |", "linear layers alone | 1 % | shown |",
        "| bf16 | fast, recorded | 0.113 |", "records of an update costs (`fast`, bf16) | 13 % | shown |",
        "linear layers alone | 1.5 x | met |", "forward and backward | 1.75 x | met |",
        "whole update | 1.8 x | shown |",
        "at 125M, bf16: at least as fast as PyTorch compile | 1.25 x | met |",
        # 6 x (8192 x 16 x (4 x 2048^2 + 3 x 2048 x 8192) + 6144 x 2048 x 50304)
        # + 6 x 16 x 2048 x 512 x 8192 operations in 0.1 s are 573.98 TFLOP/s
        "| twinstep | micro-batches of 8 pairs, 48.3 GiB, 9 updates | 0.1 | 81920 | 574 |",
        "1B: half of the measured peak of the matrix product | 71.75 % | met |"))
    expect(names == ["gpu-nvidia-h9000-80gb.md"], f"report's name: {names}")


def broken():
    """Each fault must be reported, and the parts after it must go on."""
    run("failed race apart slow", "tests", "sanitize-memcheck", "bits", "modes", status=1, has=(
        "| `gpu_test_dropout` | Failed |", "| tests-ops | **failed** |",
        "| `test_cuda_ops` | ERROR SUMMARY: 2 errors, exit status 9, ",
        "| `test_cuda_library` | ERROR SUMMARY: 0 errors", "| sanitize-memcheck | **failed** |",
        "**not equal**", "| bits-100 | **failed** |",
        "forward and backward | 5 % | **not met** |", "whole update | 2 % | met |", "| modes | held |",
        "streams takes 1.100 of `fast`, without atomics 1.050."))
    run("slow-f32 slow-1B", "modes", "speed-1B", status=1, has=(
        "over `fast` (bf16): forward and backward | 2 % | met |",
        "over `fast` (f32): forward and backward | 5 % | **not met** |",
        "over `fast` (bf16, 1B): whole update | 4 % | **not met** |", "| speed-1B | held |"))
    run("ill blank untimed", "probe", "env", "profile", status=1, has=(
        "probe: cudaSetDevice(0): no device", "| probe | **failed** |", "cuda            none (no driver)",
        "| env | **failed** |", "fast, bf16: no kernel was recorded", "| profile | held |"))
    run("other", "speed-1B", status=1, has=("**another training**: 999 parameters, 8192 tokens",))
    run("build blind broken nomodule", "build", "sanitize", "bits", "speed", status=1, has=(
        "no header", "| build | **failed** |", "| `planted.cu` | **its fault was not found** |",
        *(f"| {part} | **failed** |" for part in PARTS if part[:8] == "sanitize"),
        "| bits-1000 | **failed** |", "expected twinstep_cuda.so", "| speed-125M | **failed** |"))


def slow_rows():
    """What is slow must become a figure, not a failure."""
    run("crawl", "--limit", "36", "modes", status=0, has=(
        "| f32 | shuffled | slower than 4 s |", "| f32 | atomic | 0.3 |", "| modes | held |"))


def slow_torch():
    run("stuck", "--limit", "6", "speed-1B", status=0, has=(
        "| compile | slower than ", "| eager | PyTorch | 0.2 |", "| speed-1B | held |",
        "at 1B, bf16: at least as fast as PyTorch compile | - | not measured |"))
    # A quarter of this limit would be too short for a start of PyTorch.
    run("sluggish", "--limit", "10", "speed-125M", status=0, has=(
        "| eager | PyTorch | 0.2 |", "| compile | PyTorch | 0.125 |"))


def slow_floors():
    """Strata that were done must be told, though those that were not took too long."""
    run("halfway", "--limit", "18", "floor", status=0, has=(
        "**deep-fast-bf16**, as far as it came in ", "  stratum  grads", "**deep-invariant-f32**\n",
        "| floor | held |"))


def slow_tools():
    """What must hold and had no time must count as a failure."""
    run("tardy", "--limit", "18", "sanitize-memcheck", status=1, has=(
        "| `test_cuda_ops` | slower than 7 s; lines of findings until then: 0 |",
        "| `test_cuda_library` | ERROR SUMMARY: 0 errors",
        "| sanitize-memcheck | **ran past its limit** |"))
    run("", "--total", "10", "tests", "bits", status=1,
        has=("| tests-ops | **not begun, no time was left** |",))


def hung():
    """Nothing may keep running after its part has ended."""
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(folder, "hang")
        done, report, _ = machine.run("--limit", "4", "tests-ops")
        expect(done.returncode == 1 and "| tests-ops | **ran past its limit** |" in report and
               "There was no time for all of them." in report, "hang", report)
        process = int((machine.folder / "path/ctest.hangs").read_text())
        expect(not pathlib.Path(f"/proc/{process}").exists(), f"process {process} runs on")


def large():
    """A training for which there is no memory must be made smaller, or reported."""
    run("large", "speed-1B", status=0, has=(
        "Micro-batches of 8 pairs: needs 87 GiB, may take 60 GiB.",
        "| twinstep | micro-batches of 4 pairs, 48.3 GiB, 9 updates | 0.1 |"))
    run("huge", "speed-1B", status=0, has=(
        "Micro-batches of 1 pairs: needs", "| twinstep | needs 87 GiB, may take 60 GiB |",
        "| compile | PyTorch | 0.125 |", "compile | - | not measured |"))


def absent():
    """What nobody measured is no success; without a device it is no failure either."""
    run("skipped", "tests", status=1, has=("| tests-ops | not measured |", "| speed-1B | not measured |"))
    run("refused", "floor", status=1, has=("| floor | not measured |",))
    run("notorch", "speed", status=0, has=("| PyTorch | not measured", "compile | - | not measured |"))
    run("nopeak", "peak", "speed-1B", status=1, has=(
        "| peak | not measured |", "out of memory", "| speed-1B | held |",
        "peak of the matrix product | - | not measured |"))
    run("", "--module", "shim.so", "modes", "speed", status=0,
        has=("# Host shim, not a device", "| modes | held |"), lacks=("| met |", "NVIDIA"))


def elsewhere():
    """nvcc and compute-sanitizer must also be found where CUDA is installed."""
    run("", "sanitize-racecheck", status=0, toolkit="toolkit", has=(
        "| sanitize-racecheck | held |", "| nvcc | 13.0, V1 |"))


LISTED = """gpu_test_cuda_ops|bin/test_cuda_ops||A=1 TWINSTEP_BACKEND=auto
gpu_test_dropout|bin/test_dropout|x y|A=1
gpu_test_golden_curves|bin/test_golden_curves||
"""


def packed_machine(folder, faults=""):
    """A machine of 16 threads with a pack unpacked in `build`, and neither cmake, ctest nor nvcc."""
    machine = Machine(folder, faults)
    (machine.folder / "path" / "nproc").write_text(STAND_IN)
    (machine.folder / "path" / "nproc").chmod(0o755)
    for name in ("cmake", "ctest", "nvcc"):
        (machine.folder / "path" / name).unlink()
    for name in ("probe", "planted", "peak", "kernel_times.so"):
        (machine.folder / "build" / name).write_text(STAND_IN)
        (machine.folder / "build" / name).chmod(0o755)
    (machine.folder / "build" / "tests.txt").write_text(LISTED)
    (machine.folder / "build" / "built").write_text("machine any\ncommit 0123456789ab\n")
    return machine


def prebuilt():
    """A pack must do for every part, as a folder and as an archive of either kind; a test of its list
    that fails must be told with its output."""
    with tempfile.TemporaryDirectory() as folder:
        machine = packed_machine(folder)
        machine.environment["PATH"] = f"{machine.folder}/path:/usr/bin:/bin"
        done, report, _ = machine.run("--prebuilt", machine.folder / "build")
        expect(done.returncode == 0 and all(f"| {part} | held |" in report for part in PARTS) and
               "| commit | 0123456789ab |" in report and "| `gpu_test_dropout` | Passed |" in report and
               "of each; 6 of them at a time" in report and
               report.index("**deep-fast-bf16**") < report.index("**fast-f16**") < report.index("**ops-atomic**") <
               report.index("**deep-fast-f32**") < report.index("**switches-fast-bf16**"),
               "a pack", done.stdout + done.stderr + report)
    for kind in ("xz", "gz"):
        with tempfile.TemporaryDirectory() as folder:
            machine = packed_machine(folder, "broken-test")
            (machine.folder / "build").rename(machine.folder / "pack")
            archive = machine.folder / f"pack.tar.{kind}"
            with tarfile.open(archive, f"w:{kind}") as tar:
                tar.add(machine.folder / "pack", ".")
            (machine.folder / "path" / "tar").write_text("#!/bin/sh\nexit 2\n")  # one without xz
            (machine.folder / "path" / "tar").chmod(0o755 if kind == "xz" else 0o644)
            (machine.folder / "path" / "python3").unlink()
            done, report, _ = machine.run("--prebuilt", archive, "tests")
            expect(done.returncode == 1 and "| tests-ops | **failed** |" in report and
                   "| `gpu_test_dropout` | Failed, status 5 |" in report and "it is broken" in report
                   and "| tests-trainings | held |" in report, f"a pack in {kind}",
                   done.stdout + done.stderr + report)
    with tempfile.TemporaryDirectory() as folder:  # one of several that run at once
        machine = packed_machine(folder, "asleep")
        done, report, _ = machine.run("--prebuilt", machine.folder / "build", "--limit", "5", "tests-ops")
        process = int((machine.folder / "build/bin/test_dropout.sleeps").read_text())
        expect(done.returncode == 1 and "| `gpu_test_dropout` | slower than " in report and
               "| `gpu_test_cuda_ops` | Passed |" in report and "| tests-ops | **ran past" in report and
               not pathlib.Path(f"/proc/{process}").exists(), "a test that sleeps", report)
    with tempfile.TemporaryDirectory() as folder:
        machine = packed_machine(folder)
        (machine.folder / "build" / "tests.txt").unlink()
        done, report, _ = machine.run("--prebuilt", machine.folder / "build")
        expect(done.returncode == 2 and "tests.txt" in done.stderr, "no pack", done.stderr)
        (machine.folder / "build" / "tests.txt").write_text(LISTED)
        (machine.folder / "build" / "built").write_text("machine pdp11\n")
        done, report, _ = machine.run("--prebuilt", machine.folder / "build", "build")
        expect(done.returncode == 1 and "**This machine is " in report, "another machine", report)


def packed():
    """What gpu_pack.sh makes of a build must be all that --prebuilt needs, and of chosen programs no
    more; it must say what cannot be built."""
    tests = [{"name": f"gpu_{name}", "command": [f"BUILD/bin/{name}"], "properties": [
        {"name": "WORKING_DIRECTORY", "value": "ROOT"}, {"name": "ENVIRONMENT", "value": ["A=1"]}]}
        for name in ("test_cuda_ops", "test_dropout", "test_golden_curves")]
    tests += [{"name": "gpu_curand", "command": ["/usr/bin/python3", "curand.py"], "properties": []}]
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(folder)
        (machine.folder / "path" / "python3").unlink()  # the real one reads the list
        (machine.folder / "path" / "strip").write_text(STAND_IN)
        (machine.folder / "path" / "strip").chmod(0o755)
        (machine.folder / "tests.json").write_text(json.dumps({"tests": tests}))
        (machine.folder / "deps").mkdir()
        environment = dict(machine.environment, ROOT=str(SCRIPT.parents[2]))

        def pack(*arguments, **more):
            return subprocess.run(["sh", SCRIPT.with_name("gpu_pack.sh"), "--build", "made", "--deps", "deps",
                                   *arguments], env={**environment, **more}, cwd=folder, text=True,
                                  capture_output=True)
        done = pack("all.tar.xz")
        expect(done.returncode == 0 and ", 4 tests" in done.stdout, "a pack", done.stdout + done.stderr)
        done = pack("--program", "test_dropout", "few.tar.gz")
        expect(done.returncode == 0, "a pack of one program", done.stdout + done.stderr)
        with tarfile.open(machine.folder / "few.tar.gz") as tar:
            names = tar.getnames()
            listed = tar.extractfile("./tests.txt").read().decode()
        programs = {name for name in names if name.startswith("./bin/")}
        expect(programs == {"./bin/twinstep", "./bin/test_dropout"} and "./twinstep_cuda.so" in names and
               listed == "gpu_test_dropout|bin/test_dropout||A=1\n", f"a pack of one program: {names}", listed)
        (machine.folder / "own.so").write_text("of another build")
        done = pack("--module", "own.so", "--build", "other", "own.tar.gz")
        with tarfile.open(machine.folder / "own.tar.gz") as tar:
            expect(tar.extractfile("./twinstep_cuda.so").read() == b"of another build" and
                   not (machine.folder / "other/twinstep_cuda.so").exists(), "--module", done.stderr)
        linked = shutil.which("xz")  # with liblzma.so.5
        done = pack("--module", linked, "linked.tar.gz")
        expect(done.returncode == 2 and "no library but those of --deps, got liblzma.so.5" in done.stderr,
               "a library that does not come along", done.stderr)
        (machine.folder / "deps/lib").mkdir()
        (machine.folder / "deps/lib/liblzma.so.5").write_text("")
        done = pack("--module", linked, "linked.tar.gz")
        with tarfile.open(machine.folder / "linked.tar.gz") as tar:
            expect("./lib/liblzma.so.5" in tar.getnames(), "a library that comes along", done.stderr)
        done = pack("few.zip")
        expect(done.returncode == 2 and "OPTION" in done.stderr, "another kind of archive", done.stderr)
        done = pack("none.tar.xz", PLANTED="build")
        expect(done.returncode == 2 and "no header" in done.stderr and "configuration failed" in done.stderr
               and not (machine.folder / "none.tar.xz").exists(), "a build that fails", done.stderr)
        for name in ("cmake", "ctest", "nvcc", "strip"):
            (machine.folder / "path" / name).unlink()
        (machine.folder / "path" / "python3").write_text(STAND_IN)
        (machine.folder / "path" / "python3").chmod(0o755)
        done, report, _ = machine.run("--prebuilt", "all.tar.xz", "build", "probe", "env", "tests", "bits",
                                      "peak", "modes", "profile", "speed-125M", "floor")
        expect(done.returncode == 0 and "| `gpu_curand` | Passed |" in report and
               "| nvcc | 13.0, V1 |" not in report, "what was packed", done.stdout + done.stderr + report)


def usage():
    for arguments in (["part"], ["--limit"], ["--unknown", "build"], ["--limit", "1.5", "build"],
                      ["sanitize-leaks"]):
        with tempfile.TemporaryDirectory() as folder:
            done, _, _ = Machine(folder).run(*arguments)
            expect(done.returncode == 2 and "PART" in done.stderr, f"{arguments}: no usage", done.stderr)


def joined():
    """Parts of two calls must make one report, and a part that is done again must replace itself."""
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(folder)
        machine.run("modes")
        machine.run("peak", "speed-1B")
        (machine.folder / "out" / "floor.h5").touch()
        (machine.folder / "out" / "bits-100-x.h5").touch()
        (machine.folder / "out" / "compiled").mkdir()
        (machine.folder / "out" / "compiled" / "code").touch()
        done, report, names = machine.run("--tar", "out/[all].tar.gz", "peak", "report")
        expect(done.returncode == 0 and "| modes | held |" in report and "71.75 % | met" in report,
               "parts of two calls", report)
        with tarfile.open(machine.folder / "out/[all].tar.gz") as tar:
            packed = sorted(tar.getnames())
        left = sorted(f"./{file.name}" for file in (machine.folder / "out").iterdir())
        expect({*left} - {*packed} == {"./[all].tar.gz", "./bits-100-x.h5", "./rows-125M.jsonl",
                                       "./rows-1B.jsonl", "./compiled"} and
               f"./{names[0]}" in packed and "tar" not in done.stderr, f"tar: {packed}", done.stderr)
        _, again, _ = machine.run("modes")
        expect(again.count("| bf16 | fast | 0.1 | 0.08 |") == 1, "a part twice", again)


# What kernel_times.c makes of the records of cupti_fake.c: span and busy, then most time first.
TIMES = """span\t10.2\t8.0
norm_kernel <24>\t3\t6.0\t1.00\t2.00\t3.00
nvjet_tst_64x8 <6>\t1\t2.0\t2.00\t2.00\t2.00
fill <0>\t1\t0.5\t0.50\t0.50\t0.50
"""
TIMES_LAST = {"copy to the host <0>\t1\t0.2\t0.25\t0.25\t0.25",
              "norm_kernel <48>\t1\t0.2\t0.25\t0.25\t0.25"}  # of equal time, in either order

# The same records in the order in which they began.
ORDER = """0.00\t3.00\tnorm_kernel <24>
2.00\t4.00\tnvjet_tst_64x8 <6>
5.00\t6.00\tnorm_kernel <24>
6.00\t6.50\tfill <0>
7.00\t9.00\tnorm_kernel <24>
9.00\t9.25\tcopy to the host <0>
10.00\t10.25\tnorm_kernel <48>
"""


def times(nvcc):
    """Loads kernel_times.c as the driver does, with a made-up CUPTI."""
    with tempfile.TemporaryDirectory() as folder:
        for source, name in (("kernel_times.c", "kernel_times.so"), ("cupti_fake.c", "libcupti.so.13")):
            done = subprocess.run([nvcc, "-x", "c", "-shared", "-Xcompiler", "-fPIC", "-cudart", "none", "-I",
                                   SCRIPT.parents[2], "-o", f"{folder}/{name}", SCRIPT.with_name(source)],
                                  capture_output=True, text=True)
            expect(done.returncode == 0, source, done.stdout + done.stderr)
        code = f"import ctypes; ctypes.CDLL('{folder}/kernel_times.so').InitializeInjection() or exit(3)"
        environment = dict(os.environ, LD_LIBRARY_PATH=folder, KERNEL_TIMES=f"{folder}/times",
                           KERNEL_ORDER=f"{folder}/order")
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        told = pathlib.Path(folder, "times").read_text() if done.returncode == 0 else ""
        expect(told.startswith(TIMES) and {*told[len(TIMES):].splitlines()} == TIMES_LAST, "kernel_times.c",
               done.stderr + told)
        order = pathlib.Path(folder, "order").read_text()
        expect(order == ORDER, "kernel_times.c, KERNEL_ORDER", order)
        del environment["KERNEL_TIMES"]
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        expect(done.returncode == 3, "kernel_times.c without a file", done.stderr)
    print("gpu_check: kernel_times.c tells the times of a made-up CUPTI")


def compiled(nvcc):
    if not pathlib.Path(nvcc).exists():
        sys.exit(77)
    toolkit = pathlib.Path(nvcc).resolve().parent.parent
    for name, header in (("planted.cu", "cuda_runtime.h"), ("probe.cu", "cuda_runtime.h"),
                         ("peak.cu", "cublas_v2.h"), ("kernel_times.c", "cupti.h")):
        if not any(toolkit.glob(f"**/{header}")):
            continue
        kind = ["-x", "c"] if name.endswith(".c") else ["-std=c++20", "-arch=sm_80"]
        done = subprocess.run([nvcc, *kind, "-I", SCRIPT.parents[2], "-Werror", "all-warnings", "-c",
                               SCRIPT.with_name(name), "-o", os.devnull], capture_output=True, text=True)
        expect(done.returncode == 0, name, done.stdout + done.stderr)
        print(f"gpu_check: {name} compiles")
    if any(toolkit.glob("**/cupti.h")):
        times(nvcc)


if __name__ == "__main__":
    if "--compile" in sys.argv:
        sys.exit(compiled(sys.argv[2]))
    checks = [hung, good, broken, prebuilt, slow_rows, slow_torch, slow_floors, slow_tools, large, absent,
              elsewhere, usage, joined, packed]
    with futures.ThreadPoolExecutor(len(checks)) as pool:
        for done in [pool.submit(check) for check in checks]:
            done.result()
    print("gpu_check: all as expected")
