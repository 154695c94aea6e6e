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
    124 | 137)
        if ! grep -q '^  stratum ' "$told_by"; then
            say "$1: slower than $most s."
            return
        fi
        # An interrupted table has the strata that were done, and says that it was interrupted.
        [ "$result" = 1 ] || result=0
        say "**$1**, as far as it came in $most s"
        say ''
        block "$told_by" 100
        ;;
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

# Puts the words of a training of the deep model behind `--set` into `deep_words`.
deep_training() { # MODE DTYPE
    training "$1" "$2" "$pairs"
    deep_words=''
    for word in $words; do
        deep_words="$deep_words --set $word"
    done
}

# Measures the deep model over one update, by layer, so that what grows towards the first layer can
# show.
floor_deep() { # MODE DTYPE SECONDS
    deep_training "$1" "$2"
    # A list of words.
    # shellcheck disable=SC2086
    floor_of "deep-$1-$2" "$3" --modes "$1" --dtypes own --steps 1 --repeat 1 $deep_words
}

floor_switches() { # MODE DTYPE SECONDS
    deep_training "$1" "$2"
    # shellcheck disable=SC2086
    floor_of "switches-$1-$2" "$3" --switches --steps 1 $deep_words
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

# Runs jobs for at most COUNT at a time, if the machine has so many processors.
at_a_time() { # COUNT
    jobs_end
    wide=1
    [ "$device" = 0 ] || [ "$(nproc)" -lt $((2 * $1)) ] || wide=$1
}

# The deep trainings that must be told come first, each with its share of the processors, since their
# last stratum trains on the CPU; then the small trainings of every mode, which are mostly starts of
# processes; then single ops; then what there is time for.
part_floor() {
    result=77
    say "Hypotheses 21 and 24: two runs of one configuration, first update that differs; $noise_steps"
    say "updates, worst of $noise_repeat. tf32 is \`numerics.product\` over f32. \`file\`: a floor file of"
    say '99 pairs of runs.'
    each=$((limit / 8)) large=$((limit / 5)) ops=$((limit / 8))
    at_a_time 4
    threads=$((threads / wide))
    [ "$wide" -gt 1 ] || { each=$((limit / 10)) large=$((limit / 6)); }
    model_of deep
    say "\`deep\`: $layers layers of $hidden, batches of $pairs pairs of rows of $length tokens, one update, one"
    say "run of each stratum, numerics.threads $threads, $wide of them at a time; \`ops\`: single ops; the others: the small"
    say 'model of `noise`.'
    # A training tells its strata between two updates, and one on the CPU takes seconds.
    patience=$((limit * 3 / 20 + 1))
    for pair in $deep; do
        floor_deep "${pair%:*}" "${pair#*:}" $large
    done
    at_a_time 8
    patience=3
    for mode in $noise_modes; do
        for dtype in $dtypes; do
            floor_small "$mode" "$dtype" $each
        done
    done
    at_a_time 6
    [ "$device" = 0 ] || for mode in $noise_modes; do
        floor_of "ops-$mode" $ops --ops --modes "$mode" --dtypes f32,bf16
    done
    [ "$device" = 0 ] || floor_of file $ops --modes fast --dtypes bf16 --steps "$noise_steps" \
        --output "$out/floor.h5" --overwrite
    at_a_time 4
    for pair in $deep_more; do
        floor_deep "${pair%:*}" "${pair#*:}" $large
    done
    [ "$device" = 0 ] || floor_switches fast bf16 $large
    jobs_end
    return "$result"
}
