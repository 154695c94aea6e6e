# SPDX-License-Identifier: Apache-2.0
# Part floor: twinstep noise by dtype and mode. Read by gpu_part.sh, whose words and variables it
# uses.
# shellcheck shell=sh disable=SC2016,SC2154 # as there

# Reports what `twinstep noise` printed ($told_by) with exit status $status: 0 where all was equal,
# 1 where something was not.
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
    bounded "$told_by" "$seconds" "$program" noise --allow-modules --backend cuda \
        --set "common.numerics.backend_module=$module" --quiet "$@"
    status=$?
    floor_told "$told"
}

# Measures the deep model over one update, by layer, so that what grows towards the first layer can
# show. In one case the switches are timed, too.
floor_deep() { # MODE DTYPE SECONDS
    training "$1" "$2" "$pairs"
    deep_name=$1-$2 seconds=$3
    set --
    for word in $words; do
        set -- "$@" --set "$word"
    done
    floor_of "deep-$deep_name" "$seconds" --modes "${deep_name%-*}" --dtypes own --steps 1 \
        --repeat "$noise_repeat" "$@"
    [ "$device:$deep_name" = 1:fast-bf16 ] || return 0
    floor_of "switches-$deep_name" "$seconds" --switches --steps 1 "$@"
}

part_floor() {
    result=77
    say "Hypotheses 21 and 24: two runs of one configuration, first update that differs; $noise_steps"
    say "updates, worst of $noise_repeat. tf32 is \`numerics.product\` over f32. \`file\`: a floor file of"
    say '99 pairs of runs.'
    each=$((limit / 10))
    model_of deep
    say "\`deep\`: $layers layers of $hidden, batches of $pairs pairs of rows of $length tokens; the others:"
    say 'the small model of `noise`.'
    [ "$device" = 0 ] || floor_of file $((limit / 4)) --modes fast --dtypes bf16 \
        --steps "$noise_steps" --output "$out/floor.h5" --overwrite
    for pair in $deep; do
        floor_deep "${pair%:*}" "${pair#*:}" $((limit / 6))
    done
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
