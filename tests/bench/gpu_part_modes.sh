# SPDX-License-Identifier: Apache-2.0
# Part modes: what each mode costs, and linear layers alone. Read by gpu_part.sh behind
# gpu_part_train.sh, whose words and variables it uses.
# shellcheck shell=sh disable=SC2016,SC2154 # as there

# Prints a row of the table of modes, whose figures FIGURE names.
mode_row() { # DTYPE MODE FIGURE [KEY=VALUE]
    shown="$2${4:+, ${4#numerics.determinism.}}"
    [ "$kept" = --one ] || shown="$shown, recorded"
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

# The rows that the aims need come first.
mode_rows() {
    fast=''
    mode_row bf16 fast fast
    mode_row bf16 deterministic deterministic
    mode_row bf16 deterministic deterministic-nofill numerics.determinism.fill=none
    mode_row bf16 deterministic '' numerics.determinism.fill=nan
    mode_row bf16 fast streams numerics.determinism.order=free
    mode_row bf16 fast serial numerics.determinism.atomics=off
    kept=--recorded
    mode_row bf16 fast recorded
    kept=--one
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
    for switch in workspace=default order=free atomics=on split_k=off; do
        mode_row bf16 deterministic '' "numerics.determinism.$switch"
    done
}

# Computes forward and backward of `fast` with one switch changed, as a ratio to `fast`.
pays() { # FIGURE
    : >>"$out/$part.figures"
    awk -v moved="passes-$1-bf16" '
        $1 == moved { with = $2 }
        $1 == "passes-fast-bf16" { without = $2 }
        END { if (with > 0 && without > 0) printf "%.3f", with / without; else print "not measured" }
        ' "$out/$part.figures"
}

part_modes() {
    model_of 125M
    result=77
    linear_rows
    say ''
    say "DPO update of the $model model ($layers layers, hidden $hidden, MLP $mlp, vocabulary $vocab,"
    say "$pairs pairs of 2 x $length tokens), at most $updates updates, median; no records are kept but in"
    say 'the row that says so, and the host waits behind each phase. With a key: that switch of'
    say '`numerics.determinism` alone is changed; `fill` is `torch` in `deterministic` of a device and'
    say '`none` in `fast`.'
    say ''
    say '| dtype | mode | s per update | s forward + backward | tokens/s | x fast, update | x fast, forward + backward | updates |'
    say '|---|---|---:|---:|---:|---:|---:|---:|'
    mode_rows
    say ''
    say "Whether streams and atomics pay, bf16, forward and backward: \`fast\` with products on several"
    say "streams takes $(pays streams) of \`fast\`, without atomics $(pays serial). It has one stream, and"
    say 'atomics: the first below 1, or the second, says that it should not.'
    return "$result"
}
