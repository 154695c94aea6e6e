# SPDX-License-Identifier: Apache-2.0
# Parts bits-*: a training on the CPU and on the device, digest by digest. Read by gpu_part.sh,
# whose words and variables it uses.
# shellcheck shell=sh disable=SC2016,SC2154 # as there

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

bits_begin() { # MODE DTYPE
    called=$out/$part-$1-$2 mode=$1
    set -- --set "common.numerics.mode=$1" --set "common.numerics.param=$2" \
        --set "common.numerics.compute=$2"
    [ "$mode" != shuffled ] || set -- "$@" --set common.numerics.order_seed=1
    # $tiny is a list of words.
    # shellcheck disable=SC2086
    begin "$called.log" "$share" "$program" run --allow-modules "$out/$part.yaml" "$@" $tiny --quiet \
        --overwrite -o "$called.h5"
}

bits_end() { # MODE DTYPE PROCESS SECONDS_THAT_IT_HAS
    told_by=$out/$part-$1-$2.log
    await "$3"
    status=$?
    case $status in
    0)
        told='equal, every digest'
        [ "$result" != 77 ] || result=0
        ;;
    2)
        told="not run: $(tail -n 1 "$told_by")"
        is_refusal "$told" || result=1
        ;;
    124 | 137)
        told="slower than $4 s, not judged"
        [ "$result" = 1 ] || result=124
        ;;
    *) told='**not equal**' result=1 ;;
    esac
    say "| $1 | $2 | $told | $(($(date +%s) - began)) |"
    figure "$part-$1-$2" $status
    [ "$status" != 1 ] || block "$told_by" 30
    rm -f "${told_by%.log}.h5"
}

# On a machine with threads enough all cases run at once: what takes time is the CPU's arm, which has
# one thread.
part_bits() { # UPDATES
    steps=$1 result=77 share=$((limit * 2 / 5)) together=0 order='one after another' waiting=''
    bits_scenario >"$out/$part.yaml"
    if [ "$device" = 1 ] && [ "$(nproc)" -ge 8 ]; then
        together=1 order='all at once' share=$limit
    fi
    say "$steps updates, digests of every phase, activation and tensor of each; $order."
    say ''
    say '| mode | param, compute | CPU = GPU | seconds |'
    say '|---|---|---|---:|'
    began=$(date +%s)
    for case in invariant:f32 invariant:bf16 shuffled:f32 shaped:f32; do
        if [ "$together" = 1 ]; then
            bits_begin "${case%:*}" "${case#*:}"
            waiting="$waiting $case:$child:$most"
        else
            began=$(date +%s)
            bits_begin "${case%:*}" "${case#*:}"
            bits_end "${case%:*}" "${case#*:}" "$child" "$most"
        fi
    done
    for case in $waiting; do
        IFS=: read -r mode dtype process had <<END
$case
END
        bits_end "$mode" "$dtype" "$process" "$had"
    done
    return "$result"
}
