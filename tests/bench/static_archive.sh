#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Packs the libraries that a build needs, static and with their headers, for a machine that has a
# compiler and CMake but neither these libraries nor a package registry:
#
#   sh tests/bench/static_archive.sh FILE.tar.gz       here, on Debian; the libraries NAME... alone:
#   sh tests/bench/static_archive.sh FILE.tar.gz NAME...
#   tar -xzf FILE.tar.gz -C FOLDER                     there
#   cmake -B build -DTWINSTEP_DEPS=FOLDER ...          there (tests/bench/gpu.sh does both)
#
# Installed Debian packages are copied; one that is not installed is downloaded and unpacked, not
# installed. Exit status 2 when a package cannot be had.
set -eu

# name: package headers libraries, the linker's order. cmocka has no static library in Debian.
table='hdf5 libhdf5-dev hdf5/serial libhdf5_serial_hl.a libhdf5_serial.a
hdf5 libaec-dev . libsz.a libaec.a
hdf5 zlib1g-dev . libz.a
gsl libgsl-dev gsl libgsl.a libgslcblas.a
libfyaml libfyaml-dev libfyaml.h libfyaml.a
jansson libjansson-dev jansson.h,jansson_config.h libjansson.a
nettle nettle-dev nettle libnettle.a
zlib zlib1g-dev zlib.h,zconf.h libz.a
liblzma liblzma-dev lzma.h,lzma liblzma.a
libzstd libzstd-dev zstd.h,zstd_errors.h libzstd.a
sqlite3 libsqlite3-dev sqlite3.h libsqlite3.a
cmocka libcmocka-dev cmocka.h,cmocka_pbc.h .
cmocka libcmocka0 . libcmocka.so.0
mpfr libmpfr-dev mpfr.h,mpf2mpfr.h libmpfr.a
mpfr libgmp-dev gmp.h libgmp.a'

give_up() {
    printf 'static_archive: error: %s\n' "$*" >&2
    exit 2
}

[ $# -ge 1 ] || give_up 'usage: sh static_archive.sh FILE.tar.gz [NAME...]'
command -v dpkg-query >/dev/null || give_up 'expected Debian (dpkg-query), found none'
case $1 in
/*) archive=$1 ;;
*) archive=$PWD/$1 ;;
esac
shift
wanted=" $* "
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/out/include" "$work/out/lib" "$work/out/links" "$work/deb"

# Prints where the files of package $1 are: this machine's root, or the folder into which its .deb
# was unpacked.
root_of() {
    if dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null | grep -q '^.i'; then
        return 0
    fi
    mkdir -p "$work/deb/$1"
    (cd "$work/deb/$1" && apt-get -q download "$1" >&2 && dpkg -x ./*.deb .) ||
        give_up "$1: neither installed nor to be downloaded"
    printf '%s' "$work/deb/$1"
}

version_of() {
    dpkg-query -W -f='${Version}' "$1" 2>/dev/null && return 0
    dpkg-deb -f "$work/deb/$1"/*.deb Version
}

# Prints the first file of "$@" that exists.
first_of() {
    for file; do
        if [ -e "$file" ]; then
            printf '%s' "$file"
            return 0
        fi
    done
    return 1
}

triplet=$(cc -dumpmachine | sed 's/-pc-/-/')
printf '%s\n' "$table" | while read -r name package headers libraries; do
    case $wanted in
    '  ' | *" $name "*) ;;
    *) continue ;;
    esac
    root=$(root_of "$package")
    for header in $(printf '%s' "$headers" | tr ',' ' '); do
        [ "$header" != . ] || continue
        from=$(first_of "$root/usr/include/$header" "$root/usr/include/$triplet/$header") ||
            give_up "$package: no header $header"
        case $header in
        hdf5/*) cp -L "$from"/*.h "$work/out/include/" ;;
        *) cp -rL "$from" "$work/out/include/" ;;
        esac
    done
    for library in $libraries; do
        [ "$library" != . ] || continue
        from=$(first_of "$root/usr/lib/$triplet/$library" "$root/usr/lib/$library") ||
            give_up "$package: no library $library"
        cp -L "$from" "$work/out/lib/$library"
        strip --strip-debug "$work/out/lib/$library"
        printf '%s\n' "$library" >>"$work/out/links/$name"
    done
    printf '%s %s\n' "$package" "$(version_of "$package")" >>"$work/out/packages"
done
uname -m >"$work/out/machine"
tar -C "$work/out" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf - . |
    gzip -9n >"$archive"
printf '%s: %s bytes, %s\n' "$archive" "$(stat -c %s "$archive")" "$(cat "$work/out/machine")"
cat "$work/out/packages"
