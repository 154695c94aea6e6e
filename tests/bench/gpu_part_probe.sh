# SPDX-License-Identifier: Apache-2.0
# Parts probe and env: what the device and its driver can and cost (probe.cu), and what twinstep says
# of them. Read by gpu_part.sh, whose words and variables it uses.
# shellcheck shell=sh disable=SC2016,SC2154 # as there

part_probe() {
    [ "$device" = 1 ] || return 77
    device_program probe || return 1
    bounded "$log" 90 "$build/probe"
    status=$?
    say '| | | |'
    say '|---|---:|---|'
    awk -F '\t' 'NF == 4 { printf "| %s | %s%s | %s |\n", $1, $2, $3 == "" ? "" : " " $3, $4 }' \
        "$log" >>"$out/$part.md"
    awk -F '\t' 'NF == 4 { print "probe-" $1, $2 }' "$log" >>"$out/$part.figures"
    [ $status != 0 ] || return 0
    say ''
    block "$log" 5
    return 1
}

# On a device twinstep must see one.
part_env() {
    bounded "$log" 60 "$program" env
    status=$?
    block "$log" 80
    [ "$device" = 0 ] || ! grep -q '^ *cuda  *none' "$log" || return 1
    return $status
}
