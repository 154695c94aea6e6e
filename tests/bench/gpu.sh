#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures the CUDA backend on the machine it runs on, and writes one report in Markdown:
#
#   sh tests/bench/gpu.sh [OPTION...] [PART...]
#
# PART (default: all, in this order); a word before the dash stands for all that begin with it
#   build           program, tests, twinstep_cuda.so, bench_train, bench_linear
#   probe           what the device and its driver can, and what launches and copies cost
#   env             what twinstep says of the device
#   tests-ops       every test labelled gpu that asks single kernels
#   bits-100, bits-1000
#                   CPU = GPU: a DPO training of so many updates, digests of every update
#   sanitize-tensor compute-sanitizer's memcheck and racecheck on the kernels for tensor cores
#   peak            the matrix product's peak
#   modes           what each mode costs
#   profile         the share of each kernel in a training, and three kernels looked at
#   speed-125M      tokens per second beside PyTorch, eager and compile
#   floor           twinstep noise by dtype and mode
#   tests-trainings every other test labelled gpu
#   sanitize-memcheck, -racecheck, -synccheck, -initcheck
#                   one of compute-sanitizer's tools on the ops, and on a planted fault
#   speed-1B        as speed-125M, and what mode deterministic costs there
#   report          only joins what the parts left in the folder of --out (done after the others,
#                   too)
# OPTION
#   --module FILE   backend module; default auto: twinstep_cuda.so of the build. Another module than
#                   a device's (backends/twinstep_backend_shim.so) is run on tiny sizes, and the
#                   report says that nothing was measured
#   --deps PLACE    folder or .tar.gz of tests/bench/static_archive.sh; default: installed libraries
#   --build FOLDER  default build/gpu; build/gpu-prebuilt with --prebuilt
#   --prebuilt PLACE
#                   FILE.tar.xz of tests/bench/gpu_pack.sh, unpacked into the folder of --build, or
#                   a folder where one was unpacked: nothing is built here, and neither cmake nor
#                   ctest nor nvcc is called
#   --out FOLDER    default build/gpu-report: report, logs, figures
#   --commit ID     for the report, where the tree has no .git
#   --limit SEC     of each part; default 180
#   --total SEC     of all parts of this call: a part gets what is left, and none begins with less
#                   than 20; default none
#   --tar FILE      FILE.tar.gz of the folder of --out without traces and data (bits.h5, rows-*),
#                   written anew after each part; it may lie in that folder
#
# A part that fails or runs past its limit says so in the report, and the others go on. What is slow
# within a part is a figure of its own there ("slower than N s") and no failure. Exit status: 0 all
# parts held (on the host shim: none failed) and no aim that was measured is missed, 1 not so, 2
# usage. Clocks are left alone.
# shellcheck disable=SC2016 # what is in backticks is Markdown
set -u
LC_ALL=C.UTF-8
OMP_WAIT_POLICY=passive
# Looks for CUDA's compiler and tools where CMake looks for them (cmake/cuda.cmake).
PATH="$PATH:${CUDA_PATH:+$CUDA_PATH/bin:}/usr/local/cuda/bin"
export LC_ALL OMP_WAIT_POLICY PATH

parts='build probe env tests-ops bits-100 bits-1000 sanitize-tensor peak modes profile speed-125M
    floor tests-trainings sanitize-memcheck sanitize-racecheck sanitize-synccheck
    sanitize-initcheck speed-1B'

module=auto deps='' build='' prebuilt='' out=build/gpu-report commit='' limit=180
total='' tar=''
command_line="sh tests/bench/gpu.sh $*"
usage() {
    sed -n '4,/^# shellcheck/{/^# shellcheck/!s/^# \{0,1\}//p;}' "$0" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    case $1 in
    --module | --deps | --build | --prebuilt | --out | --commit | --limit | --total | --tar)
        [ $# -ge 2 ] || usage
        name=${1#--}
        value=$2
        case $name in
        module) module=$value ;;
        deps) deps=$value ;;
        build) build=$value ;;
        prebuilt) prebuilt=$value ;;
        out) out=$value ;;
        commit) commit=$value ;;
        limit) limit=$value ;;
        total) total=$value ;;
        tar) tar=$value ;;
        esac
        shift 2
        ;;
    -*) usage ;;
    *) break ;;
    esac
done
case $limit$total in
*[!0-9]*) usage ;;
esac
chosen=''
for word; do
    found=''
    for part in $parts report; do
        case $part in
        "$word" | "$word"-*) found="$found $part" ;;
        esac
    done
    [ -n "$found" ] || usage
    chosen="$chosen$found"
done
[ -n "$chosen" ] || chosen=$parts

absolute() {
    case $1 in
    /* | auto | '') printf '%s' "$1" ;;
    *) printf '%s/%s' "$PWD" "$1" ;;
    esac
}
script=$(absolute "$0")
[ -n "$build" ] || build=build/gpu${prebuilt:+-prebuilt}
module=$(absolute "$module") deps=$(absolute "$deps") build=$(absolute "$build")
prebuilt=$(absolute "$prebuilt") out=$(absolute "$out") tar=$(absolute "$tar")
source=$(cd -- "${script%/*}/../.." && pwd) || exit 2
mkdir -p "$out" || exit 2

# A machine may have no xz, but a Python that has it.
unpack() { # FILE FOLDER
    mkdir -p "$2" && {
        tar -xf "$1" -C "$2" 2>/dev/null ||
            python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$1" "$2"
    }
}

if [ -f "$prebuilt" ]; then
    unpack "$prebuilt" "$build" || exit 2
elif [ -n "$prebuilt" ]; then
    build=$prebuilt
fi
if [ -n "$prebuilt" ] && [ ! -r "$build/tests.txt" ]; then
    printf 'gpu.sh: %s: expected what gpu_pack.sh makes, with tests.txt; found none\n' "$prebuilt" >&2
    exit 2
fi
[ -z "$prebuilt" ] || [ -n "$commit" ] || commit=$(sed -n 's/^commit //p' "$build/built")

device=1
[ "$module" = auto ] || device=0

# ---- report ----

device_name() {
    [ "$device" = 0 ] || sed -n 's/^| name | \(.*\) |$/\1/p' "$out/facts.md"
}

facts() {
    printf '| | |\n|---|---|\n'
    printf '| date | %s |\n' "$(date -u '+%Y-%m-%d %H:%M UTC')"
    printf '| commit | %s |\n' \
        "${commit:-$(git -C "$source" rev-parse --short=12 HEAD 2>/dev/null || echo unknown)}"
    printf '| command | `%s` |\n' "$command_line"
    printf '| processor | %s, %s threads |\n' \
        "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)"
    [ "$device" = 1 ] || return 0
    # One call for all: each takes about a second.
    queries=name,driver_version,compute_cap,memory.total,clocks.sm,clocks.max.sm,clocks.mem,power.limit
    queries=$queries,temperature.gpu
    nvidia-smi --query-gpu=$queries --format=csv,noheader 2>/dev/null | head -n 1 |
        awk -F ', ' -v queries="$queries" '{
            count = split(queries, query, ",")
            for (i = 1; i <= count; i++) printf "| %s | %s |\n", query[i], $i
        }'
    printf '| nvcc | %s |\n' "$(nvcc --version 2>/dev/null | sed -n 's/^.*release //p')"
}

value() { # the last figure of this name
    cat "$out"/*.figures 2>/dev/null | awk -v key="$1" '$1 == key { v = $2 } END { print v }'
}

# In EXPRESSION, a and b are the two figures; in CONDITION, x is the expression's value. Without a
# CONDITION the row is no aim, but a figure that helps to read one.
aim() { # TEXT FIGURE_A FIGURE_B UNIT EXPRESSION [CONDITION]
    a=$(value "$2") b=$(value "$3")
    if [ "$device" = 0 ] || [ -z "$a" ] || [ -z "$b" ]; then
        printf '| %s | - | not measured |\n' "$1"
        return 0
    fi
    got=$(awk -v a="$a" -v b="$b" "BEGIN { printf \"%.4g\", $5 }")
    if [ -z "${6:-}" ]; then
        printf '| %s | %s%s | shown |\n' "$1" "$got" "$4"
    elif awk -v x="$got" "BEGIN { exit !($6) }"; then
        printf '| %s | %s%s | met |\n' "$1" "$got" "$4"
    else
        printf '| %s | %s%s | **not met** |\n' "$1" "$got" "$4"
    fi
}

# The host's own work between ops brings the ratio of whole updates nearer to 1, so each aim of
# modes is also judged on figures where the host does least.
aims() {
    printf '| aim | measured | |\n|---|---:|---|\n'
    for t in bf16 f32; do
        text="\`deterministic\` costs at most 3 % over \`fast\` ($t)"
        aim "$text: forward and backward" passes-deterministic-$t passes-fast-$t ' %' \
            '100 * (a / b - 1)' 'x <= 3'
        aim "$text: whole update" seconds-deterministic-$t seconds-fast-$t ' %' \
            '100 * (a / b - 1)' 'x <= 3'
    done
    text='`deterministic` costs at most 3 % over `fast` (bf16, 1B)'
    aim "$text: forward and backward" passes-1B-deterministic passes-1B-twinstep ' %' \
        '100 * (a / b - 1)' 'x <= 3'
    aim "$text: whole update" seconds-1B-deterministic seconds-1B-twinstep ' %' \
        '100 * (a / b - 1)' 'x <= 3'
    aim 'bf16 with `fill: none`: forward and backward' passes-deterministic-nofill-bf16 \
        passes-fast-bf16 ' %' '100 * (a / b - 1)'
    aim 'bf16, linear layers alone' linear-deterministic-bf16 linear-fast-bf16 ' %' \
        '100 * (a / b - 1)'
    aim 'what `twinstep run` records of an update costs (`fast`, bf16)' seconds-recorded-bf16 \
        seconds-fast-bf16 ' %' '100 * (a / b - 1)'
    text='`invariant` takes at most twice cuBLAS in strict f32 (`fast`, f32)'
    aim "$text: linear layers alone" linear-invariant-f32 linear-fast-f32 ' x' 'a / b' 'x <= 2'
    aim "$text: forward and backward" passes-invariant-f32 passes-fast-f32 ' x' 'a / b' 'x <= 2'
    aim 'the same: whole update' seconds-invariant-f32 seconds-fast-f32 ' x' 'a / b'
    for m in 125M 1B; do
        aim "DPO update at $m, bf16: at least as fast as PyTorch compile" seconds-$m-compile \
            seconds-$m-twinstep ' x' 'a / b' 'x >= 1'
    done
    aim '1B: half of the measured peak of the matrix product' tflops-1B-twinstep peak ' %' \
        '100 * a / b' 'x >= 50'
}

outcome() { # of a part's exit status
    case $1 in
    0) echo held ;;
    77) echo 'not measured' ;;
    75) echo '**not begun, no time was left**' ;;
    124 | 137) echo '**ran past its limit**' ;;
    *) echo '**failed**' ;;
    esac
}

report() {
    name=$(device_name)
    [ "$device" = 1 ] || name=host-shim
    slug=$(printf '%s' "${name:-unknown}" | tr '[:upper:] ' '[:lower:]-' | tr -cd '[:alnum:]-')
    file=$out/gpu-$slug.md
    {
        if [ "$device" = 1 ]; then
            printf '# %s\n\n' "${name:+Measured on }${name:-Nothing measured: nvidia-smi names no device}"
        else
            printf '# Host shim, not a device\n\nThe kernels ran thread by thread on the host, on tiny '
            printf 'sizes: this shows that `tests/bench/gpu.sh` works, and measures nothing.\n\n'
        fi
        cat "$out/facts.md"
        printf '\n## Aims\n\n'
        aims
        printf '\n## Parts\n\n| part | |\n|---|---|\n'
        for part in $parts; do
            status=77
            [ ! -r "$out/$part.status" ] || status=$(cat "$out/$part.status")
            printf '| %s | %s |\n' "$part" "$(outcome "$status")"
        done
        for part in $parts; do
            [ -r "$out/$part.md" ] || continue
            printf '\n## %s\n\n' "$part"
            cat "$out/$part.md"
        done
    } >"$file"
    printf 'gpu.sh: %s\n' "$file"
}

# ---- main ----

start=$(date +%s)
least=20

# Prints the seconds that the present part has: --limit, or what is left of --total.
seconds_left() {
    left=$limit
    if [ -n "$total" ]; then
        left=$((total - $(date +%s) + start))
        [ "$left" -le "$limit" ] || left=$limit
    fi
    echo "$left"
}

pack() {
    [ -n "$tar" ] || return 0
    packed=$(mktemp) || return 0 # elsewhere: tar refuses a folder that grows while it reads it
    {
        tar -czf "$packed" -C "$out" --exclude='bits-*.h5' --exclude=./compiled --exclude='rows-*.jsonl' \
            --no-wildcards --exclude="${tar##*/}" . && cat "$packed" >"$tar"
    } || printf 'gpu.sh: %s: not written\n' "$tar" >&2
    rm -f "$packed"
}

run_part() { # PART
    rm -f "$out/$1.md" "$out/$1.figures" "$out/$1.log" "$out/$1.status"
    began=$(date +%s)
    seconds=$(seconds_left)
    if [ -n "$total" ] && [ "$seconds" -lt $least ]; then
        status=75
    else
        printf 'gpu.sh: %s, at most %s s ...\n' "$1" "$seconds"
        GPU_MODULE=$module GPU_DEPS=$deps GPU_BUILD=$build GPU_OUT=$out GPU_LIMIT=$seconds \
            GPU_PREBUILT=$([ -z "$prebuilt" ] && echo 0 || echo 1) timeout -k 5 "$seconds" sh "$source/tests/bench/gpu_part.sh" "$1"
        status=$?
    fi
    echo $status >"$out/$1.status"
    printf 'gpu.sh: %s: %s, %s s\n' "$1" "$(outcome $status)" $(($(date +%s) - began))
}

if [ "$chosen" != ' report' ] || [ ! -r "$out/facts.md" ]; then
    facts >"$out/facts.md"
fi
for part in $chosen; do
    [ "$part" != report ] || continue
    run_part "$part"
    [ -z "$tar" ] || report >/dev/null
    pack
done
report
pack
failed=0
for part in $chosen; do
    [ "$part" = report ] || case $(cat "$out/$part.status") in
    0) ;;
    77) [ "$device" = 0 ] || failed=1 ;;
    *) failed=1 ;;
    esac
done
! grep -q 'not met\*\*' "$file" || failed=1
exit $failed
