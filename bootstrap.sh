#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From a checkout to a result, on Debian 12, Ubuntu 24.04 and Ubuntu 22.04:
#
#   sh bootstrap.sh demo     install what building needs, build, run `twinstep demo`
#   sh bootstrap.sh test     install what tests need, build and test in every way listed at stages()
#   sh bootstrap.sh nightly  what `test` leaves out: the long proofs, and in every other build all
#                            cases and all instruction sets; hours
#   sh bootstrap.sh build    as demo, without running it
#   sh bootstrap.sh package  as build, and make a .deb of it in build/default
#
# Only packages of the distribution are downloaded, after they are named. What is done is skipped.
# Exit status: that of the demo; 1 when a stage of the tests fails; 2 when set-up is impossible.
# What was tried where: tried() below, and docs/INSTALL.md.
set -eu

# libgomp comes with gcc, which is 12 or later. clang's OpenMP and sanitizer runtimes have packages of their own.
# Names are the same in Debian 12 and in both Ubuntus, but those of gcc and of clang's sanitizers.
distribution=$({ . /etc/os-release && printf '%s %s' "$ID" "${VERSION_ID-}"; } 2>/dev/null) ||
    distribution=unknown
gcc=gcc clang='clang libclang-rt-14-dev'
case $distribution in
'ubuntu 24.04') clang='clang libclang-rt-18-dev' ;;
'ubuntu 22.04')
    gcc=gcc-12           # its gcc is 11
    clang=clang          # needs libclang-common-14-dev, which holds the sanitizers there
    CC=${CC-gcc-12}
    export CC
    ;;
esac
build_packages="$gcc libc6-dev cmake ninja-build pkg-config
    libhdf5-dev libgsl-dev libfyaml-dev libjansson-dev nettle-dev
    zlib1g-dev liblzma-dev libzstd-dev libsqlite3-dev"
package_packages="$build_packages dpkg-dev file"
test_packages="$package_packages libcmocka-dev libmpfr-dev python3 python3-h5py python3-venv
    python3-matplotlib python3-nbclient python3-ipykernel python3-pytest
    libopenblas0-openmp
    $clang libomp-dev zsh"
count_packages=valgrind # test instructions, which is skipped without
mpi_packages='openmpi-bin libopenmpi-dev' # tests labelled mpi, which are skipped without

say() {
    printf 'bootstrap: %s\n' "$*"
}

give_up() {
    printf 'bootstrap: error: %s\n' "$*" >&2
    exit 2
}

# The packages among "$@" that are not installed.
missing_of() {
    for package in "$@"; do
        state=$(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null || true)
        case $state in
        ?i*) ;;
        *) printf ' %s' "$package" ;;
        esac
    done
}

# Says before anything is installed what nobody has tried.
tried() {
    case "$distribution $1" in
    'debian 12 '* | 'ubuntu 24.04 package' | 'ubuntu 22.04 package') ;;
    'ubuntu 24.04 test' | 'ubuntu 22.04 test')
        say "the tests have not been run on $distribution; building and the demo have" ;;
    *) say "this has not been tried on $distribution, only on Debian 12 and Ubuntu 22.04, 24.04" ;;
    esac
}

install_packages() {
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        give_up "no apt-get: neither Debian nor Ubuntu. Install the equivalents of these packages:
    $(echo "$@")
then: cmake --preset default && cmake --build --preset default"
    fi
    missing=$(missing_of "$@")
    [ -n "$missing" ] || return 0
    say "installing these packages and what they depend on:$missing"
    as_root=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || give_up "not root, and there is no sudo. As root, run:
    apt-get update && apt-get install --no-install-recommends$missing"
        as_root=sudo
    fi
    apt='env DEBIAN_FRONTEND=noninteractive apt-get'
    # $as_root, $apt and $missing are lists of words.
    $as_root $apt -q update || say 'apt-get update failed; trying with the lists that are there'
    $as_root $apt -q -y install --no-install-recommends $missing ||
        give_up "apt-get could not install:$missing"
}

# Configures preset $1, with $configured besides, unless that was done with the presets as they are.
# Ninja sees all the rest.
configured=
configure() {
    said="$configured $(cat CMakePresets.json)"
    if [ ! -f "build/$1/build.ninja" ] || [ "$said" != "$(cat "build/$1/presets.json")" ]; then
        cmake --preset "$1" $configured && printf '%s\n' "$said" >"build/$1/presets.json"
    fi
}

build() {
    configure "$1" && $beside cmake --build --preset "${2-$1}"
}

# Builds preset $1 while the tests of the stage before it run: these wait for processes and pipes,
# too, and a stage ends with one test alone. The priority is the lowest, so that no test waits for a
# compiler.
beside= ahead=
build_ahead() {
    [ -n "$1" ] || return 0
    beside='nice -n 19'
    build "$1" >build/ahead.log 2>&1 &
    ahead=$1 ahead_id=$!
    beside=
}

# Builds preset $1 with the targets of build preset $2, or waits for what build_ahead began.
build_stage() {
    [ "$1" = "$ahead" ] || {
        build "$1" "$2"
        return
    }
    ahead= status=0
    wait "$ahead_id" || status=$?
    cat build/ahead.log
    return $status
}

# ThreadSanitizer of clang 14 needs memory maps that new kernels give only without randomisation, and
# clang's OpenMP runtime tells it about forks and joins through libarcher, which lies beside it. (Test
# sanitizer_joined fails without.)
test_preset() {
    run=
    if [ "$1" = tsan ]; then
        if setarch -R true 2>/dev/null; then run='setarch -R'; fi
        runtime=$(ldd build/tsan/bin/race | sed -n 's/^.*libomp.* => \(.*\) (.*$/\1/p')
        OMP_TOOL_LIBRARIES=$(dirname "$(readlink -f "$runtime")")/libarcher.so
        export OMP_TOOL_LIBRARIES
    fi
    # Some tests wait more than they compute: for processes that are killed, for locks and pipes.
    $run ctest --preset "$tests" --parallel $(($(nproc) + 1))
}

# The tests of preset $1 that failed in this run, a line each. They stand in the summary, since who
# reads a log of CI may be shown its last lines alone.
failed_tests() {
    [ ! -f "build/$1/Testing/Temporary/LastTestsFailed.log" ] ||
        sed -n 's/^[0-9]*:/                  /p' "build/$1/Testing/Temporary/LastTestsFailed.log"
}

# One stage: preset $1, told as "$2", with the tests of preset $3 or, where that is "", of its own;
# preset $4 is built meanwhile. A stage that fails does not stop the next ones.
stage() {
    began=$(date +%s) tests=${3:-$1}
    printf '\n== %s (%s)\n' "$2" "$1"
    rm -f "build/$1/Testing/Temporary/LastTestsFailed.log"
    if build_stage "$1" "$tests" && build_ahead "${4-}" && (test_preset "$1"); then
        result=passed
    else
        result=FAILED failed=1
    fi
    summary="$summary
  $(printf '%-8s %4d s  %-9s %s' $result $(($(date +%s) - began)) "$1" "$2")"
    names=$(failed_tests "$1")
    [ -z "$names" ] || summary="$summary
$names"
}

# Where CMake looks for nvcc (cmake/cuda.cmake).
path_of_cuda() {
    printf '%s' "$PATH:${CUDA_PATH:+$CUDA_PATH/bin:}/usr/local/cuda/bin"
}

nvcc_is_there() {
    PATH=$(path_of_cuda) command -v nvcc >/dev/null
}

# The module for devices, compiled and linked. The program of the first stage loads it, and without a
# device says in one line what is missing.
module_for_devices() {
    cmake --preset cuda &&
        cmake --build --preset cuda --target twinstep_cuda || return 1
    status=0
    said=$(build/strict/bin/twinstep check --allow-modules lr-set-before-step \
        --set common.numerics.backend=cuda \
        --set "common.numerics.backend_module=$PWD/build/cuda-module/twinstep_cuda.so" 2>&1) ||
        status=$?
    printf '%s\n' "$said"
    case $status:$said in
    0:*) ;;
    2:*'cuda: no NVIDIA driver'* | 2:*'cuda: no device'* | 2:*'cuda: expected a device'*) ;;
    *) return 1 ;;
    esac
}

# Looks at the machine code of that module, which the tests of the first stage did not have yet. Returns
# 77 where a test was skipped: there is no cuobjdump, which some toolkits come without.
code_for_devices() {
    status=0
    said=$(ctest --test-dir build/strict --no-tests=error --output-on-failure \
        -R '^cuda_(resources|sass)$' 2>&1) || status=$?
    printf '%s\n' "$said"
    case $status:$said in
    0:*'(Skipped)'*) ;;
    *) return $status ;;
    esac
    say 'nobody looked at the kernels in the module (cuda_resources, cuda_sass): there is no cuobjdump
    with nvdisasm. A CUDA toolkit has both in packages of their own (of CUDA 13.0 cuda-cuobjdump-13-0
    and cuda-nvdisasm-13-0), and so has a Python environment that TWINSTEP_TORCH_VENV names: one with
    PyTorch (tests/python/make_torch_venv.sh), or with nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm'
    return 77
}

# One line of the summary: what was done ended with status $1, $2 seconds ago, of "$3".
module_line() {
    case $1 in
    0) result=passed ;;
    77) result=skipped ;;
    *) result=FAILED failed=1 ;;
    esac
    summary="$summary
  $(printf '%-8s %4d s  %-9s %s' $result $(($(date +%s) - $2)) cuda "$3")"
}

# Two lines, since each may lack a tool that the other has.
module_stage() {
    began=$(date +%s) made=77 looked=77
    if nvcc_is_there; then
        printf '\n== the module for devices (cuda)\n'
        made=0
        module_for_devices || made=1
    fi
    module_line $made "$began" 'nvcc: twinstep_cuda.so'
    began=$(date +%s)
    if [ $made = 0 ]; then
        looked=0
        code_for_devices || looked=$?
    fi
    module_line $looked "$began" 'cuobjdump: what ptxas made of the kernels in it'
}

# What each stage finds that no other does: strict finds wrong results, and warnings; asan reads and
# writes outside of an object and arithmetic that C leaves undefined, of kernels in one number pair
# (nightly in all, TWINSTEP_SANITIZE_PAIRS); tsan races of loops of OpenMP; clang-o3 and o0 bits that
# a compiler or an optimisation level moves. Kernels as gcc ships them, at -O3, are compared with the
# goldens nightly (TWINSTEP_KERNELS_AS_PORTABLE). The module for devices is compiled nightly: by default
# gcc compiles all of its kernels as C that C++ takes, too, and runs them on the host, and, where nvcc
# is, tests labelled cuda look at what it makes of the smaller ones.
stages() {
    failed=0 summary=
    stage strict 'gcc, every warning an error: all tests but the nightly ones' '' asan
    stage asan 'address and undefined-behaviour sanitizers: tests labelled short' '' tsan
    stage tsan 'thread sanitizer: tests labelled threads' '' clang-o3
    # These two compile arithmetic for the widest instruction set alone (TWINSTEP_ONE_ISA), and what has
    # none without optimisation, as do the two before (CMakeLists.txt).
    stage clang-o3 'clang -O3: the same bits, tests labelled golden' '' o0
    stage o0 'gcc -O0: the same bits, tests labelled golden'
    printf '\nSummary, %s\n' "$(nproc) processors:$summary"
    return $failed
}

# What stages() leaves out. Ten minutes for each of 54 formats are nine hours of one processor.
nightly_stages() {
    failed=0 summary=
    configured=-DTWINSTEP_KERNELS_AS_PORTABLE=OFF
    stage strict 'gcc: the long proofs, all cases of every test, kernels as they are shipped' nightly
    configured=
    module_stage # here: the last summary of ctest in a log is that of a whole stage
    configured=-DTWINSTEP_SANITIZE_PAIRS=ON
    stage asan 'address and undefined-behaviour sanitizers: all cases, all number pairs' asan-nightly
    configured=
    stage tsan 'thread sanitizer: all cases of tests labelled threads' tsan-nightly
    configured=-DTWINSTEP_ONE_ISA=OFF
    stage clang-o3 'clang -O3: the same bits, all instruction sets' clang-o3-nightly
    stage o0 'gcc -O0: the same bits, all instruction sets' o0-nightly
    configured=
    stage fuzz 'libFuzzer: ten minutes of the processor for every format'
    printf '\nSummary, %s\n' "$(nproc) processors:$summary"
    return $failed
}

# Nothing that the caller's shell exported decides where cd goes or in which language text is.
unset CDPATH
LC_ALL=C.UTF-8
export LC_ALL
case $0 in
*/*) cd -- "${0%/*}" ;;
esac
[ -f CMakePresets.json ] || give_up 'run it as: sh path/to/bootstrap.sh demo'

case ${1-} in
demo)
    tried package
    install_packages $build_packages
    build default
    exec build/default/bin/twinstep demo
    ;;
build)
    tried package
    install_packages $build_packages
    build default
    ;;
package)
    tried package
    install_packages $package_packages
    build default
    cpack --config build/default/CPackConfig.cmake -B build/default
    ;;
test)
    tried test
    install_packages $test_packages
    (install_packages $count_packages) || say 'without valgrind nobody counts instructions'
    stages
    ;;
nightly)
    tried test
    install_packages $test_packages $mpi_packages $count_packages
    nightly_stages
    ;;
*)
    printf 'usage: sh bootstrap.sh demo | test | nightly | build | package\n' >&2
    exit 2
    ;;
esac
