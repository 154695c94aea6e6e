# SPDX-License-Identifier: Apache-2.0
"""tests/bench/gpu.sh on a machine that is made up: what a good run, a broken one and none say.

Every program that the script calls is a stand-in of a few lines, so that the figures are known; the
programs themselves are run by test gpu_shim (nightly) and on a device. In 2 seconds or so.
With --compile NVCC instead: that what it builds on a device compiles; 77 without nvcc.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

SCRIPT = pathlib.Path(__file__).with_name("gpu.sh")

# One file under many names. PLANTED is a list of faults.
STAND_IN = r"""#!/bin/sh
planted() { case " $PLANTED " in *" $1 "*) true ;; *) false ;; esac; }
case ${0##*/} in
nvidia-smi)
    case $* in
    *=name*) echo 'NVIDIA H9000 80GB' ;;
    *driver*) echo 999.1 ;;
    *) echo 7 ;;
    esac ;;
nvcc) case $* in *--version*) echo 'tools, release 13.0, V1' ;; *) : ;; esac ;;
cmake) planted build && { echo 'error: no header'; exit 1; }; exit 0 ;;
ctest)
    planted hang && sleep 5
    result=' Passed ' status=0
    planted skipped && result=***Skipped
    planted failed && result=***Failed status=8
    echo '1/2 Test #228: gpu_test_cuda_ops ...............   Passed    4.60 sec' |
        { planted skipped && sed 's/   Passed /***Skipped /' || cat; }
    echo "2/2 Test #229: gpu_test_dropout ................$result    0.01 sec"
    exit $status ;;
compute-sanitizer)
    case $* in */planted\ *) planted blind && exit 0; exit 9 ;; esac
    planted race && { echo '========= ERROR SUMMARY: 2 errors'; exit 9; }
    echo '========= ERROR SUMMARY: 0 errors' ;;
twinstep)
    case $* in
    *--help*) echo '--backend' ;;
    env) echo 'openblas none' ;;
    noise*)
        planted refused && { echo '  untestable: x does not have mode y yet'; exit 3; }
        echo "row of $*"
        exit 1 ;;
    *mode=shaped*) echo 'error: cuda does not have mode shaped yet'; exit 2 ;;
    run*) planted apart && { echo outside-floor; exit 1; }; planted broken && exit 2; exit 0 ;;
    esac ;;
bench_train) # NAME, parameters, tokens, median, best
    case $2 in
    fast-f32) s=0.5 ;; fast-bf16) s=0.1 ;;
    deterministic-bf16) s=0.102; planted slow && s=0.104 ;;
    invariant-f32) s=0.9 ;;
    shaped-*) printf '%s\t-\tcuda does not have mode shaped yet\n' "$2"; exit 1 ;;
    *) s=0.3 ;;
    esac
    planted nomodule && { printf '%s\t-\texpected twinstep_cuda.so\n' "$2"; exit 1; }
    printf '%s\t1000000000\t8192\t%s\t%s\n' "$2" $s $s ;;
python3)
    case $* in
    *import*) ! planted notorch ;;
    *peak*) printf 'peak\t800\n' ;;
    *--compile*)
        parameters=1000000000
        planted other && parameters=999
        printf 'compile\t%s\t8192\t0.125\t0.12\n' $parameters ;;
    *) printf 'eager\t1000000000\t8192\t0.2\t0.2\n' ;;
    esac ;;
esac
"""


class Machine:
    def __init__(self, folder, faults="", without=()):
        self.folder = pathlib.Path(folder)
        for place, names in (("path", ("nvidia-smi", "nvcc", "cmake", "ctest", "compute-sanitizer",
                                       "python3")),
                             ("build/bin", ("twinstep", "bench_train", "test_cuda_ops"))):
            (self.folder / place).mkdir(parents=True, exist_ok=True)
            for name in names:
                if name not in without:
                    file = self.folder / place / name
                    file.write_text(STAND_IN)
                    file.chmod(0o755)
        self.environment = dict(os.environ, PLANTED=faults,
                                PATH=f"{self.folder}/path:{os.environ['PATH']}")

    def run(self, *arguments, build="build"):
        done = subprocess.run(["sh", SCRIPT, "--build", self.folder / build, "--out",
                               self.folder / "out", *arguments], env=self.environment,
                              capture_output=True, text=True, cwd=self.folder)
        reports = list((self.folder / "out").glob("gpu-*.md"))
        return done, reports[0].read_text() if reports else "", [r.name for r in reports]


def expect(condition, what, shown=""):
    if not condition:
        sys.exit(f"gpu_check: {what}\n{shown}")


def run(faults, *arguments, status, has=(), lacks=(), without=()):
    with tempfile.TemporaryDirectory() as folder:
        done, report, names = Machine(folder, faults, without).run(*arguments)
        about = f"[{faults}] {' '.join(map(str, arguments))}"
        shown = done.stdout + done.stderr + report
        expect(done.returncode == status, f"{about}: exit status {done.returncode}", shown)
        for text in has:
            expect(text in report, f"{about}: no {text!r}", shown)
        for text in lacks:
            expect(text not in report, f"{about}: has {text!r}", shown)
        return names


def good():
    names = run("", status=0, has=(
        "# Measured on NVIDIA H9000 80GB", "| driver_version | 999.1 |", "| nvcc | 13.0, V1 |",
        "| build | held |", "openblas none", "| tests | held |", "| sanitize | held |",
        "| bits | held |",
        "| floor | held |", "| modes | held |", "| speed | held |",
        "| `gpu_test_cuda_ops` | Passed | 4.60 |",
        "| racecheck | `test_cuda_ops` | ERROR SUMMARY: 0 errors, exit status 0 |",
        "| racecheck | `planted.cu` | its fault was found |",
        "| invariant | f32 | equal, every digest |", "shaped | f32 | not run: error: cuda does not have",
        "over `fast` (bf16) | 2 % | met |", "strict f32 (`fast`, f32) | 1.8 x | met |",
        "at 125M, bf16: at least as fast as PyTorch compile | 1.25 x | met |",
        # 8192 tokens x (6e9 + 6 x 16 x 2048 x 512) in 0.1 s are 499.77 TFLOP/s
        "| 1B | twinstep | 0.1 | 81920 | 499.8 |",
        "1B: half of the measured peak of the matrix product | 62.47 % | met |"))
    expect(names == ["gpu-nvidia-h9000-80gb.md"], f"report's name: {names}")


def broken():
    """Each fault is told, and what comes after it goes on."""
    run("failed race apart slow", "tests", "sanitize", "bits", "modes", status=1, has=(
        "| `gpu_test_dropout` | Failed |", "| tests | **failed** |",
        "| memcheck | `test_cuda_ops` | ERROR SUMMARY: 2 errors, exit status 9 |",
        "| sanitize | **failed** |",
        "**not equal**", "| bits | **failed** |",
        "over `fast` (bf16) | 4 % | **not met** |", "| modes | held |"))
    run("slow", "modes", status=1)
    run("other", "speed", status=1, has=("**another training**: 999 parameters, 8192 tokens",))
    run("build blind broken nomodule", "build", "sanitize", "bits", "speed", status=1, has=(
        "no header", "| build | **failed** |", "| synccheck | `planted.cu` | **its fault was not found** |",
        "| sanitize | **failed** |", "| bits | **failed** |", "expected twinstep_cuda.so",
        "| speed | **failed** |"))
    run("hang", "--limit", "0.3", "tests", status=1, has=("| tests | **ran past its limit** |",))


def absent():
    """What nobody measured is no success; without a device it is no failure either."""
    run("skipped", "tests", status=1, has=("| tests | not measured |", "| speed | not measured |"))
    run("refused", "floor", status=1, has=("| floor | not measured |",))
    run("notorch", "speed", status=0, has=("| PyTorch | not measured", "compile | - | not measured |"))
    run("", "--module", "shim.so", "modes", "speed", status=0,
        has=("# Host shim, not a device", "| modes | held |"), lacks=("| met |", "NVIDIA"))


def usage():
    for arguments in (["part"], ["--limit"], ["--unknown", "build"]):
        with tempfile.TemporaryDirectory() as folder:
            done, _, _ = Machine(folder).run(*arguments)
            expect(done.returncode == 2 and "PART" in done.stderr, f"{arguments}: no usage", done.stderr)


def joined():
    """Parts of two calls are one report; a part that is done again replaces itself."""
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(folder)
        machine.run("modes")
        machine.run("speed")
        done, report, _ = machine.run("report")
        expect(done.returncode == 0 and "| modes | held |" in report and "62.47 % | met" in report,
               "parts of two calls", report)
        _, again, _ = machine.run("modes")
        expect(again.count("| bf16 | fast |") == 1, "a part twice", again)


def compiled(nvcc):
    if not pathlib.Path(nvcc).exists():
        sys.exit(77)
    headers = pathlib.Path(nvcc).resolve().parent.parent.glob("**/cublas_v2.h")
    for name in ["planted.cu"] + ["peak.cu"] * any(headers):
        done = subprocess.run([nvcc, "-arch=sm_80", "-c", SCRIPT.with_name(name), "-o", os.devnull],
                              capture_output=True, text=True)
        expect(done.returncode == 0, name, done.stdout + done.stderr)
        print(f"gpu_check: {name} compiles")


if __name__ == "__main__":
    if "--compile" in sys.argv:
        sys.exit(compiled(sys.argv[2]))
    for check in (good, broken, absent, usage, joined):
        check()
    print("gpu_check: all as expected")
