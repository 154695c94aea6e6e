# SPDX-License-Identifier: Apache-2.0
# Parts sanitize-*: compute-sanitizer's tools on the ops, and on a planted fault each;
# sanitize-tensor: two of them on the kernels for tensor cores alone. Read by gpu_part.sh, whose
# words and variables it uses.
# shellcheck shell=sh disable=SC2016,SC2154 # as there

sanitized='test_cuda_ops test_cuda_step test_cuda_leaf_hashes test_cuda_linear_modes test_cuda_rows_modes
    test_cuda_attention_modes test_cuda_tensor test_cuda_library'

# What a library's kernels do in their own shared memory is the library's affair; what they touch of
# our memory is not, so memcheck looks at them, too. initcheck does not know of writes by kernels
# that it does not watch, so there the program with a library is left out instead. Names are
# mangled.
#
# racecheck alone looks at all kernels of test_cuda_library: where it leaves out cuBLAS's, one of these
# ends with an illegal access in a small bf16 product (Xid 13), even where it looks at no kernel at
# all, while it finds nothing where it looks at each. So that end is the tool's.
library_kernels='regex=cublas|cutlass|xmma|nvjet|gemm|gemv|splitK'

sanitize_one() { # TOOL PROGRAM SECONDS [OPTION...]
    tool=$1 name=$2 share=$3
    shift 3
    job sanitize_one_told "$name" "$out/$part-$tool-$name.log" "$share" env "TWINSTEP_BACKEND=$module" \
        compute-sanitizer --tool "$tool" --error-exitcode 9 "$@" "$build/bin/$name"
}

sanitize_one_told() { # PROGRAM
    told_by=$out/$part-$tool-$1.log
    if is_late "$status"; then
        lines=$(grep '^========= *[A-Z]' "$told_by" | grep -vc 'COMPUTE-SANITIZER')
        say "| \`$1\` | slower than $most s; lines of findings until then: $lines |"
        [ "$lines" = 0 ] || result=1
        [ "$result" = 1 ] || result=124
        return
    fi
    summary=$(grep -o 'ERROR SUMMARY.*\|RACECHECK SUMMARY.*' "$told_by" | tail -n 1)
    say "| \`$1\` | ${summary:-no summary}, exit status $status, $seconds s |"
    [ "$status" != 0 ] || [ -z "$summary" ] || return 0
    result=1
    cp "$told_by" "$log"
}

# Runs a tool on the fault planted for it, which it must find, and then on every program, in which
# it must find nothing.
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
        share=$((limit / 6))
        case $wide-$part-$name in
        1-*-test_cuda_ops | *-sanitize-tensor-*) share=$((limit * 2 / 5)) ;;
        1-*) ;;
        *) share=$((limit - 30)) ;;
        esac
        if [ "$tool-$name" = racecheck-test_cuda_library ]; then
            sanitize_one "$tool" "$name" "$share"
        else
            sanitize_one "$tool" "$name" "$share" "$@"
        fi
    done
    jobs_end
}

sanitize_host() {
    watch=${module%/*}/twinstep_backend_watch.so
    [ -r "$watch" ] || return 77
    say 'Host: the ops through `twinstep_backend_watch.so`, which looks at every access.'
    bounded "$log" "$limit" env "TWINSTEP_BACKEND=$watch" "$build/bin/test_cuda_ops" && return 0
    block "$log"
    return 1
}

sanitize_told() { # TOOL
    set -- "$1"
    case $1 in
    memcheck) say 'memcheck. Kernels of a library are looked at, too.' ;;
    initcheck)
        say 'initcheck. It looks at memory of cudaMalloc. Reads of what nobody wrote show in the tests,'
        say 'too: their scratch begins as NaN.'
        ;;
    *)
        set -- "$1" --kernel-name-exclude "$library_kernels"
        say "$1. Kernels of a library are left out: \`$library_kernels\`."
        [ "$1" != racecheck ] || say 'In `test_cuda_library` they are looked at, too.'
        ;;
    esac
    say ''
    say '| program | |'
    say '|---|---|'
    sanitize_with "$@"
    say ''
}

part_sanitize() { # TOOL, or tensor
    if [ "$device" = 0 ]; then
        [ "$1" = memcheck ] || return 77
        sanitize_host
        return
    fi
    command -v compute-sanitizer >/dev/null || {
        say 'compute-sanitizer is neither on PATH nor where CUDA is installed.'
        return 77
    }
    device_program planted || return 1
    result=0
    tools=$1
    if [ "$1" = tensor ]; then
        tools='memcheck racecheck' sanitized=test_cuda_tensor
    fi
    for tool in $tools; do
        sanitize_told "$tool"
    done
    [ "$result" != 1 ] || block "$log" 20
    return "$result"
}
