#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One part of tests/bench/gpu.sh, which says what each is and starts this file:
#
#   GPU_MODULE=... GPU_DEPS=... GPU_BUILD=... GPU_OUT=... GPU_LIMIT=... sh gpu_part.sh PART
#
# Writes PART.md (its section of the report), PART.figures (lines KEY VALUE) and logs into GPU_OUT.
# Exit status: 0 it held, 77 nothing could be measured, else it failed.
# shellcheck disable=SC2016 # what is in backticks is Markdown
set -u
part=$1 module=$GPU_MODULE deps=$GPU_DEPS build=$GPU_BUILD out=$GPU_OUT limit=$GPU_LIMIT
bench=$(cd -- "${0%/*}" && pwd) || exit 2
source=${bench%/tests/bench}
program=$build/bin/twinstep
threads=$(nproc)
log=$out/$part.log

# Sizes: NAME LAYERS HIDDEN HEADS MLP VOCAB PAIRS LENGTH; both models have the head tied.
if [ "$module" = auto ]; then
    device=1 steps=1000 updates=10 dtypes='f32 tf32 bf16 f16' noise_steps=3 noise_repeat=3 tiny=
    noise_modes='invariant deterministic fast atomic shuffled'
    models='125M:12:768:12:2048:50304:8:512 1B:16:2048:16:8192:50304:8:512'
else
    device=0 steps=2 updates=2 dtypes='f32' noise_steps=1 noise_repeat=1 threads=1
    noise_modes='invariant atomic'
    tiny='--set common.model.hidden=16 --set common.model.layers=1 --set common.model.mlp=24
        --set common.model.heads=2 --set common.batch.size=2 --set common.batch.micro=1'
    models='tiny:1:32:2:48:300:2:16'
fi

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

# Whether a text says that the backend lacks what was asked of it: that is no failure.
is_refusal() {
    printf '%s' "$1" | grep -q 'does not have'
}

# field N of a line with tabs between
field() {
    printf '%s' "$2" | cut -f "$1"
}

calculate() { # EXPRESSION [FORMAT]
    awk "BEGIN { printf \"${2:-%.4g}\", $1 }"
}

# ---- build ----

unpack_deps() {
    case $deps in
    *.tar.gz)
        mkdir -p "$build/deps" && tar -xzf "$deps" -C "$build/deps" && deps=$build/deps
        ;;
    esac
    [ -z "$deps" ] || [ "$(cat "$deps/machine")" = "$(uname -m)" ] || {
        echo "$deps: made for $(cat "$deps/machine"), this is $(uname -m)"
        return 1
    }
}

part_build() {
    unpack_deps >>"$log" 2>&1 || return 1
    set -- -S "$source" -B "$build" "-DTWINSTEP_GPU_MODULE=$module"
    if command -v ninja >/dev/null && [ ! -f "$build/CMakeCache.txt" ]; then
        set -- "$@" -G Ninja
    fi
    [ -z "$deps" ] || set -- "$@" "-DTWINSTEP_DEPS=$deps"
    targets='twinstep label_gpu bench_train'
    if [ "$device" = 1 ]; then
        set -- "$@" -DTWINSTEP_CUDA=ON
        targets="$targets twinstep_cuda"
        NVCC_APPEND_FLAGS='--threads 0' # its targets side by side
        export NVCC_APPEND_FLAGS
    fi
    began=$(date +%s)
    # $targets is a list of words.
    # shellcheck disable=SC2086
    { cmake "$@" && cmake --build "$build" --parallel "$(nproc)" --target $targets; } \
        >>"$log" 2>&1 || {
        block "$log" 30
        return 1
    }
    say "Built in $(($(date +%s) - began)) s: $targets. \`twinstep env\`:"
    "$program" env >"$out/env" 2>&1 || return 1
    block "$out/env" 60
}

# ---- tests ----

part_tests() {
    (cd "$build" && ctest -L '^gpu$' --output-on-failure --timeout "$limit") >"$log" 2>&1
    status=$?
    say '| test | result | seconds |'
    say '|---|---|---:|'
    sed -n 's/^ *[0-9]*\/[0-9]* Test *#[0-9]*: \([^ ]*\) \.*\**\(.*[^ ]\)  *\([0-9.]*\) sec.*$/| `\1` | \2 | \3 |/p' \
        "$log" | sed 's/|  *\([A-Z]\)/| \1/' >>"$out/$part.md"
    grep -q ' Passed ' "$log" || return 77
    [ "$status" = 0 ] || {
        block "$log" 60
        return 1
    }
    # On the host, what needs a device without a module is skipped.
    [ "$device" = 0 ] || ! grep -q 'Skipped' "$log" || return 1
}

# ---- sanitize ----

sanitized='test_cuda_ops test_cuda_linear_modes test_cuda_rows_modes test_cuda_attention_modes
    test_cuda_library test_cuda_tensor'

# The faults planted for a tool, which it must find; then every program, in which it must not.
sanitize_with() { # TOOL
    if compute-sanitizer --tool "$1" --error-exitcode 9 "$build/planted" "$1" \
        >"$out/sanitize-$1-planted.log" 2>&1; then
        say "| $1 | \`planted.cu\` | **its fault was not found** |"
        result=1
    else
        say "| $1 | \`planted.cu\` | its fault was found |"
    fi
    for name in $sanitized; do
        [ -x "$build/bin/$name" ] || continue
        found=$out/sanitize-$1-$name.log
        # A ninth of the limit for the first, a 40th for the others: four tools are done in time.
        seconds=$((limit / 40))
        [ "$name" != test_cuda_ops ] || seconds=$((limit / 9))
        TWINSTEP_BACKEND=$module timeout "$seconds" compute-sanitizer --tool "$1" \
            --error-exitcode 9 "$build/bin/$name" >"$found" 2>&1
        status=$?
        summary=$(grep -o 'ERROR SUMMARY.*\|RACECHECK SUMMARY.*' "$found" | tail -n 1)
        [ $status != 124 ] || summary="**ran past $seconds s**"
        say "| $1 | \`$name\` | ${summary:-no summary}, exit status $status |"
        [ $status = 0 ] || result=1
    done
}

part_sanitize() {
    if [ "$device" = 0 ]; then
        watch=${module%/*}/twinstep_backend_watch.so
        [ -r "$watch" ] || return 77
        say "Host: the ops through \`twinstep_backend_watch.so\`, which looks at every access."
        TWINSTEP_BACKEND=$watch "$build/bin/test_cuda_ops" >"$log" 2>&1 && return 0
        block "$log"
        return 1
    fi
    command -v compute-sanitizer >/dev/null || {
        say 'compute-sanitizer is not on PATH.'
        return 77
    }
    nvcc -arch=native -o "$build/planted" "$bench/planted.cu" >>"$log" 2>&1 || {
        block "$log"
        return 1
    }
    say 'initcheck looks at memory of cudaMalloc; that of tensors is managed memory.'
    say ''
    say '| tool | program | |'
    say '|---|---|---|'
    result=0
    for tool in memcheck racecheck initcheck synccheck; do
        sanitize_with "$tool"
    done
    return "$result"
}

# ---- bits ----

bits_scenario() {
    cat <<EOF
twinstep: 1
name: bits
about: The same DPO training on the CPU and on the device
steps: $steps
common:
  task: dpo
  batch: {size: 4, micro: 2}
  numerics: {threads: 1}
arms:
  baseline: {}
  test: {numerics: {backend: cuda, backend_module: "$module"}}
expect: {verdict: identical}
EOF
}

part_bits() {
    bits_scenario >"$out/bits.yaml"
    result=77
    say "$steps updates, digests of every phase, activation and tensor of each."
    say ''
    say '| mode | param, compute | CPU = GPU | seconds |'
    say '|---|---|---|---:|'
    for case in invariant:f32 invariant:bf16 shuffled:f32 shaped:f32; do
        mode=${case%:*} dtype=${case#*:}
        told_by=$out/bits-$mode-$dtype.log
        began=$(date +%s)
        set -- --set "common.numerics.mode=$mode" --set "common.numerics.param=$dtype" \
            --set "common.numerics.compute=$dtype"
        [ "$mode" != shuffled ] || set -- "$@" --set common.numerics.order_seed=1
        # $tiny is a list of words.
        # shellcheck disable=SC2086
        "$program" run "$out/bits.yaml" "$@" $tiny --quiet --overwrite -o "$out/bits.h5" >"$told_by" 2>&1
        status=$?
        case $status in
        0)
            told='equal, every digest'
            [ $result = 1 ] || result=0
            ;;
        2)
            told="not run: $(tail -n 1 "$told_by")"
            is_refusal "$told" || result=1
            ;;
        *) told='**not equal**' result=1 ;;
        esac
        say "| $mode | $dtype | $told | $(($(date +%s) - began)) |"
        figure "bits-$mode-$dtype" $status
        [ "$status" -le 0 ] || [ "$status" = 2 ] || block "$told_by" 30
    done
    rm -f "$out/bits.h5"
    return "$result"
}

# ---- floor ----

# What `twinstep noise` said, $told_by, with exit status $status: 0 all equal, 1 something is not.
floor_told() { # NAME
    say ''
    case $status in
    0 | 1)
        [ "$result" = 1 ] || result=0
        say "**$1**"
        say ''
        block "$told_by" 100
        ;;
    124) result=1 && say "$1: **ran past $((limit / 10)) s**" ;;
    *)
        line=$(grep -m 1 'untestable\|error' "$told_by" | sed 's/^ *//')
        say "$1: not run: $line"
        is_refusal "$line" || result=1
        ;;
    esac
}

floor_of() { # NAME OPTION...
    told_by=$out/floor-$1.txt
    told=$1
    shift
    timeout $((limit / 10)) "$program" noise --backend cuda \
        --set "common.numerics.backend_module=$module" --quiet "$@" >"$told_by" 2>&1
    status=$?
    floor_told "$told"
}

part_floor() {
    result=77
    say "Hypotheses 21 and 24: two runs of one configuration, first update that differs; $noise_steps"
    say "updates, worst of $noise_repeat. tf32 is \`numerics.product\` over f32."
    for mode in $noise_modes; do
        for dtype in $dtypes; do
            set -- "$mode-$dtype" --modes "$mode" --steps "$noise_steps" --repeat "$noise_repeat"
            case $dtype in
            tf32) set -- "$@" --dtypes f32 --set common.numerics.product=tf32 ;;
            *) set -- "$@" --dtypes "$dtype" ;;
            esac
            # Of the host, a list of words that makes the training small.
            # shellcheck disable=SC2086
            floor_of "$@" $tiny
        done
    done
    [ "$device" = 1 ] || return "$result"
    for dtype in f32 bf16; do
        floor_of "switches-$dtype" --switches --dtypes "$dtype" --steps "$noise_steps"
    done
    for mode in $noise_modes; do
        floor_of "ops-$mode" --ops --modes "$mode" --dtypes f32,bf16
    done
    floor_of file --modes fast --dtypes bf16 --steps "$noise_steps" --output "$out/floor.h5" --overwrite
    return "$result"
}

# ---- modes and speed ----

# Rows of one length, ids from a generator of our own, so that nobody pads anything.
rows() { # VOCAB COUNT LENGTH
    awk -v vocab="$1" -v count="$2" -v length_of="$3" 'BEGIN {
        x = 17
        names[0] = "prompt_ids"; names[1] = "chosen_ids"; names[2] = "rejected_ids"
        for (row = 0; row < count; row++) {
            for (n = 0; n < 3; n++) {
                size = n == 0 ? int(length_of / 4) : length_of - int(length_of / 4)
                printf "%s\"%s\":[", n == 0 ? "{" : ",", names[n]
                for (i = 0; i < size; i++) {
                    x = (x * 1103515245 + 12345) % 2147483648
                    printf "%s%d", i == 0 ? "" : ",", int(x / 65536) % (vocab < 32768 ? vocab : 32768)
                }
                printf "]"
            }
            print "}"
        }
    }'
}

model_of() { # sets layers ... from NAME:LAYERS:...
    IFS=: read -r model layers hidden heads mlp vocab pairs length <<EOF
$1
EOF
    data=$out/rows-$model.jsonl
    [ -r "$data" ] || rows "$vocab" $((pairs * 4)) "$length" >"$data"
}

dtype_keys() {
    case $1 in
    bf16 | f16) echo "numerics.param=$1 numerics.compute=$1 numerics.master=f32" ;;
    tf32) echo 'numerics.param=f32 numerics.compute=f32 numerics.product=tf32' ;;
    *) echo "numerics.param=$1 numerics.compute=$1" ;;
    esac
}

# One line of bench_train.
train() { # MODE DTYPE SECONDS [KEY=VALUE]
    mode=$1 dtype=$2 most=$3
    shift 3
    [ "$mode" != shuffled ] || set -- "$@" numerics.order_seed=1
    # A list of words.
    # shellcheck disable=SC2046
    set -- task=dpo "data.pairs=$data" "data.max_len=$length" "batch.size=$pairs" \
        batch.layout=concatenated model.family=llama "model.layers=$layers" \
        "model.hidden=$hidden" "model.heads=$heads" "model.mlp=$mlp" "model.vocab=$vocab" \
        model.tied=true "numerics.threads=$threads" numerics.backend=cuda \
        "numerics.backend_module=$module" "numerics.mode=$mode" optimizer.lr=5e-7 \
        $(dtype_keys "$dtype") "$@"
    for key; do
        shift
        set -- "$@" "common.$key"
    done
    timeout "$most" "$build/bin/bench_train" --one "$mode-$dtype" "$updates" "$@" 2>&1 ||
        [ $? != 124 ] || printf '%s-%s\t-\tran past %s s\n' "$mode" "$dtype" "$most"
}

# A row of the table of modes; sets $median, 0 where there is none.
mode_row() { # DTYPE MODE [KEY=VALUE]
    name="$2${3:+, ${3#numerics.determinism.}}"
    line=$(train "$2" "$1" $((limit / 18)) ${3:+"$3"} | tail -n 1)
    printf '%s\n' "$line" >>"$log"
    median=0
    if [ "$(field 2 "$line")" = - ] || [ -z "$(field 4 "$line")" ]; then
        say "| $1 | $name | not run: $(field 3 "$line") | | |"
        is_refusal "$line" || result=1
        return
    fi
    [ "$result" = 1 ] || result=0
    median=$(field 4 "$line")
    [ "$name" != fast ] || fast=$median
    ratio=-
    [ "$fast" = 0 ] || ratio=$(calculate "$median / $fast")
    say "| $1 | $name | $median | $(calculate "$(field 3 "$line") / $median" %.0f) | $ratio |"
}

part_modes() {
    model_of "${models%% *}"
    say "DPO update of the $model model ($layers layers, hidden $hidden, MLP $mlp, vocabulary $vocab,"
    say "$pairs pairs of 2 x $length tokens), $updates updates, median; no records are kept."
    say 'Below the modes, each switch of `numerics.determinism` alone is set free.'
    say ''
    say '| dtype | mode | seconds per update | tokens/s | x fast |'
    say '|---|---|---:|---:|---:|'
    result=77
    for dtype in f32 bf16; do
        fast=0
        for mode in fast deterministic invariant shaped shuffled atomic; do
            mode_row "$dtype" "$mode"
            [ "$median" = 0 ] || figure "seconds-$mode-$dtype" "$median"
        done
    done
    for switch in workspace=default order=free atomics=on split_k=on fill=none; do
        mode_row bf16 deterministic "numerics.determinism.$switch"
    done
    return "$result"
}

has_torch() {
    python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null
}

# TFLOP/s of the largest bf16 product, through PyTorch or cuBLAS.
peak() {
    if has_torch; then
        python3 "$bench/torch_train.py" peak
    elif nvcc -O2 -o "$build/peak" "$bench/peak.cu" -lcublas >>"$log" 2>&1; then
        "$build/peak"
    fi
}

speed_line() { # NAME LINE
    if [ "$(field 2 "$2")" = - ] || [ -z "$(field 4 "$2")" ]; then
        say "| $model | $1 | not run: $(field 3 "$2") | | |"
        is_refusal "$2" || result=1
        return
    fi
    median=$(field 4 "$2")
    shape="$(field 2 "$2") parameters, $(field 3 "$2") tokens"
    [ "$1" != twinstep ] || ours=$shape
    if [ "$shape" != "$ours" ] && [ -n "$ours" ]; then
        say "| $model | $1 | **another training**: $shape, twinstep has $ours | | |"
        result=1
        return
    fi
    # 6 per parameter and token, and causal attention: 2 products forward, 4 backward.
    flops="$(field 3 "$2") * (6 * $(field 2 "$2") + 6 * $layers * $hidden * $length) / 1e12"
    rate=$(calculate "$(field 3 "$2") / $median" %.0f)
    say "| $model | $1 | $median | $rate | $(calculate "$flops / $median") |"
    figure "seconds-$model-$1" "$median"
    figure "tflops-$model-$1" "$(calculate "$flops / $median" %.8g)"
    [ "$result" = 1 ] || result=0
}

part_speed() {
    say 'bf16 (PyTorch: autocast over f32 parameters, fused AdamW; twinstep: f32 masters), DPO with'
    say 'cached reference, rows of one length; TFLOP/s counts 6 per parameter and token plus attention.'
    say ''
    say '| model | what | seconds per update | tokens/s | TFLOP/s |'
    say '|---|---|---:|---:|---:|'
    result=77
    for sizes in $models; do
        model_of "$sizes"
        ours=
        speed_line twinstep "$(train fast bf16 $((limit / 6)) | tail -n 1)"
        if [ "$device" = 0 ] || ! has_torch; then
            say "| $model | PyTorch | not measured: no PyTorch with a device | | |"
            continue
        fi
        for how in eager compile; do
            set -- "$how" $((updates + 3)) "$data" "$layers" "$hidden" "$heads" "$mlp" "$vocab" "$pairs"
            [ "$how" = eager ] || set -- "$@" --compile
            line=$(timeout $((limit / 6)) python3 "$bench/torch_train.py" train "$@" 2>>"$log" |
                tail -n 1)
            speed_line "$how" "${line:-$how	-	failed or ran past $((limit / 6)) s}"
        done
    done
    [ "$device" = 1 ] || return "$result"
    top=$(peak | tail -n 1 | cut -f 2)
    say ''
    say "Largest square bf16 product here: ${top:-not measured} TFLOP/s."
    [ -z "$top" ] || figure peak "$top"
    return "$result"
}

case $part in
build) part_build ;;
tests) part_tests ;;
sanitize) part_sanitize ;;
bits) part_bits ;;
floor) part_floor ;;
modes) part_modes ;;
speed) part_speed ;;
*) exit 2 ;;
esac
