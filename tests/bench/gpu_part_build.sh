# SPDX-License-Identifier: Apache-2.0
# Parts build and tests-*: the program as it is built here, or was elsewhere, and every test labelled
# gpu. Read by gpu_part.sh, whose words and variables it uses.
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

# Says what was built elsewhere. It must be for a machine like this one.
part_built() {
    say 'Built elsewhere (`gpu_pack.sh`):'
    block "$build/built"
    case $(sed -n 's/^machine //p' "$build/built") in
    "$(uname -m)" | any) ;;
    *)
        say "**This machine is $(uname -m).**"
        return 1
        ;;
    esac
}

part_build() {
    [ "$prebuilt" = 0 ] || {
        part_built
        return
    }
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
    say "Built in $(($(date +%s) - began)) s: $targets."
}

# ---- tests ----

# Tests that train, on both machines; all others ask single kernels.
trainings='^gpu_test_(cuda_backend|cuda_modes|golden_curves|invariance_roots|model_gradients)$'

# Prints a row of the table for each line of ctest that tells a result.
ctest_rows() {
    sed -n 's/^ *[0-9]*\/[0-9]* Test *#[0-9]*: \([^ ]*\) \.*\**\(.*[^ ]\)  *\([0-9.]*\) sec.*$/| `\1` | \2 | \3 |/p' |
        sed 's/|  *\([A-Z]\)/| \1/'
}

tests_by_ctest() { # ops | trainings
    chosen=-R
    [ "$1" = trainings ] || chosen=-E
    # The shell that is started reads its own words.
    # shellcheck disable=SC2016
    bounded "$log" "$limit" sh -c \
        'cd "$1" && exec ctest -L "^gpu$" "$3" "$4" --output-on-failure --timeout "$2"' \
        sh "$build" $((limit / 2)) "$chosen" "$trainings"
    status=$?
    ctest_rows <"$log" >>"$out/$part.md"
    ! grep -q 'Skipped' "$log" || skipped=1
    ! grep -q ' Passed ' "$log" || passed=1
    [ "$status" = 0 ] || is_late $status || failed=1
}

# Begins the test of one line of tests.txt (gpu_tests.py) as ctest would.
test_of_list() { # NAME PROGRAM ARGUMENTS ENVIRONMENT
    name=$1
    # The last two are lists of words.
    # shellcheck disable=SC2046,SC2086
    set -- env $(printf '%s' "$4" | sed "s|TWINSTEP_BACKEND=auto|TWINSTEP_BACKEND=$module|") "$build/$2" $3
    # shellcheck disable=SC2016
    job test_told "$name" "$out/$part-$name.log" $((limit / 2)) \
        sh -c 'cd "$1" && shift && exec "$@"' sh "$build" "$@"
}

test_told() { # NAME
    case $status in
    0) told=Passed passed=1 ;;
    77) told=Skipped skipped=1 ;;
    124 | 137) told="slower than $most s" late=1 ;;
    *) told="Failed, status $status" failed=1 ;;
    esac
    say "| \`$1\` | $told | $seconds |"
    [ "$told" = Passed ] || {
        printf -- '---- %s: %s\n' "$1" "$told"
        tail -n 30 "$out/$part-$1.log"
    } >>"$log"
}

tests_of_list() { # ops | trainings
    inverse=''
    [ "$1" = trainings ] || inverse=-v
    : >"$log"
    while IFS='|' read -r name program_of arguments environment; do
        printf '%s\n' "$name" | grep -Eq $inverse "$trainings" || continue
        test_of_list "$name" "$program_of" "$arguments" "$environment"
    done <"$build/tests.txt"
    jobs_end
    status=0
    [ "$late" = 0 ] || status=124
}

part_tests() { # ops | trainings
    passed=0 failed=0 skipped=0 late=0 status=0
    say '| test | result | seconds |'
    say '|---|---|---:|'
    if [ "$prebuilt" = 1 ]; then
        tests_of_list "$1"
    else
        tests_by_ctest "$1"
    fi
    [ $failed = 0 ] || {
        block "$log" 60
        return 1
    }
    is_late $status && {
        say ''
        say 'There was no time for all of them.'
        return 124
    }
    [ $passed = 1 ] || return 77
    # on the host, tests that need a device and use no module are skipped
    [ "$device" = 0 ] || [ $skipped = 0 ]
}
