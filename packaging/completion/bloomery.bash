# SPDX-License-Identifier: BSD-3-Clause
#
# Completion for bash: the programs themselves say which words they know
# (--print=words). A line is a command, or an option and its possible values.

_bloomery() {
    local lines values
    local program=$1 current=$2 previous=$3

    if [ "$current" = = ]; then # --option=
        current=
    elif [ "$previous" = = ] && [ "$COMP_CWORD" -ge 2 ]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    COMPREPLY=()
    lines=$("${program/#\~/$HOME}" --print=words 2> /dev/null) || return 0
    values=$(awk -v option="$previous" '$1 == option {
        for (at = 2; at <= NF; at++) print $at }' <<< "$lines")
    if [ -n "$values" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$values" -- "$current")
    elif [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(awk '/^-/ { print $1 }' <<< "$lines")" -- "$current")
    elif [ "$COMP_CWORD" -eq 1 ] || [ "$previous" = help ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(grep -v '^-' <<< "$lines")" -- "$current")
    fi
    return 0
}

complete -o bashdefault -o default -F _bloomery bloomery-server bloomery-check bloomery-load
