# SPDX-License-Identifier: Apache-2.0
# What completion does with the tables that `twinstep pages` writes and that stand before this.
# An action of _arguments begins with a blank, so that nothing is added to its words.

_twinstep_keys() {
    local -a offered
    if compset -P '(#b)(*)='; then
        local key=${match[1]}
        [[ $1 == keys ]] && key=${key#common.}
        _twinstep_words $key && compadd -- $offered
    else
        _twinstep_words $1 && compadd -S '' -- $offered
    fi
}

_twinstep_one() {
    local -a offered
    _twinstep_words $1 && compadd -- $offered
}

_twinstep_list() {
    local -a offered
    compset -P '*,'
    _twinstep_words $1 && compadd -S '' -- $offered
}

_twinstep_or_files() {
    _alternative "words:$1: _twinstep_one $1" 'files:file:_files'
}

_twinstep() {
    local curcontext=$curcontext verb=$words[2]
    local -a verbs
    if ((CURRENT == 2)); then
        _twinstep_verbs ''
        _describe -t verbs verb verbs
        compadd -- --help --version
        return
    fi
    if ((CURRENT == 3)); then
        _twinstep_verbs $verb && _describe -t verbs verb verbs
    elif (($+functions[_twinstep-$verb-$words[3]])); then
        verb+=-$words[3]
        shift words
        ((CURRENT--))
    fi
    shift words
    ((CURRENT--))
    if (($+functions[_twinstep-$verb])); then
        _twinstep-$verb
    elif ((CURRENT == 2)); then
        compadd -- --help
    fi
}

_twinstep "$@"
