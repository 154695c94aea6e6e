#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One part of tests/bench/gpu.sh, which says what each is and starts this file:
#
#   GPU_MODULE=... GPU_DEPS=... GPU_BUILD=... GPU_OUT=... GPU_LIMIT=... sh gpu_part.sh PART
#
# Writes PART.md (its section of the report), PART.figures (lines KEY VALUE) and logs into GPU_OUT.
# Exit status: 0 it held, 77 nothing could be measured, 124 there was no time for all that must hold,
# else it failed. Every program is bounded, so what there is by GPU_LIMIT is told.
# shellcheck disable=SC2016 # what is in backticks is Markdown
set -u
part=$1 module=$GPU_MODULE deps=$GPU_DEPS build=$GPU_BUILD out=$GPU_OUT limit=$GPU_LIMIT
bench=$(cd -- "${0%/*}" && pwd) || exit 2
source=${bench%/tests/bench}
program=$build/bin/twinstep
threads=$(nproc)
log=$out/$part.log

# What the last program leaves of the limit is for the report.
deadline=$(($(date +%s) + limit - limit / 30 - 1))
child=''
trap '[ -z "$child" ] || kill "$child"; exit 124' TERM

# Sizes: NAME LAYERS HIDDEN HEADS MLP VOCAB PAIRS LENGTH; both models have the head tied.
if [ "$module" = auto ]; then
    device=1 steps=1000 updates=10 dtypes='f32 tf32 bf16 f16' noise_steps=3 noise_repeat=3 tiny=
    noise_modes='invariant deterministic fast atomic shuffled'
    models='125M:12:768:12:2048:50304:8:512 1B:16:2048:16:8192:50304:8:512' gib=60
else
    device=0 steps=2 updates=2 dtypes='f32' noise_steps=1 noise_repeat=1 threads=1
    noise_modes='invariant atomic'
    tiny='--set common.model.hidden=16 --set common.model.layers=1 --set common.model.mlp=24
        --set common.model.heads=2 --set common.batch.size=2 --set common.batch.micro=1'
    models='125M:1:32:2:48:300:2:16 1B:1:32:2:48:300:2:16' gib=1
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

# COMMAND with all that it says in FILE, at most SECONDS of what is left; `most` is how long it had.
# Status 124 or 137: that was too short.
bounded() { # FILE SECONDS COMMAND...
    file=$1 most=$2
    shift 2
    rest=$((deadline - $(date +%s)))
    [ "$most" -le "$rest" ] || most=$rest
    if [ "$most" -lt 1 ]; then
        most=0
        : >"$file"
        return 124
    fi
    timeout -k 5 "$most" "$@" >"$file" 2>&1 &
    child=$!
    wait "$child"
    ended=$?
    child=''
    return "$ended"
}

is_late() { # STATUS
    [ "$1" = 124 ] || [ "$1" = 137 ]
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
    targets='twinstep label_gpu bench_train bench_linear'
    if [ "$device" = 1 ]; then
        set -- "$@" -DTWINSTEP_CUDA=ON
        targets="$targets twinstep_cuda"
        NVCC_APPEND_FLAGS='--threads 0' # its targets side by side
        export NVCC_APPEND_FLAGS
    fi
    began=$(date +%s)
    bounded "$log" "$limit" cmake "$@" || {
        block "$log" 30
        return 1
    }
    # $targets is a list of words.
    # shellcheck disable=SC2086
    bounded "$log" "$limit" cmake --build "$build" --parallel "$(nproc)" --target $targets || {
        status=$?
        block "$log" 30
        return $status
    }
    say "Built in $(($(date +%s) - began)) s: $targets. \`twinstep env\`:"
    bounded "$out/env" 60 "$program" env || return 1
    block "$out/env" 60
}

# ---- tests ----

part_tests() {
    # The shell that is started reads its own words.
    # shellcheck disable=SC2016
    bounded "$log" "$limit" sh -c 'cd "$1" && exec ctest -L "^gpu$" --output-on-failure --timeout "$2"' \
        sh "$build" $((limit / 2))
    status=$?
    say '| test | result | seconds |'
    say '|---|---|---:|'
    sed -n 's/^ *[0-9]*\/[0-9]* Test *#[0-9]*: \([^ ]*\) \.*\**\(.*[^ ]\)  *\([0-9.]*\) sec.*$/| `\1` | \2 | \3 |/p' \
        "$log" | sed 's/|  *\([A-Z]\)/| \1/' >>"$out/$part.md"
    is_late $status && {
        say ''
        say "Ran past $most s; what is not above was not done."
        return 124
    }
    grep -q ' Passed ' "$log" || return 77
    [ "$status" = 0 ] || {
        block "$log" 60
        return 1
    }
    # On the host, what needs a device without a module is skipped.
    [ "$device" = 0 ] || ! grep -q 'Skipped' "$log" || return 1
}

# ---- sanitize ----

sanitized='test_cuda_ops test_cuda_step test_cuda_leaves test_cuda_linear_modes test_cuda_rows_modes
    test_cuda_attention_modes test_cuda_tensor test_cuda_library'

# What a library's kernels do in their own shared memory is the library's affair; what they touch of
# ours is not, so memcheck looks at them, too. initcheck knows nothing of what a kernel wrote that it
# does not look at, so there the program with a library is left out instead. Names are mangled.
library_kernels='regex=cublas|cutlass|xmma|nvjet|gemm|gemv|splitK'

sanitize_one() { # TOOL PROGRAM SECONDS [OPTION...]
    tool=$1 name=$2 seconds=$3 told_by=$out/sanitize-$1-$2.log
    shift 3
    bounded "$told_by" "$seconds" env "TWINSTEP_BACKEND=$module" compute-sanitizer --tool "$tool" \
        --error-exitcode 9 "$@" "$build/bin/$name"
    status=$?
    if is_late $status; then
        lines=$(grep '^========= *[A-Z]' "$told_by" | grep -vc 'COMPUTE-SANITIZER')
        say "| \`$name\` | slower than $most s; lines of findings until then: $lines |"
        [ "$lines" = 0 ] || result=1
        [ "$result" = 1 ] || result=124
        return
    fi
    summary=$(grep -o 'ERROR SUMMARY.*\|RACECHECK SUMMARY.*' "$told_by" | tail -n 1)
    say "| \`$name\` | ${summary:-no summary}, exit status $status |"
    [ $status != 0 ] || [ -z "$summary" ] || return 0
    result=1
    cp "$told_by" "$log"
}

# The fault planted for a tool, which it must find; then every program, in which it must not.
sanitize_with() { # TOOL [OPTION...]
    tool=$1
    shift
    bounded "$out/sanitize-$tool-planted.log" 60 compute-sanitizer --tool "$tool" \
        --error-exitcode 9 "$@" "$build/planted" "$tool"
    if [ $? = 9 ]; then
        say '| `planted.cu` | its fault was found |'
    else
        say '| `planted.cu` | **its fault was not found** |'
        result=1
    fi
    for name in $sanitized; do
        [ -x "$build/bin/$name" ] || continue
        if [ "$tool-$name" = initcheck-test_cuda_library ]; then
            say "| \`$name\` | left out: kernels of a library |"
            continue
        fi
        seconds=$((limit / 6))
        [ "$name" != test_cuda_ops ] || seconds=$((limit * 2 / 5))
        sanitize_one "$tool" "$name" "$seconds" "$@"
    done
}

sanitize_host() {
    watch=${module%/*}/twinstep_backend_watch.so
    [ -r "$watch" ] || return 77
    say 'Host: the ops through `twinstep_backend_watch.so`, which looks at every access.'
    bounded "$log" "$limit" env "TWINSTEP_BACKEND=$watch" "$build/bin/test_cuda_ops" && return 0
    block "$log"
    return 1
}

part_sanitize() { # TOOL
    if [ "$device" = 0 ]; then
        [ "$1" = memcheck ] || return 77
        sanitize_host
        return
    fi
    command -v compute-sanitizer >/dev/null || {
        say 'compute-sanitizer is neither on PATH nor where CUDA is installed.'
        return 77
    }
    bounded "$log" 120 nvcc -arch=native -o "$build/planted" "$bench/planted.cu" || {
        block "$log"
        return 1
    }
    set -- "$1"
    case $1 in
    memcheck) say 'Kernels of a library are looked at, too.' ;;
    initcheck) say 'It looks at memory of cudaMalloc; that of tensors is managed memory.' ;;
    *)
        set -- "$1" --kernel-name-exclude "$library_kernels"
        say "Kernels of a library are left out: \`$library_kernels\`."
        ;;
    esac
    say ''
    say '| program | |'
    say '|---|---|'
    result=0
    sanitize_with "$@"
    [ $result != 1 ] || block "$log" 20
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
        bounded "$told_by" $((limit * 2 / 5)) "$program" run "$out/bits.yaml" "$@" $tiny --quiet \
            --overwrite -o "$out/bits.h5"
        status=$?
        case $status in
        0)
            told='equal, every digest'
            [ $result != 77 ] || result=0
            ;;
        2)
            told="not run: $(tail -n 1 "$told_by")"
            is_refusal "$told" || result=1
            ;;
        124 | 137)
            told="slower than $most s, not judged"
            [ $result = 1 ] || result=124
            ;;
        *) told='**not equal**' result=1 ;;
        esac
        say "| $mode | $dtype | $told | $(($(date +%s) - began)) |"
        figure "bits-$mode-$dtype" $status
        [ "$status" != 1 ] || block "$told_by" 30
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
    124 | 137) say "$1: slower than $most s." ;;
    *)
        line=$(grep -m 1 'untestable\|error' "$told_by" | sed 's/^ *//')
        say "$1: not run: $line"
        is_refusal "$line" || result=1
        ;;
    esac
}

floor_of() { # NAME SECONDS OPTION...
    told_by=$out/floor-$1.txt
    told=$1 seconds=$2
    shift 2
    bounded "$told_by" "$seconds" "$program" noise --backend cuda \
        --set "common.numerics.backend_module=$module" --quiet "$@"
    status=$?
    floor_told "$told"
}

part_floor() {
    result=77
    say "Hypotheses 21 and 24: two runs of one configuration, first update that differs; $noise_steps"
    say "updates, worst of $noise_repeat. tf32 is \`numerics.product\` over f32. \`file\`: a floor file of"
    say '99 pairs of runs.'
    each=$((limit / 10))
    if [ "$device" = 1 ]; then
        floor_of file $((limit / 3)) --modes fast --dtypes bf16 --steps "$noise_steps" \
            --output "$out/floor.h5" --overwrite
        for dtype in bf16 f32; do
            floor_of "switches-$dtype" "$each" --switches --dtypes "$dtype" --steps "$noise_steps"
        done
    fi
    for mode in $noise_modes; do
        for dtype in $dtypes; do
            set -- "$mode-$dtype" "$each" --modes "$mode" --steps "$noise_steps" --repeat "$noise_repeat"
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
    for mode in $noise_modes; do
        floor_of "ops-$mode" "$each" --ops --modes "$mode" --dtypes f32,bf16
    done
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

model_of() { # NAME; sets layers ...
    for sizes in $models; do
        [ "${sizes%%:*}" = "$1" ] || continue
        IFS=: read -r model layers hidden heads mlp vocab pairs length <<EOF
$sizes
EOF
    done
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

# Words KEY=VALUE of a training, as `words`.
training() { # MODE DTYPE MICRO [KEY=VALUE...]
    words="task=dpo data.pairs=$data data.max_len=$length batch.size=$pairs batch.micro=$3
        batch.layout=concatenated dpo.reference_batch=1 model.family=llama model.layers=$layers model.hidden=$hidden
        model.heads=$heads model.mlp=$mlp model.vocab=$vocab model.tied=true
        numerics.threads=$threads numerics.backend=cuda numerics.backend_module=$module
        numerics.mode=$1 optimizer.lr=5e-7 $(dtype_keys "$2")"
    [ "$1" != shuffled ] || words="$words numerics.order_seed=1"
    shift 3
    given=''
    for word in $words "$@"; do
        given="$given common.$word"
    done
    words=$given
}

# The last line of fields of a program, as `line`. What it had no time for is "slower than".
measured() { # NAME SECONDS COMMAND...
    called=$1
    shift
    bounded "$out/$part.line" "$@"
    status=$?
    cat "$out/$part.line" >>"$log"
    line=$(awk -F '\t' 'NF > 2 { line = $0 } END { print line }' "$out/$part.line")
    ! is_late $status || line=$(printf '%s\t-\tslower than %s s' "$called" "$most")
    [ -n "$line" ] || line=$(printf '%s\t-\tended with status %s: %s' "$called" "$status" \
        "$(tail -n 1 "$out/$part.line" | tr -d '|')")
}

train() { # MODE DTYPE MICRO SECONDS [KEY=VALUE...]
    called=$1-$2 seconds=$4
    training "$1" "$2" "$3" ${5:+"$5"}
    # A list of words.
    # shellcheck disable=SC2086
    measured "$called" "$seconds" "$build/bin/bench_train" --one "$called" "$updates" \
        $((seconds / 4)) "$gib" $words
}

# Whether `line` has figures. What is slow, refused or too large is told and is no failure.
has_figures() {
    if [ "$(field 2 "$line")" != - ] && [ -n "$(field 4 "$line")" ]; then
        [ "$result" = 1 ] || result=0
        return 0
    fi
    case $line in
    *'	slower than '* | *'may take'* | *'cannot get'*) ;;
    *) is_refusal "$line" || result=1 ;;
    esac
    return 1
}

# A row of the table of modes. FIGURE names its figures.
mode_row() { # DTYPE MODE FIGURE [KEY=VALUE]
    shown="$2${4:+, ${4#numerics.determinism.}}"
    train "$2" "$1" "$pairs" $((limit / 9)) ${4:+"$4"}
    has_figures || {
        say "| $1 | $shown | $(field 3 "$line") | | | | | |"
        return
    }
    median=$(field 4 "$line") passes=$(field 7 "$line") ratio=- ratio_of_passes=-
    [ "$shown" != fast ] || fast="$median $passes"
    if [ -n "$fast" ]; then
        ratio=$(calculate "$median / ${fast% *}")
        ratio_of_passes=$(calculate "$passes / ${fast#* }")
    fi
    rate=$(calculate "$(field 3 "$line") / $median" %.0f)
    say "| $1 | $shown | $median | $passes | $rate | $ratio | $ratio_of_passes | $(field 8 "$line") |"
    [ -n "$3" ] || return 0
    figure "seconds-$3-$1" "$median"
    figure "passes-$3-$1" "$passes"
}

linear_row() { # DTYPE MODE
    training "$2" "$1" "$pairs" model.layers=1
    # A list of words.
    # shellcheck disable=SC2086
    measured "$2-$1" $((limit / 12)) "$build/bin/bench_linear" "$2-$1" 20 $((limit / 50)) $words
    has_figures || {
        say "| $1 | $2 | $(field 3 "$line") | | |"
        return
    }
    seconds=$(field 3 "$line")
    rate=$(calculate "$(field 2 "$line") / $seconds")
    say "| $1 | $2 | $seconds | $rate | $(field 5 "$line") |"
    figure "linear-$2-$1" "$seconds"
}

linear_rows() {
    say "Linear layers alone: the seven of one layer of the $model model and the head, forward and both"
    say "gradients, $((2 * pairs * length)) rows, by the ops that a training calls; median of a round."
    say ''
    say '| dtype | mode | seconds | TFLOP/s | rounds |'
    say '|---|---|---:|---:|---:|'
    for row in f32:fast f32:invariant bf16:fast bf16:deterministic; do
        linear_row "${row%:*}" "${row#*:}"
    done
}

# What the aims need comes first.
mode_rows() {
    fast=''
    mode_row bf16 fast fast
    mode_row bf16 deterministic deterministic
    mode_row bf16 deterministic deterministic-nofill numerics.determinism.fill=none
    fast_bf16=$fast fast=''
    mode_row f32 fast fast
    mode_row f32 invariant invariant
    mode_row f32 deterministic deterministic
    fast_f32=$fast
    for mode in invariant shaped shuffled atomic; do
        fast=$fast_bf16
        mode_row bf16 "$mode" "$mode"
        fast=$fast_f32
        [ "$mode" = invariant ] || mode_row f32 "$mode" "$mode"
    done
    fast=$fast_bf16
    for switch in workspace=default order=free atomics=on split_k=on; do
        mode_row bf16 deterministic '' "numerics.determinism.$switch"
    done
}

part_modes() {
    model_of 125M
    result=77
    linear_rows
    say ''
    say "DPO update of the $model model ($layers layers, hidden $hidden, MLP $mlp, vocabulary $vocab,"
    say "$pairs pairs of 2 x $length tokens), at most $updates updates, median; no records are kept, and"
    say 'the host waits behind each phase. With a key: that switch of `numerics.determinism` alone is'
    say 'set free; `fill` is `nan` in `deterministic` of a device and `none` in `fast`.'
    say ''
    say '| dtype | mode | s per update | s forward + backward | tokens/s | x fast, update | x fast, forward + backward | updates |'
    say '|---|---|---:|---:|---:|---:|---:|---:|'
    mode_rows
    return "$result"
}

has_torch() {
    bounded "$out/$part.torch" 60 python3 -c \
        'import torch, sys; sys.exit(not torch.cuda.is_available())'
}

# TFLOP/s of the largest bf16 product, through PyTorch, or else through cuBLAS.
part_peak() {
    [ "$device" = 1 ] || return 77
    if has_torch; then
        by=PyTorch
        bounded "$log" $((limit / 2)) python3 "$bench/torch_train.py" peak
    else
        by=cuBLAS
        bounded "$log" $((limit / 2)) nvcc -O2 -o "$build/peak" "$bench/peak.cu" -lcublas &&
            bounded "$log" $((limit / 2)) "$build/peak"
    fi
    top=$(awk -F '\t' '$1 == "peak" { print $2 }' "$log")
    [ -n "$top" ] || {
        block "$log" 20
        return 77
    }
    say "Largest square bf16 product here, through $by: $top TFLOP/s."
    figure peak "$top"
}

# What a row of the table of speeds computes, in 10^12 operations; part_speed says how it is counted.
operations() { # TOKENS ROWS_OF_LOGITS
    printf '(6 * (%s * %s * (4 * %s * %s + 3 * %s * %s)' "$1" "$layers" "$hidden" "$hidden" \
        "$hidden" "$mlp"
    printf ' + %s * %s * %s) + 6 * %s * %s * %s * %s) / 1e12' "$2" "$hidden" "$vocab" "$layers" \
        "$hidden" "$length" "$1"
}

speed_row() { # NAME WORDS
    has_figures || {
        say "| $1 | $(field 3 "$line") | | | |"
        return
    }
    median=$(field 4 "$line") tokens=$(field 3 "$line")
    shape="$(field 2 "$line") parameters, $tokens tokens, $(field 6 "$line") rows of logits"
    [ "$1" != twinstep ] || ours=$shape
    if [ "$shape" != "$ours" ] && [ -n "$ours" ]; then
        say "| $1 | **another training**: $shape, twinstep has $ours | | | |"
        result=1
        return
    fi
    rate=$(calculate "$(operations "$tokens" "$(field 6 "$line")") / $median" %.8g)
    say "| $1 | $2 | $median | $(calculate "$tokens / $median" %.0f) | $(calculate "$rate") |"
    figure "seconds-$model-$1" "$median"
    figure "tflops-$model-$1" "$rate"
}

# Micro-batches are the largest for which there is memory.
speed_ours() {
    micro=$pairs
    while :; do
        train fast bf16 "$micro" $((limit * 2 / 5))
        case $line in
        *'may take'* | *'cannot get'*) ;;
        *) break ;;
        esac
        say "Micro-batches of $micro pairs: $(field 3 "$line")."
        say ''
        [ "$micro" -gt 1 ] || break
        micro=$((micro / 2))
    done
}

part_speed() { # MODEL
    model_of "$1"
    result=77 ours=''
    say "DPO with cached reference, $pairs pairs of 2 x $length tokens, bf16. PyTorch: autocast over f32"
    say 'parameters, fused AdamW, scaled_dot_product_attention, the whole batch at once, logits of'
    say 'response tokens only; compile: the block, and the head with the loss; updates behind each other'
    say 'without a wait, mean of a block of them. twinstep: f32 masters; the host waits behind each phase.'
    say 'TFLOP/s counts, for all of them, 6 x (tokens x layers x (4 hidden^2 + 3 hidden x MLP) + rows of'
    say 'logits x hidden x vocabulary) for linear layers, forward and both gradients, and 6 x layers x'
    say 'hidden x length x tokens for causal attention: 2 products forward and 4 backward, over half of'
    say 'the keys. Embedding, norms, rotary, optimizer, and scores made again are not counted.'
    say ''
    speed_ours
    say '| | | s per update | tokens/s | TFLOP/s |'
    say '|---|---|---:|---:|---:|'
    speed_row twinstep "micro-batches of $micro pairs, $(field 9 "$line") GiB, $(field 8 "$line") updates"
    if [ "$device" = 0 ] || ! has_torch; then
        say '| PyTorch | not measured: no PyTorch with a device | | | |'
        return "$result"
    fi
    for how in compile eager; do
        set -- "$how" "$updates" "$data" "$layers" "$hidden" "$heads" "$mlp" "$vocab" "$pairs"
        [ "$how" = eager ] || set -- "$@" --compile
        measured "$how" $((limit / 3)) python3 "$bench/torch_train.py" train "$@"
        speed_row "$how" PyTorch
    done
    return "$result"
}

case $part in
build) part_build ;;
tests) part_tests ;;
peak) part_peak ;;
modes) part_modes ;;
speed-*) part_speed "${part#speed-}" ;;
bits) part_bits ;;
floor) part_floor ;;
sanitize-*) part_sanitize "${part#sanitize-}" ;;
*) exit 2 ;;
esac
