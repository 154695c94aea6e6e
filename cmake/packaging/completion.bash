# SPDX-License-Identifier: Apache-2.0
# What completion does with the tables that `twinstep pages` writes and that stand before this.
#
# bash cuts words at "=", so they are joined again before they are looked at, and what stands before
# the last "=" is taken off the answers, as readline expects.

# Adds what completes $2, whose kind is $1: files, folders, a kind of words, or ,KIND of words
# between commas. After KEY= come the values of KEY.
_twinstep_add() {
    local kind=$1 word=$2 before='' key
    case $kind in
    files)
        compopt -o filenames 2>/dev/null
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$word")
        return ;;
    folders)
        compopt -o filenames 2>/dev/null
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- "$word")
        return ;;
    ,*)
        kind=${kind#,}
        [[ $word == *,* ]] && before=${word%,*},
        word=${word##*,} ;;
    keys | keys-of-arm)
        if [[ $word == *=* ]]; then
            key=${word%%=*} before=${word%%=*}= word=${word#*=}
            [[ $kind == keys ]] && key=${key#common.}
            kind=$key
        else
            compopt -o nospace 2>/dev/null
        fi ;;
    esac
    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(
        compgen -P "$before" -W "$(_twinstep_words "$kind")" -- "$word")
}

_twinstep() {
    local words=() word now last verb first options operands takes kind i
    for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        if ((${#words[@]} > 1)) && [[ $word == =* || ${words[-1]} == *= ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
    done
    COMPREPLY=()
    now=${words[-1]} last=${words[-2]} verb=${words[1]} first=2
    if ((${#words[@]} == 2)); then
        mapfile -t COMPREPLY < <(compgen -W "$(_twinstep_words '*')" -- "$now")
        return
    fi
    if ((${#words[@]} == 3)); then # the second word of a verb of two
        mapfile -t COMPREPLY < <(compgen -W "$(_twinstep_words "* $verb")" -- "$now")
    elif _twinstep_verb "$verb ${words[2]}"; then
        verb+=" ${words[2]}" first=3
    fi
    if ! _twinstep_verb "$verb"; then
        [[ -n ${COMPREPLY[*]} ]] || mapfile -t COMPREPLY < <(compgen -W --help -- "$now")
        return
    fi
    for ((i = first; i < ${#words[@]} - 1; i++)); do
        [[ ${words[i]} == -- ]] && options='' last=''
    done
    if [[ -n $options && $now == --*=* ]]; then
        last=${now%%=*} now=${now#*=}
    elif [[ -n $options && $now == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$now")
        return
    fi
    for kind in $takes; do
        if [[ $last == "${kind%%:*}" ]]; then
            operands=${kind#*:}
            COMPREPLY=()
        fi
    done
    for kind in ${operands//|/ }; do
        _twinstep_add "$kind" "$now"
    done
    word=${COMP_WORDS[COMP_CWORD]}
    [[ $word == '=' ]] && word=''
    COMPREPLY=("${COMPREPLY[@]#"${now%"$word"}"}")
}

complete -F _twinstep twinstep
