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

bits_case() { # MODE DTYPE
    name=$1-$2 mode=$1
    set -- --set "common.numerics.mode=$1" --set "common.numerics.param=$2" \
        --set "common.numerics.compute=$2"
    [ "$mode" != shuffled ] || set -- "$@" --set common.numerics.order_seed=1
    # $tiny is a list of words.
    # shellcheck disable=SC2086
    job bits_told "$name" "$out/$part-$name.log" "$share" "$program" run --allow-modules "$out/$part.yaml" \
        "$@" $tiny --quiet --overwrite -o "$out/$part-$name.h5"
}

bits_told() { # MODE-DTYPE
    told_by=$out/$part-$1.log
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
        told="slower than $most s, not judged"
        [ "$result" = 1 ] || result=124
        ;;
    *) told='**not equal**' result=1 ;;
    esac
    say "| ${1%-*} | ${1#*-} | $told | $seconds |"
    figure "$part-$1" "$status"
    [ "$status" != 1 ] || block "$told_by" 30
    rm -f "$out/$part-$1.h5"
}

part_bits() { # UPDATES
    steps=$1 result=77 share=$((limit * 2 / 5))
    [ "$wide" = 1 ] || share=$limit
    bits_scenario >"$out/$part.yaml"
    say "$steps updates, digests of every phase, activation and tensor of each; $wide of them at a time."
    say ''
    say '| mode | param, compute | CPU = GPU | seconds |'
    say '|---|---|---|---:|'
    for case in invariant:f32 invariant:bf16 shuffled:f32 shaped:f32; do
        bits_case "${case%:*}" "${case#*:}"
    done
    jobs_end
    return "$result"
}
