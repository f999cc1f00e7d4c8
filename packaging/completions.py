"""Completions for bash, zsh and fish, from the grammar of a program.

Each script follows the words before the cursor to a command, and then offers the command's names
and options, the words that an option accepts, or files.
"""

from __future__ import annotations

import re

from archives import Entry
from grammar import Command, Parameter

# Names of values that are paths.
PATHS = re.compile(r"FILE|PATH|DIRECTORY|SOCKET|PROGRAM|STORE|BACKUP|^(?:FROM|TO)$")


def completions(program: str, root: Command) -> list[Entry]:
    """Return the files of a program's completions, where Debian and Fedora look for them."""
    made = {
        f"/usr/share/bash-completion/completions/{program}": bash(program, root),
        f"/usr/share/zsh/vendor-completions/_{program}": zsh(program, root),
        f"/usr/share/fish/vendor_completions.d/{program}.fish": fish(program, root),
    }
    return [Entry(path, text.encode()) for path, text in made.items()]


def takes_a_value(option: Parameter) -> bool:
    """Whether the next word is the option's value."""
    return bool(option.flags and option.value)


def offered(command: Command) -> list[str]:
    """Return what may follow a command: commands, options, words of its arguments."""
    flags = [flag for option in command.options for flag in option.flags]
    words = [word for argument in command.arguments for word in argument.words]
    return [*(name for name, _ in command.summaries()), *words, *flags]


def names_files(parameters: list[Parameter]) -> bool:
    """Whether a value may be a path."""
    return any(PATHS.search(each.value) for each in parameters)


def quoted(text: str) -> str:
    """Return a word for a shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def tables(root: Command) -> list[tuple[str, list[str], bool, list[tuple[str, list[str], bool]]]]:
    """Return each command's path, its words, whether it names files, and its options' values."""
    rows = []
    for command in root.all():
        values = [
            ("|".join(option.flags), option.words, names_files([option]))
            for option in command.options
            if takes_a_value(option)
        ]
        words, files = offered(command), names_files(command.arguments)
        rows.append((" ".join(command.path), words, files, values))
    return rows


def bash(program: str, root: Command) -> str:
    """Return the script for bash."""
    function = "_" + program.replace("-", "_")
    cases, steps = [], []
    for path, words, files, values in tables(root):
        lines = [f"        {quoted(path)})"]
        if values:
            lines.append('            case "$before" in')
            for flags, accepted, is_file in values:
                fill = f"words={quoted(' '.join(accepted))}"
                fill += " files=1" if is_file else ""
                lines.append(f"                {flags}) {fill} value=1 ;;")
            lines.append("            esac")
        own = f"words={quoted(' '.join(words))}" + (" files=1" if files else "")
        lines += [f'            [ -n "$value" ] || {{ {own}; }} ;;']
        cases += lines
        if path:
            steps.append(f"            {quoted(path)}) path=$next ;;")
    lines = [
        f"# bash completion for {program}",
        f"{function}() {{",
        "    local path= next= words= files= value= at",
        '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
        "    for ((at = 1; at < COMP_CWORD; at++)); do",
        '        next="${path:+$path }${COMP_WORDS[at]}"',
        '        case "$next" in',
        *steps,
        "        esac",
        "    done",
        '    case "$path" in',
        *cases,
        "    esac",
        '    COMPREPLY=($(compgen -W "$words" -- "$word"))',
        '    if [ -n "$files" ]; then',
        '        COMPREPLY+=($(compgen -f -- "$word"))',
        "        compopt -o filenames 2>/dev/null",
        "    fi",
        "}",
        f"complete -F {function} {program}",
    ]
    return "\n".join(lines) + "\n"


def zsh(program: str, root: Command) -> str:
    """Return the script for zsh, which shows each name's text."""
    function = "_" + program.replace("-", "_")
    steps, cases = [], []
    for command in root.all():
        path = " ".join(command.path)
        if path:
            steps.append(f"            {quoted(path)}) route=$next ;;")
        cases.append(f"        {quoted(path)})")
        taken = [option for option in command.options if takes_a_value(option)]
        if taken:
            cases.append("            case $words[CURRENT-1] in")
            for option in taken:
                offer = f"compadd -- {' '.join(map(quoted, option.words))}" if option.words else ""
                offer = offer or ("_files" if names_files([option]) else ":")
                cases.append(f"                {'|'.join(option.flags)}) {offer}; return ;;")
            cases.append("            esac")
        below = [described(name, text) for name, text in command.summaries()]
        below += [described(word, "") for each in command.arguments for word in each.words]
        flags = [
            described(flag, option.summary) for option in command.options for flag in option.flags
        ]
        cases.append(f"            commands=({' '.join(below)})")
        cases.append(f"            options=({' '.join(flags)})")
        if names_files(command.arguments):
            cases.append("            files=1")
        cases.append("            ;;")
    lines = [
        f"#compdef {program}",
        f"{function}() {{",
        "    local route= next= files= at",
        "    local -a commands options",
        "    for ((at = 2; at < CURRENT; at++)); do",
        '        next="${route:+$route }$words[at]"',
        "        case $next in",
        *steps,
        "        esac",
        "    done",
        "    case $route in",
        *cases,
        "    esac",
        "    (( $#commands )) && _describe -t commands command commands",
        "    [[ -n $files && $PREFIX != -* ]] && _files",
        "    _describe -o -t options option options",
        "}",
        f'{function} "$@"',
    ]
    return "\n".join(lines) + "\n"


def described(name: str, text: str) -> str:
    """Return a name with its text for `_describe`, which a colon parts."""
    name = name.replace("\\", "\\\\").replace(":", "\\:")
    return quoted(f"{name}:{text}" if text else name)


def fish(program: str, root: Command) -> str:
    """Return the script for fish."""
    function = f"__{program.replace('-', '_')}_at"
    paths = " ".join(quoted(" ".join(each.path)) for each in root.all() if each.path)
    lines = [
        f"# fish completion for {program}",
        f"function {function}",
        "    set -l path ''",
        "    for word in (commandline -opc)[2..]",
        '        set -l next (string trim -- "$path $word")',
        f"        contains -- $next {paths}; and set path $next",
        "    end",
        '    test "$path" = "$argv[1]"',
        "end",
        f"complete -c {program} -f",
    ]
    for command in root.all():
        at = f"complete -c {program} -n {quoted(f'{function} ' + quoted(' '.join(command.path)))}"
        lines += [f"{at} -a {quoted(name)} -d {quoted(text)}" for name, text in command.summaries()]
        for argument in command.arguments:
            if argument.words:
                lines.append(f"{at} -a {quoted(' '.join(argument.words))}")
        if names_files(command.arguments):
            lines.append(f"{at} -F")
        for option in command.options:
            flags = " ".join(
                f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
                for flag in option.flags
            )
            value = ""
            if takes_a_value(option):
                value = f" -x -a {quoted(' '.join(option.words))}" if option.words else " -x"
                value = " -r -F" if names_files([option]) and not option.words else value
            lines.append(f"{at} {flags}{value} -d {quoted(option.summary)}")
    return "\n".join(lines) + "\n"
