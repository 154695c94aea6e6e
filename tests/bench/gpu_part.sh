#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One part of tests/bench/gpu.sh, which says what each is and starts this file. Here is what all
# parts use; a family of parts is in gpu_part_*.sh:
#
#   GPU_MODULE=... GPU_DEPS=... GPU_BUILD=... GPU_PREBUILT=0 GPU_OUT=... GPU_LIMIT=... \
#       sh gpu_part.sh PART
#
# Writes PART.md (its section of the report), PART.figures (lines KEY VALUE) and logs into GPU_OUT.
# Exit status: 0 it held, 77 nothing could be measured, 124 there was no time for all that must hold,
# else it failed. Every program is bounded, so what there is by GPU_LIMIT is told.
# shellcheck disable=SC2016,SC2034 # what is in backticks is Markdown; variables are for the parts
set -u
part=$1 module=$GPU_MODULE deps=$GPU_DEPS build=$GPU_BUILD out=$GPU_OUT limit=$GPU_LIMIT
prebuilt=$GPU_PREBUILT
bench=$(cd -- "${0%/*}" && pwd) || exit 2
source=${bench%/tests/bench}
program=$build/bin/twinstep
threads=$(nproc)
log=$out/$part.log

# Tests are linked with a library that the pack brings.
if [ "$prebuilt" = 1 ]; then
    LD_LIBRARY_PATH=$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
fi

# Programs get a little less than the limit; the rest is for writing the report.
deadline=$(($(date +%s) + limit - limit / 30 - 1))
children=''
# A list of words.
# shellcheck disable=SC2086
trap '[ -z "$children" ] || kill $children 2>/dev/null; exit 124' TERM

# Sizes are NAME LAYERS HIDDEN HEADS MLP VOCAB PAIRS LENGTH; the models have the head tied. `deep`
# lists MODE:DTYPE for floors by layer, whose trend needs five layers.
if [ "$module" = auto ]; then
    device=1 updates=10 dtypes='f32 tf32 bf16 f16' noise_steps=3 noise_repeat=3 tiny=
    noise_modes='invariant deterministic fast atomic shuffled'
    models='125M:12:768:12:2048:50304:8:512 1B:16:2048:16:8192:50304:8:512
        deep:16:512:8:1408:8192:2:512'
    deep='fast:bf16 deterministic:bf16 atomic:f32 invariant:f32' deep_more='shuffled:f32 atomic:bf16 fast:f32'
    gib=0 # bench_train takes no more than three quarters of the device
else
    device=0 updates=2 dtypes='f32' noise_steps=1 noise_repeat=1 threads=1
    noise_modes='invariant atomic'
    tiny='--set common.model.hidden=16 --set common.model.layers=1 --set common.model.mlp=24
        --set common.model.heads=2 --set common.batch.size=2 --set common.batch.micro=1'
    models='125M:1:32:2:48:300:2:16 1B:1:32:2:48:300:2:16 deep:5:16:2:24:300:2:48' gib=1
    deep='atomic:f32' deep_more=''
fi
wide=1
[ "$device" = 0 ] || [ "$(nproc)" -lt 8 ] || wide=6

say() {
    printf '%s\n' "$*" >>"$out/$part.md"
}

figure() { # KEY VALUE
    printf '%s %s\n' "$1" "$2" >>"$out/$part.figures"
}

block() { # a file as code, at most $2 lines of it
    say '```'
    tail -n "${2:-40}" "$1" | sed 's/\x1b\[[0-9;]*m//g' >>"$out/$part.md"
    say '```'
}

# Tells whether a text says that the backend lacks what was asked of it, which is no failure.
is_refusal() {
    printf '%s' "$1" | grep -q 'does not have\|is not available on'
}

# Prints field N of a line with tabs between its fields.
field() {
    printf '%s' "$2" | cut -f "$1"
}

calculate() { # EXPRESSION [FORMAT]
    awk "BEGIN { printf \"${2:-%.4g}\", $1 }"
}

patience=5 # seconds from a program's first signal, at which it may tell what it has, to its end

# Starts COMMAND with all its output in FILE, for at most SECONDS of what is left; `most` is how long
# it has, and `child` its process, "" where no time was left.
begin() { # FILE SECONDS COMMAND...
    file=$1 most=$2 child=''
    shift 2
    rest=$((deadline - $(date +%s)))
    [ "$most" -le "$rest" ] || most=$rest
    if [ "$most" -lt 1 ]; then
        most=0
        : >"$file"
        return 0
    fi
    timeout -k "$patience" "$most" "$@" >"$file" 2>&1 &
    child=$!
    children="$children $child"
}

# Waits for what was begun as process PROCESS. Status 124 or 137 means that its time was too short.
await() { # PROCESS
    [ -n "$1" ] || return 124
    wait "$1"
}

bounded() { # FILE SECONDS COMMAND...
    begin "$@"
    await "$child"
    ended=$?
    children=''
    return "$ended"
}

# Jobs that run side by side, as many as `wide`. FUNCTION is called with NAME for each, in the order in
# which they were begun, with its `status`, the seconds that it took and the `most` that it had;
# neither has blanks or colons.
jobs='' jobs_count=0
job() { # FUNCTION NAME FILE SECONDS COMMAND...
    job_words="$1:$2"
    shift 2
    jobs_began=$(date +%s)
    begin "$@"
    jobs="$jobs $job_words:$child:$most:$jobs_began:$file"
    jobs_count=$((jobs_count + 1))
    [ $jobs_count -lt "$wide" ] || jobs_end
}

# Waits for all jobs and tells of them. What a job took is known by when it wrote last.
jobs_end() {
    for job_words in $jobs; do
        IFS=: read -r function name process most began file <<END
$job_words
END
        await "$process"
        status=$?
        seconds=$(($(stat -c %Y "$file") - began))
        "$function" "$name"
    done
    jobs='' jobs_count=0 children=''
}

is_late() { # STATUS
    [ "$1" = 124 ] || [ "$1" = 137 ]
}

# Makes $build/NAME of NAME.cu, but where it came with the pack.
device_program() { # NAME
    [ "$prebuilt" = 0 ] || [ ! -x "$build/$1" ] || return 0
    bounded "$log" 120 nvcc -std=c++20 -O2 -arch=native -I"$source" -o "$build/$1" "$bench/$1.cu" && return 0
    block "$log"
    return 1
}

family() { # NAME... of gpu_part_NAME.sh
    for name; do
        # shellcheck source=/dev/null
        . "$bench/gpu_part_$name.sh" || exit 2
    done
}

case $part in
build) family build && part_build ;;
probe) family probe && part_probe ;;
env) family probe && part_env ;;
tests-*) family build && part_tests "${part#tests-}" ;;
peak) family train speed && part_peak ;;
modes) family train modes && part_modes ;;
profile) family train profile && part_profile ;;
speed-*) family train speed && part_speed "${part#speed-}" ;;
bits-*) family bits && part_bits "${part#bits-}" ;;
floor) family train floor && part_floor ;;
sanitize-*) family sanitize && part_sanitize "${part#sanitize-}" ;;
*) exit 2 ;;
esac
