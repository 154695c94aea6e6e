# SPDX-License-Identifier: Apache-2.0
# What parts modes and speed-* share: a model with its rows, and one training measured. Read by
# gpu_part.sh, whose words and variables it uses.
# shellcheck shell=sh disable=SC2016,SC2154 # as there

# Prints rows of one length, with ids from a generator of our own, so that no program pads anything.
rows() { # VOCAB COUNT LENGTH
    awk -v vocab="$1" -v count="$2" -v length_of="$3" 'BEGIN {
        x = 17
        names[0] = "prompt_ids"; names[1] = "chosen_ids"; names[2] = "rejected_ids"
        for (row = 0; row < count; row++) {
            for (n = 0; n < 3; n++) {
                size = n == 0 ? int(length_of / 4) : length_of - int(length_of / 4)
                printf "%s\"%s\":[", n == 0 ? "{" : ",", names[n]
                for (i = 0; i < size; i++) {
                    x = (x * 1103515245 + 12345) % 2147483648
                    printf "%s%d", i == 0 ? "" : ",", int(x / 65536) % (vocab < 32768 ? vocab : 32768)
                }
                printf "]"
            }
            print "}"
        }
    }'
}

model_of() { # NAME; sets layers ...
    for sizes in $models; do
        [ "${sizes%%:*}" = "$1" ] || continue
        IFS=: read -r model layers hidden heads mlp vocab pairs length <<EOF
$sizes
EOF
    done
    data=$out/rows-$model.jsonl
    [ -r "$data" ] || rows "$vocab" $((pairs * 4)) "$length" >"$data"
}

dtype_keys() {
    case $1 in
    bf16 | f16) echo "numerics.param=$1 numerics.compute=$1 numerics.master=f32" ;;
    tf32) echo 'numerics.param=f32 numerics.compute=f32 numerics.product=tf32' ;;
    *) echo "numerics.param=$1 numerics.compute=$1" ;;
    esac
}

# Sets `words` to the words KEY=VALUE of a training.
training() { # MODE DTYPE MICRO [KEY=VALUE...]
    words="task=dpo data.pairs=$data data.max_len=$length batch.size=$pairs batch.micro=$3
        batch.layout=concatenated dpo.reference_batch=1 model.family=llama model.layers=$layers model.hidden=$hidden
        model.heads=$heads model.mlp=$mlp model.vocab=$vocab model.tied=true
        numerics.threads=$threads numerics.backend=cuda numerics.backend_module=$module
        numerics.mode=$1 optimizer.lr=5e-7 $(dtype_keys "$2")"
    [ "$1" != shuffled ] || words="$words numerics.order_seed=1"
    shift 3
    given=''
    for word in $words "$@"; do
        given="$given common.$word"
    done
    words=$given
}

# Sets `line` to the last line of fields that a program printed. A program that had no time gets
# "slower than".
measured() { # NAME SECONDS COMMAND...
    called=$1
    shift
    bounded "$out/$part.line" "$@"
    status=$?
    cat "$out/$part.line" >>"$log"
    line=$(awk -F '\t' 'NF > 2 { line = $0 } END { print line }' "$out/$part.line")
    ! is_late $status || line=$(printf '%s\t-\tslower than %s s' "$called" "$most")
    [ -n "$line" ] || line=$(printf '%s\t-\tended with status %s: %s' "$called" "$status" \
        "$(tail -n 1 "$out/$part.line" | tr -d '|')")
}

kept=--one # --recorded: with all that `twinstep run` records
train() { # MODE DTYPE MICRO SECONDS [KEY=VALUE...]
    called=$1-$2 seconds=$4
    training "$1" "$2" "$3" ${5:+"$5"}
    # A list of words.
    # shellcheck disable=SC2086
    measured "$called" "$seconds" "$build/bin/bench_train" $kept "$called" "$updates" \
        $((seconds / 4)) "$gib" $words
}

# Tells whether `line` has figures. What is slow, refused or too large is reported and is no
# failure.
has_figures() {
    if [ "$(field 2 "$line")" != - ] && [ -n "$(field 4 "$line")" ]; then
        [ "$result" = 1 ] || result=0
        return 0
    fi
    case $line in
    *'	slower than '* | *'may take'* | *'cannot get'*) ;;
    *) is_refusal "$line" || result=1 ;;
    esac
    return 1
}
