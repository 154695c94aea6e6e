# SPDX-License-Identifier: Apache-2.0
# Part bits: a training on the CPU and on the device, digest by digest. Read by gpu_part.sh, whose
# words and variables it uses.
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
        bounded "$told_by" $((limit * 2 / 5)) "$program" run --allow-modules "$out/bits.yaml" "$@" $tiny --quiet \
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
