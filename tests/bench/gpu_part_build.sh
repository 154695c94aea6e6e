# SPDX-License-Identifier: Apache-2.0
# Parts build and tests: the program as it is built here, and every test labelled gpu. Read by
# gpu_part.sh, whose words and variables it uses.
# shellcheck shell=sh disable=SC2016,SC2154 # as there

unpack_deps() {
    case $deps in
    *.tar.gz)
        mkdir -p "$build/deps" && tar -xzf "$deps" -C "$build/deps" && deps=$build/deps
        ;;
    esac
    [ -z "$deps" ] || [ "$(cat "$deps/machine")" = "$(uname -m)" ] || {
        echo "$deps: made for $(cat "$deps/machine"), this is $(uname -m)"
        return 1
    }
}

part_build() {
    unpack_deps >>"$log" 2>&1 || return 1
    set -- -S "$source" -B "$build" "-DTWINSTEP_GPU_MODULE=$module"
    if command -v ninja >/dev/null && [ ! -f "$build/CMakeCache.txt" ]; then
        set -- "$@" -G Ninja
    fi
    [ -z "$deps" ] || set -- "$@" "-DTWINSTEP_DEPS=$deps"
    targets='twinstep label_gpu bench_train bench_linear'
    if [ "$device" = 1 ]; then
        set -- "$@" -DTWINSTEP_CUDA=ON
        targets="$targets twinstep_cuda"
        NVCC_APPEND_FLAGS='--threads 0' # its targets side by side
        export NVCC_APPEND_FLAGS
    fi
    began=$(date +%s)
    bounded "$log" "$limit" cmake "$@" || {
        block "$log" 30
        return 1
    }
    # $targets is a list of words.
    # shellcheck disable=SC2086
    bounded "$log" "$limit" cmake --build "$build" --parallel "$(nproc)" --target $targets || {
        status=$?
        block "$log" 30
        return $status
    }
    say "Built in $(($(date +%s) - began)) s: $targets. \`twinstep env\`:"
    bounded "$out/env" 60 "$program" env || return 1
    block "$out/env" 60
}

# ---- tests ----

part_tests() {
    # The shell that is started reads its own words.
    # shellcheck disable=SC2016
    bounded "$log" "$limit" sh -c 'cd "$1" && exec ctest -L "^gpu$" --output-on-failure --timeout "$2"' \
        sh "$build" $((limit / 2))
    status=$?
    say '| test | result | seconds |'
    say '|---|---|---:|'
    sed -n 's/^ *[0-9]*\/[0-9]* Test *#[0-9]*: \([^ ]*\) \.*\**\(.*[^ ]\)  *\([0-9.]*\) sec.*$/| `\1` | \2 | \3 |/p' \
        "$log" | sed 's/|  *\([A-Z]\)/| \1/' >>"$out/$part.md"
    is_late $status && {
        say ''
        say "Ran past $most s; what is not above was not done."
        return 124
    }
    grep -q ' Passed ' "$log" || return 77
    [ "$status" = 0 ] || {
        block "$log" 60
        return 1
    }
    # on the host, tests that need a device and use no module are skipped
    [ "$device" = 0 ] || ! grep -q 'Skipped' "$log" || return 1
}
