#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Several workers of one `twinstep ablate`, each on another mount of one file system, with a host name
# and processes of its own (namespaces of the kernel, so it needs root):
#
#   sh tests/bench/ablate_mounts.sh PROGRAM MOUNT MOUNT [MOUNT ...]
#
# First all workers begin at once: each prints the same verdict, and no run is made twice. Then the
# last one is killed with all that it started, as a machine that is lost, and a worker of another name
# takes over. It prints how many runs each host made, and fails where verdicts differ. The mounts hold nothing else; `twinstep-mounts` in them is removed at the beginning.
set -eu
[ $# -ge 3 ] || {
    echo 'usage: sh tests/bench/ablate_mounts.sh PROGRAM MOUNT MOUNT [MOUNT ...]' >&2
    exit 2
}
program=$(readlink -f "$1")
shift
scratch=$(mktemp -d)
trap 'cat "$scratch"/*.err >&2; rm -rf "$scratch"' EXIT
mkdir "$scratch/place"

# A plan is held to its folder's path, so each worker sees its mount under the same one.
cat > "$scratch/worker" <<'END'
hostname "$1"
mount --bind "$2" "$3/place"
cd "$3/place/twinstep-mounts"
program=$4
host=$1
scratch=$3
shift 4
exec "$program" ablate plan.yaml "$@" > "$scratch/$host.out" 2> "$scratch/$host.err"
END

work() { # HOST MOUNT [OPTION ...]
    host=$1 mount=$2
    shift 2
    unshare -m -u -p -f --kill-child --mount-proc \
        sh "$scratch/worker" "$host" "$mount" "$scratch" "$program" "$@"
}

begin() {
    rm -rf "$1/twinstep-mounts"
    mkdir "$1/twinstep-mounts"
    cat > "$1/twinstep-mounts/same.yaml" <<'END'
twinstep: 1
name: same
steps: 5
common: {}
arms: {baseline: {}, test: {}}
END
    cat > "$1/twinstep-mounts/plan.yaml" <<END
ablate: 1
command: [sh, -c, "hostname > {dir}/host; $program run same.yaml --quiet -o {dir}/t.h5 --save-model=test={dir}/weights --set common.optimizer.lr={lr} --set common.optimizer.weight_decay={decay} --set common.dpo.beta={beta}"]
factors: {lr: [1e-3, 5e-4], decay: [0, 0.1], beta: [0.1, 0.3]}
read: {weights: "{dir}/weights"}
run: {slots: 1, timeout: 600}
END
}

# 3: where chance gave all runs of an arm to one host, and those of the other to others, all workers
# say that a difference of machines would look the same.
judged() {
    [ "$1" = 1 ] || [ "$1" = 3 ]
}

tell() { # the same verdict of all, and who made how many runs
    for other in "$scratch"/node*.out; do
        cmp "$scratch/node1.out" "$other"
    done
    head -n 1 "$scratch/node1.out"
    cat "$mounts"/twinstep-mounts/plan.ablate/runs/*/out/host | sort | uniq -c
}

mounts=$1
last=
begin "$1"
i=0
workers=
for mount in "$@"; do
    i=$((i + 1)) last=$mount
    work "node$i" "$mount" --quiet &
    workers="$workers $!"
done
for worker in $workers; do
    wait "$worker" || judged $?
done
echo "$i workers at once:"
tell

rm -f "$scratch"/node*
begin "$1"
work node1 "$1" --quiet &
stays=$!
work lost "$last" --quiet &
lost=$!
until ls "$1/twinstep-mounts/plan.ablate/claims" 2> /dev/null | grep -q slot-lost; do
    sleep 0.2
done
sleep 3
kill -9 "$(ps -o pid= --ppid "$lost" | head -n 1)" 2> /dev/null || kill -9 "$lost"
wait "$lost" || true
work node2 "$last" --quiet --take-over lost || judged $?
wait "$stays" || judged $?
echo 'one worker lost, one that took over:'
tell
