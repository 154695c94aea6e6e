# SPDX-License-Identifier: Apache-2.0
# Part floor: twinstep noise by dtype and mode. Read by gpu_part.sh, whose words and variables it
# uses.
# shellcheck shell=sh disable=SC2016,SC2034,SC2154 # as there

# Tells what `twinstep noise` printed with exit status $status: 0 where all was equal, 1 where something
# was not.
floor_told() { # NAME
    told_by=$out/floor-$1.txt
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
    name=$1 seconds=$2
    shift 2
    job floor_told "$name" "$out/floor-$name.txt" "$seconds" "$program" noise --allow-modules \
        --backend cuda --set "common.numerics.backend_module=$module" --quiet "$@"
}

# Measures the deep model over one update, by layer, so that what grows towards the first layer can
# show. In one case the switches are timed, too.
floor_deep() { # MODE DTYPE SECONDS
    training "$1" "$2" "$pairs"
    deep_mode=$1 deep_name=$1-$2 share=$3
    set --
    for word in $words; do
        set -- "$@" --set "$word"
    done
    floor_of "deep-$deep_name" "$share" --modes "$deep_mode" --dtypes own --steps 1 \
        --repeat "$noise_repeat" "$@"
    [ "$device:$deep_name" = 1:fast-bf16 ] || return 0
    floor_of "switches-$deep_name" "$share" --switches --steps 1 "$@"
}

floor_small() { # MODE DTYPE SECONDS
    set -- "$1-$2" "$3" --modes "$1" --steps "$noise_steps" --repeat "$noise_repeat" --dtypes "$2"
    case $1 in
    *-tf32)
        set -- "$1" "$2" --modes "${1%-*}" --steps "$noise_steps" --repeat "$noise_repeat" --dtypes f32 \
            --set common.numerics.product=tf32
        ;;
    esac
    # Of the host, a list of words that makes the training small.
    # shellcheck disable=SC2086
    floor_of "$@" $tiny
}

# By layer and by op come first, then the small trainings.
part_floor() {
    result=77
    say "Hypotheses 21 and 24: two runs of one configuration, first update that differs; $noise_steps"
    say "updates, worst of $noise_repeat. tf32 is \`numerics.product\` over f32. \`file\`: a floor file of"
    say '99 pairs of runs.'
    each=$((limit / 10)) large=$((limit / 6))
    [ "$wide" = 1 ] || { each=$((limit / 4)) large=$((limit / 2)) threads=2; }
    model_of deep
    say "\`deep\`: $layers layers of $hidden, batches of $pairs pairs of rows of $length tokens; \`ops\`: single"
    say "ops; the others: the small model of \`noise\`. $wide of them ran at a time."
    for pair in $deep; do
        floor_deep "${pair%:*}" "${pair#*:}" $large
    done
    [ "$device" = 0 ] || for mode in $noise_modes; do
        floor_of "ops-$mode" $large --ops --modes "$mode" --dtypes f32,bf16
    done
    [ "$device" = 0 ] || floor_of file $large --modes fast --dtypes bf16 --steps "$noise_steps" \
        --output "$out/floor.h5" --overwrite
    for mode in $noise_modes; do
        for dtype in $dtypes; do
            floor_small "$mode" "$dtype" $each
        done
    done
    jobs_end
    return "$result"
}
