#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Debian 12 as debootstrap makes it, with nothing else in it:
#
#   fresh_root.sh package BUILD   installs BUILD's .deb there by apt-get, runs the program, looks up
#                                 its pages, and removes it again
#   fresh_root.sh wheel WHEEL     installs the wheel there by pip, and runs program and package in one
#                                 process with netCDF4, whose HDF5 is another one; then installs
#                                 python/ from source, which has no program, in an environment of its
#                                 own
#   fresh_root.sh dockerfile      runs what the Dockerfile says, stage by stage
#
# Needs root, debootstrap and a network; skipped (77) without the first two. What pip needs is
# downloaded outside, so that its settings hold, for the Python that runs this. Everything happens in
# one temporary folder (TMPDIR). Only proc is mounted, because the program starts itself again
# through it, and it is unmounted whatever happens.
set -eu

say() {
    printf '\n== %s\n' "$*"
}

fail() {
    printf 'fresh_root: %s\n' "$*" >&2
    exit 1
}

leave() {
    status=$?
    for root in "$folder"/*/; do
        if mountpoint -q "$root/proc"; then umount "$root/proc"; fi
    done
    if grep -q " $folder/" /proc/mounts; then
        printf 'fresh_root: still mounted, not removed: %s\n' "$folder" >&2
        exit 1
    fi
    rm -rf --one-file-system "$folder"
    exit $status
}

# Makes a new root in folder $1, a copy of the one that was made first.
new_root() {
    if [ ! -f "$folder/base.tar" ]; then
        say "debootstrap --variant=minbase bookworm"
        debootstrap --variant=minbase bookworm "$folder/base" >"$folder/base.log" 2>&1 ||
            fail "debootstrap: $(tail -n 3 "$folder/base.log")"
        tar -C "$folder/base" -cf "$folder/base.tar" .
        rm -rf --one-file-system "$folder/base"
    fi
    mkdir "$folder/$1"
    tar -C "$folder/$1" -xf "$folder/base.tar"
    mount -t proc proc "$folder/$1/proc"
}

# Runs what follows in root $1, as root, and prints it first.
inside() {
    root=$1
    shift
    printf '$ %s\n' "$*"
    chroot "$folder/$root" env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive HOME=/tmp OMP_WAIT_POLICY=passive \
        sh -ec "cd /tmp; $*"
}

package() {
    build=$(cd -- "$1" && pwd)
    mkdir "$folder/packages"
    python3 tests/packaging/installed.py --build "$build" --deb --keep "$folder/packages"
    if command -v lintian >/dev/null; then
        say lintian
        lintian --allow-root --fail-on error "$folder"/packages/*.deb
    fi
    new_root debian
    cp "$folder"/packages/*.deb "$folder/debian/tmp/twinstep.deb"
    say 'install, with what it depends on'
    inside debian 'apt-get -q update >/dev/null'
    inside debian 'apt-get -q -y install --no-install-recommends ./twinstep.deb'
    say 'run it, as a user without rights'
    for words in 'twinstep --version' 'twinstep env' 'twinstep list modes' \
        'twinstep check lr-set-before-step'; do
        inside debian "$words"
    done
    inside debian 'mkdir run; chown nobody run; cd run
        setpriv --reuid=nobody --regid=nogroup --clear-groups twinstep demo --quiet' |
        tee "$folder/demo.txt"
    mkdir "$folder/here"
    (cd "$folder/here" && "$build/bin/twinstep" demo --quiet) >"$folder/here.txt"
    sed -n '/^lr-set/,$p' "$folder/demo.txt" | cmp - "$folder/here.txt" ||
        fail 'demo prints something else there'
    say 'pages and completion'
    inside debian 'apt-get -q -y install --no-install-recommends \
        man-db bash-completion zsh >/dev/null 2>&1'
    inside debian 'man -w twinstep; man -w twinstep-lr-check; man twinstep-demo'
    inside debian 'whatis twinstep twinstep-run'
    inside debian 'bash -c "source /usr/share/bash-completion/bash_completion
        _completion_loader twinstep || test \$? = 124
        COMP_WORDS=(twinstep run --backend =  c) COMP_CWORD=4; _twinstep; echo \${COMPREPLY[@]}"' |
        tee "$folder/reply"
    grep -qx 'cpu cuda' "$folder/reply" || fail 'bash does not complete'
    inside debian 'zsh -f -c "autoload -Uz compinit; compinit -u -D; echo \$_comps[twinstep]"' |
        tee "$folder/reply"
    grep -qx _twinstep "$folder/reply" || fail 'zsh does not know the completion'
    say 'remove it'
    inside debian 'apt-get -q -y purge twinstep >/dev/null; ! command -v twinstep
        find /usr -name "*twinstep*" | tee left; ! test -s left'
}

wheel() {
    made=$(readlink -f -- "$1")
    new_root debian
    say 'what stands in the index of packages'
    mkdir "$folder/debian/tmp/wheels"
    python3 -m pip --quiet download --only-binary :all: --python-version 3.11 \
        --dest "$folder/debian/tmp/wheels" h5py numpy netCDF4
    cp -- "$made" "$folder/debian/tmp/wheels"
    mkdir "$folder/debian/tmp/checkout"
    git ls-files -co --exclude-standard | tar -cf - -T - | tar -C "$folder/debian/tmp/checkout" -xf -
    inside debian 'apt-get -q update >/dev/null'
    say 'a root without any library of ours: Python, and nothing else'
    inside debian 'apt-get -q -y install --no-install-recommends python3-venv >/dev/null 2>&1'
    inside debian '! ldconfig -p | grep -E "hdf5|gsl|jansson|fyaml"' # nettle is apt's
    inside debian 'python3 -m venv own; own/bin/pip -q install --no-index --find-links wheels \
        twinstep netCDF4'
    say 'the program alone'
    inside debian 'own/bin/twinstep --version; own/bin/twinstep demo --quiet' | tee "$folder/demo.txt"
    grep -q '^lr-set-before-step: OUTSIDE THE FLOOR' "$folder/demo.txt" || fail 'no demo there'
    say 'beside netCDF4, before it and after it'
    for order in 'twinstep, netCDF4' 'netCDF4, twinstep'; do
        inside debian "own/bin/python -c 'import $order
trace = twinstep.load(\"lr-set-before-step.h5\")
data = netCDF4.Dataset(\"x.nc\", \"w\"); data.createDimension(\"a\", 3)
data.createVariable(\"v\", \"f8\", (\"a\",))[:] = 1.5; data.close()
print(twinstep.attribute(\"lr-set-before-step.h5\").cause, netCDF4.Dataset(\"x.nc\")[\"v\"][:].sum())
assert twinstep.attribute(\"lr-set-before-step.h5\").cause == \"schedule\"'"
    done
    say 'from source, without a compiler and without the program'
    inside debian 'python3 -m venv source; source/bin/pip -q install --no-index --find-links wheels \
        ./checkout/python'
    inside debian "source/bin/python -c 'import twinstep
print(twinstep.load(\"lr-set-before-step.h5\"))
try: twinstep.attribute(\"lr-set-before-step.h5\")
except twinstep.ProgramMissing as error: print(error)'" | tee "$folder/source.txt"
    grep -q 'the twinstep program is not there' "$folder/source.txt" || fail 'nobody says so'
}

# Runs COPY and RUN of each stage. The context is what git knows of this checkout.
dockerfile() {
    stage=0
    grep -v '^ *#' Dockerfile | while read -r word rest; do
        case $word in
        FROM)
            stage=$((stage + 1))
            say "$word $rest"
            new_root "stage$stage"
            ;;
        COPY)
            printf '$ %s %s\n' "$word" "$rest"
            set -- $rest
            case $1 in
            --from=*)
                for file in "$folder/stage1"/$2; do cp -- "$file" "$folder/stage$stage$3"; done
                ;;
            *)
                mkdir -p "$folder/stage$stage$2"
                git ls-files -co --exclude-standard | tar -cf - -T - |
                    tar -C "$folder/stage$stage$2" -xf -
                ;;
            esac
            ;;
        RUN) inside "stage$stage" "$rest" </dev/null ;;
        WORKDIR) inside "stage$stage" "mkdir -p $rest" </dev/null ;;
        ENTRYPOINT) printf '%s' "$rest" | tr -d '[]"' >"$folder/entry" ;;
        CMD) ;;
        *) fail "Dockerfile: $word is not known here" ;;
        esac
    done
    last=$(for root in "$folder"/stage*/; do basename "$root"; done | tail -n 1)
    inside "$last" "cd /data; $(cat "$folder/entry") demo"
}

unset CDPATH
case $0 in
*/*) cd -- "${0%/*}/../.." ;;
esac
case "${1-} $#" in
'package 2' | 'wheel 2' | 'dockerfile 1') ;;
*)
    printf 'usage: sh tests/packaging/fresh_root.sh package BUILD | wheel WHEEL | dockerfile\n' >&2
    exit 2
    ;;
esac
if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
    echo 'needs root and debootstrap: skipped'
    exit 77
fi
folder=$(mktemp -d)
trap leave EXIT
trap 'exit 130' INT TERM
"$@"
