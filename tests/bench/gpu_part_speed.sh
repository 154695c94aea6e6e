# SPDX-License-Identifier: Apache-2.0
# Parts peak and speed-*: tokens per second beside PyTorch. Read by gpu_part.sh behind
# gpu_part_train.sh, whose words and variables it uses.
# shellcheck shell=sh disable=SC2016,SC2154 # as there

has_torch() {
    bounded "$out/$part.torch" 60 python3 -c \
        'import torch, sys; sys.exit(not torch.cuda.is_available())'
}

# Measures the largest bf16 product in TFLOP/s, through PyTorch where it is installed, else through
# cuBLAS.
part_peak() {
    [ "$device" = 1 ] || return 77
    if has_torch; then
        by=PyTorch
        bounded "$log" $((limit / 2)) python3 "$bench/torch_train.py" peak
    else
        by=cuBLAS
        device_program peak && bounded "$log" $((limit / 2)) "$build/peak"
    fi
    top=$(awk -F '\t' '$1 == "peak" { print $2 }' "$log")
    [ -n "$top" ] || {
        block "$log" 20
        return 77
    }
    say "Largest square bf16 product here, through $by: $top TFLOP/s."
    figure peak "$top"
}

# Prints what a row of the table of speeds computes, in 10^12 operations; part_speed says how they
# are counted.
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
    passes=$(field 7 "$line") # of bench_train alone
    [ -z "$passes" ] || figure "passes-$model-$1" "$passes"
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

ours_told() {
    printf 'micro-batches of %s pairs, %s GiB, %s updates' "$micro" "$(field 9 "$line")" \
        "$(field 8 "$line")"
}

# Seconds that PyTorch eager has, whatever the part's limit: a start of Python, PyTorch and CUDA takes
# most of them, and did not end within 15 on an H200's machine.
eager_least=30

part_speed() { # MODEL
    model_of "$1"
    result=77 ours=''
    say "DPO with cached reference, $pairs pairs of 2 x $length tokens, bf16. PyTorch: autocast over f32"
    say 'parameters, fused AdamW, scaled_dot_product_attention, the whole batch at once, logits of'
    say 'response tokens only; compile: the block, and the head with the loss; updates behind each other'
    say 'without a wait, mean of a block of them. twinstep: mode `fast`, or the one named, f32 masters; the'
    say 'host waits behind each phase.'
    say 'TFLOP/s counts, for all of them, 6 x (tokens x layers x (4 hidden^2 + 3 hidden x MLP) + rows of'
    say 'logits x hidden x vocabulary) for linear layers, forward and both gradients, and 6 x layers x'
    say 'hidden x length x tokens for causal attention: 2 products forward and 4 backward, over half of'
    say 'the keys. Embedding, norms, rotary, optimizer, and scores made again are not counted.'
    say ''
    speed_ours
    say '| | | s per update | tokens/s | TFLOP/s |'
    say '|---|---|---:|---:|---:|'
    speed_row twinstep "$(ours_told)"
    # At 125M part modes tells it.
    if [ "$model" = 1B ] && [ -n "$ours" ]; then
        train deterministic bf16 "$micro" $((limit / 5))
        speed_row deterministic "$(ours_told)"
    fi
    if [ "$device" = 0 ] || ! has_torch; then
        say '| PyTorch | not measured: no PyTorch with a device | | | |'
        return "$result"
    fi
    # What was compiled is kept for the next model, and for a part that is done again.
    TORCHINDUCTOR_CACHE_DIR=$out/compiled
    export TORCHINDUCTOR_CACHE_DIR
    for how in eager compile; do
        set -- "$how" "$updates" "$data" "$layers" "$hidden" "$heads" "$mlp" "$vocab" "$pairs"
        seconds=$((limit / 4))
        [ "$seconds" -ge "$eager_least" ] || seconds=$eager_least
        [ "$how" = eager ] || {
            set -- "$@" --compile
            seconds=$limit # all that is left
        }
        measured "$how" "$seconds" python3 "$bench/torch_train.py" train "$@"
        speed_row "$how" PyTorch
    done
    return "$result"
}
