#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds all that tests/bench/gpu.sh runs on a device, on a machine that needs none, and packs it:
#
#   sh tests/bench/gpu_pack.sh [OPTION...] FILE.tar.xz     here; FILE.tar.gz is five times as large
#   tar -xf FILE.tar.xz && sh tests/bench/gpu.sh --prebuilt .   on the device's machine, which needs
#                                                    glibc and libgomp, and no compiler or library
# OPTION
#   --architectures LIST  code for these, as -DTWINSTEP_CUDA_ARCHITECTURES takes them; default 80;90
#   --build FOLDER        default build/gpu-pack; what is built there already is not built again
#   --deps PLACE          folder or .tar.gz of static_archive.sh; default: made in --build
#   --module FILE         twinstep_cuda.so built elsewhere from the same headers; default: built here,
#                         which takes minutes
#   --program NAME        pack this test program with its tests, and not all of label gpu; it may be
#                         given several times. `bench` stands for bench_train and bench_linear, which
#                         come by default, too
#
# Programs are stripped; the tests' list is that of ctest (gpu_tests.py). A .tar.xz is small because
# the programs share most of their code and one window sees several of them. Exit status 2: something
# could not be built, and its log says why.
set -eu
LC_ALL=C.UTF-8
PATH="$PATH:${CUDA_PATH:+$CUDA_PATH/bin:}/usr/local/cuda/bin"
export LC_ALL PATH

usage() {
    sed -n '3,/^# Programs/{/^# Programs/!s/^# \{0,1\}//p;}' "$0" >&2
    exit 2
}

give_up() {
    printf 'gpu_pack: error: %s\n' "$*" >&2
    exit 2
}

architectures='80;90' build=build/gpu-pack deps='' module='' only=''
while [ $# -gt 0 ]; do
    case $1 in
    --architectures | --build | --deps | --module | --program)
        [ $# -ge 2 ] || usage
        case $1 in
        --architectures) architectures=$2 ;;
        --build) build=$2 ;;
        --deps) deps=$2 ;;
        --module) module=$2 ;;
        --program) only="$only $2" ;;
        esac
        shift 2
        ;;
    -*) usage ;;
    *) break ;;
    esac
done
[ $# = 1 ] || usage

absolute() {
    case $1 in
    /* | '') printf '%s' "$1" ;;
    *) printf '%s/%s' "$PWD" "$1" ;;
    esac
}
archive=$(absolute "$1") build=$(absolute "$build") deps=$(absolute "$deps")
module=$(absolute "$module")
bench=$(cd -- "$(dirname -- "$0")" && pwd)
source=${bench%/tests/bench}
case $archive in
*.tar.xz) command -v xz >/dev/null || give_up 'expected xz for a .tar.xz, found none' ;;
*.tar.gz) ;;
*) usage ;;
esac
command -v nvcc >/dev/null || give_up 'expected nvcc on PATH, in CUDA_PATH/bin or /usr/local/cuda/bin'

mkdir -p "$build"
log=$build/pack.log
logged() { # WHAT COMMAND...
    what=$1
    shift
    printf 'gpu_pack: %s ...\n' "$what"
    "$@" >"$log" 2>&1 || {
        tail -n 40 "$log" >&2
        give_up "$what failed"
    }
}

if [ -z "$deps" ]; then
    deps=$build/deps.tar.gz
    logged libraries sh "$bench/static_archive.sh" "$deps"
fi
case $deps in
*.tar.gz)
    mkdir -p "$build/deps"
    tar -xzf "$deps" -C "$build/deps"
    deps=$build/deps
    ;;
esac

set -- -S "$source" -B "$build" "-DTWINSTEP_DEPS=$deps" -DTWINSTEP_CUDA=ON \
    "-DTWINSTEP_CUDA_ARCHITECTURES=$architectures" -DTWINSTEP_TESTS_READ=. -DTWINSTEP_GPU_MODULE=auto
[ -f "$build/CMakeCache.txt" ] || ! command -v ninja >/dev/null || set -- "$@" -G Ninja
! command -v ccache >/dev/null || set -- "$@" -DCMAKE_C_COMPILER_LAUNCHER=ccache
logged configuration cmake "$@"
set -- twinstep label_gpu bench_train bench_linear
if [ -z "$module" ]; then
    set -- "$@" twinstep_cuda
    module=$build/twinstep_cuda.so
fi
logged programs cmake --build "$build" --parallel "$(nproc)" --target "$@"

pack=$build/pack
rm -rf "$pack"
mkdir -p "$pack/bin" "$pack/tests/bench" "$pack/tests/golden"
python3 "$bench/gpu_tests.py" --build "$build" >"$build/tests.all" || give_up 'no list of tests'

wanted() { # PROGRAM
    case "$only " in
    ' ' | *" $1 "*) ;;
    *) return 1 ;;
    esac
}
: >"$pack/tests.txt"
while IFS='|' read -r name program arguments environment; do
    wanted "${program#bin/}" || continue
    printf '%s|%s|%s|%s\n' "$name" "$program" "$arguments" "$environment" >>"$pack/tests.txt"
done <"$build/tests.all"

gencode=''
for architecture in $(printf '%s' "$architectures" | tr ';' ' '); do
    gencode="$gencode -gencode arch=compute_$architecture,code=sm_$architecture"
done
# It starts on a machine without the C++ libraries of this one.
device_program() { # NAME SOURCE
    # A list of words.
    # shellcheck disable=SC2086
    logged "$1" nvcc -std=c++20 -O2 $gencode -I"$source" -Xcompiler -static-libstdc++,-static-libgcc \
        -o "$pack/$1" "$2"
}
for name in probe peak planted; do
    device_program "$name" "$bench/$name.cu"
done
# Recorded by CUPTI, whose header a toolkit need not have.
if printf '#include <cupti.h>\n' | nvcc -x c -E - >/dev/null 2>&1; then
    logged kernel_times nvcc -x c -O2 -shared -Xcompiler -fPIC -cudart none -I"$source" \
        -o "$pack/kernel_times.so" "$bench/kernel_times.c" -ldl
fi
! wanted curand || device_program bin/curand "$source/tests/kernels/curand.cu"

cp "$build/bin/twinstep" "$pack/bin/"
! wanted bench || cp "$build/bin/bench_train" "$build/bin/bench_linear" "$pack/bin/"
cut -d '|' -f 2 "$pack/tests.txt" | sort -u | while read -r program; do
    [ -e "$pack/$program" ] || cp "$build/$program" "$pack/$program"
done
cp "$module" "$pack/twinstep_cuda.so"
strip "$pack"/bin/* "$pack/twinstep_cuda.so" "$pack/probe" "$pack/peak" "$pack/planted"
[ ! -e "$pack/kernel_times.so" ] || strip "$pack/kernel_times.so"
# What a program is linked with comes along where it is one of the packed libraries (cmocka has no
# static one). Nothing else may be needed but what any machine that runs PyTorch has.
for file in "$pack"/bin/* "$pack"/*.so "$pack/probe" "$pack/peak" "$pack/planted"; do
    needed=$(readelf -d "$file" | sed -n 's/^.*(NEEDED).*\[\(.*\)\]$/\1/p') || give_up "$file: not read"
    for library in $needed; do
        case $library in
        ld-linux* | libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | librt.so.1) ;;
        libgomp.so.1 | libstdc++.so.6 | libgcc_s.so.1) ;;
        *)
            [ -r "$deps/lib/$library" ] ||
                give_up "$file: expected to need no library but those of --deps, got $library"
            mkdir -p "$pack/lib"
            cp -L "$deps/lib/$library" "$pack/lib/"
            ;;
        esac
    done
done
# What tests read of the tree (TWINSTEP_TESTS_READ).
cp "$source/tests/golden/curves.txt" "$source/tests/golden/roots.txt" "$pack/tests/golden/"
mkdir -p "$pack/scenarios"
cp -r "$source/scenarios/catalog" "$pack/scenarios/"
cp "$bench"/gpu*.sh "$bench/torch_train.py" "$bench"/*.cu "$pack/tests/bench/"
# On the CPU those that read it show that all is there. The shell that is started reads its own words.
# shellcheck disable=SC2016
for words in 'test_golden_curves first' 'test_invariance_roots few'; do
    [ -x "$pack/bin/${words% *}" ] || continue
    logged "$words" sh -c 'cd "$1" && LD_LIBRARY_PATH=lib exec "bin/$2" "$3"' sh "$pack" "${words% *}" \
        "${words#* }"
done
{
    printf 'machine %s\n' "$(uname -m)"
    printf 'commit %s\n' "$(git -C "$source" describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)"
    printf 'architectures %s\n' "$architectures"
    printf 'nvcc %s\n' "$(nvcc --version | sed -n 's/^.*release //p')"
    printf 'date %s\n' "$(date -u '+%Y-%m-%d %H:%M UTC')"
} >"$pack/built"

# Programs of one kind lie side by side, so that the window sees one while it packs the next.
case $archive in
*.xz) set -- xz -T1 --lzma2=preset=1,dict=64MiB -c ;;
*) set -- gzip -9n -c ;;
esac
(cd "$pack" && find . -type f -printf '%s %p\n' | sort -rn | cut -d ' ' -f 2- >"$build/pack.files")
tar -C "$pack" --owner=0 --group=0 --numeric-owner --no-recursion -T "$build/pack.files" -cf - |
    "$@" >"$archive.new"
mv "$archive.new" "$archive"
printf '%s: %s bytes, %s files of %s bytes, %s tests\n' "$archive" "$(stat -c %s "$archive")" \
    "$(wc -l <"$build/pack.files")" "$(du -sb "$pack" | cut -f 1)" "$(wc -l <"$pack/tests.txt")"
