# SPDX-License-Identifier: BSD-3-Clause
#
# Completion of command lines in bash and zsh: the scripts ask the programs which
# words they know.

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lib import servers

pytestmark = pytest.mark.skipif(servers.sanitized(),
                                reason="the release build does it")

FOLDER = servers.TOP / "packaging" / "completion"
BASH, ZSH = FOLDER / "bloomery.bash", FOLDER / "_bloomery"
PROGRAMS = Path(servers.server_binary()).parent
CHECK, LOAD, SERVER = ("bloomery-check", "bloomery-load", "bloomery-server")

# What a shell does at a tab behind these words. It splits --name=value into three.
IN_BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_bloomery "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""

# The functions of zsh's completion that the script calls, in short.
IN_ZSH = """
script=$1; shift
words=("$@"); CURRENT=$#; PREFIX=${words[CURRENT]}
compset() { PREFIX=${PREFIX#*=} }
compadd() { local -a all; all=(${(P)2}); print -l -- ${(M)all:#$PREFIX*} }
_files() { print FILES }
complete_now() { source $script }
complete_now
"""


def run(argv):
    got = subprocess.run(argv, text=True, capture_output=True, timeout=60,
                         env=dict(os.environ, PATH="%s:%s" % (
                             PROGRAMS, os.environ["PATH"])))
    assert got.returncode == 0 and got.stderr == "", got
    return got.stdout.split()


def in_bash(*words):
    split = []
    for word in words:
        name, equals, value = word.partition("=")
        split += [name, "=", value] if equals and value else \
            [name, "="] if equals else [word]
    return run(["bash", "-c", IN_BASH, "bash", str(BASH)] + split)


def in_zsh(*words):
    return run(["zsh", "-f", "-c", IN_ZSH, "zsh", str(ZSH)] + list(words))


SHELLS = [pytest.param(in_bash, id="bash"), pytest.param(in_zsh, id="zsh", marks=[
    pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")])]


@pytest.mark.parametrize("complete", SHELLS)
@pytest.mark.parametrize("words,all_of", [
    ((SERVER, "--append"), ["--appenddirname", "--appendfsync", "--appendonly"]),
    ((SERVER, "--appendfsync", ""), ["always", "everysec", "no"]),
    ((SERVER, "--appendfsync", "e"), ["everysec"]),
    ((SERVER, "--appendfsync="), ["always", "everysec", "no"]),
    ((SERVER, "--appendfsync=e"), ["everysec"]),
    ((SERVER, "a.conf", "--log-format", "j"), ["json"]),
    ((SERVER, "--protected-mode", "y"), ["yes"]),
    ((SERVER, "--print=com"), ["commands", "commands-man", "commands-md"]),
    ((SERVER, "--check"), ["--check-config"]),
    ((CHECK, "ver"), ["verify"]),
    ((CHECK, "help", "tr"), ["truncate-to"]),
    ((CHECK, "verify", "--j"), ["--json"]),
    ((LOAD, ""), ["aof", "export", "help", "items", "rdb", "secrets", "server"]),
    ((LOAD, "items", "--con"), ["--connections"]),
])
def test_a_word_is_completed(complete, words, all_of):
    assert sorted(complete(*words)) == all_of


@pytest.mark.parametrize("complete", SHELLS)
@pytest.mark.parametrize("words", [
    (SERVER, "--aclfile", "x"), (SERVER, "x"), (CHECK, "verify", "x"),
    (LOAD, "rdb", "--existing", "replace", "x")])
def test_files_are_left_to_the_shell(complete, words):
    assert complete(*words) in ([], ["FILES"])


@pytest.mark.parametrize("shell,script", [("bash", BASH), ("zsh", ZSH)])
def test_the_scripts_can_be_read(shell, script):
    if shutil.which(shell) is None:
        pytest.skip("there is no %s" % shell)
    got = subprocess.run([shell, "-n", str(script)], capture_output=True, timeout=60)
    assert (got.returncode, got.stderr) == (0, b"")


def test_every_program_has_its_completion():
    first = ZSH.read_text().splitlines()[0].split()
    assert first == ["#compdef", SERVER, CHECK, LOAD]
    last = BASH.read_text().splitlines()[-1].split()
    assert last[-3:] == [SERVER, CHECK, LOAD]


# ---- help ------------------------------------------------------------------------

def say(*words):
    got = subprocess.run([PROGRAMS / words[0], *words[1:]], text=True,
                         capture_output=True, timeout=60)
    return got.returncode, got.stdout, got.stderr


def has_word(text, word):
    return re.search(r"(?<![\w-])%s(?![\w-])" % re.escape(word), text)


@pytest.mark.parametrize("program, pages", [
    (SERVER, ["bloomery-server.8", "bloomery.conf.5"]),
    (CHECK, ["bloomery-check.1"]), (LOAD, ["bloomery-load.1"])])
def test_each_word_stands_in_the_help_and_in_the_man_page(program, pages):
    whole = say(program, "--help")[1]
    words = [w for line in say(program, "--print=words")[1].splitlines()
             for w in line.split()[:1]]
    man = "".join((servers.TOP / "packaging" / "man" / page).read_text()
                  for page in pages).replace("\\-", "-").replace(" Ns ", " ")
    for word in words:
        name, _, value = word.partition("=")
        assert all(has_word(whole, part) for part in (name, value) if part), word
        # mdoc: .Fl puts a dash in front; the options of the server stand in
        # bloomery.conf(5) by their names alone.
        flags = [name[1:] if name[0] == "-" else name]
        flags += [name[2:].removeprefix("bf.")] if program == SERVER else []
        assert any(has_word(man, flag) for flag in flags), word
        assert has_word(man, value), word
    listed = set(re.findall(r"^ +(--[a-z.-]+)", whole, re.M))
    assert listed <= {w.partition("=")[0] for w in words}


def with_value(program, option):
    """Returns the words that give an option, with a value if it needs one."""
    for words in ([option], [option, "1"], [option, "1mb"]):
        errors = say(program, *words)[2]
        if "needs a value" not in errors and "is not a number" not in errors:
            return words
    raise AssertionError(errors)


def taken(program, command, options):
    """Returns those of the options that a command takes, by the tool's refusals."""
    refusal = "%s: %%s is not an option of %s: see %s help %s\n" % (
        program, command, program, command)
    found = set()
    for option, words in options.items():
        code, text, errors = say(program, *words, command)
        assert code > 1 and text == "", "there are too few words to do anything"
        if "is not an option of" in errors:
            assert (code, errors) == (2, refusal % option)
        else:
            found.add(option)
    return found


@pytest.mark.parametrize("program", [CHECK, LOAD])
def test_each_command_has_help_of_its_own(program):
    commands = [w for w in say(program, "--print=words")[1].split()
                if not w.startswith("-")]
    assert len(commands) > 5
    whole = say(program, "--help")
    assert whole[0] == 0 and say(program, "help") == whole
    options = {w for w in say(program, "--print=words")[1].split() if w[:2] == "--"}
    common = {"--progress", "--no-progress", "--help", "--version", "--print"}
    own = {option: with_value(program, option) for option in options - common}
    for command in commands:
        if command == "help":
            continue
        code, text, errors = say(program, "help", command)
        assert (code, errors) == (0, "")
        assert text.startswith("Usage: %s %s " % (program, command))
        assert say(program, command, "--help") == (code, text, errors)
        assert say(program, "-h", command) == (code, text, errors)
        assert max(map(len, text.splitlines())) <= 80
        named = set(re.findall(r"--[a-z][a-z-]+", text))
        assert named - {"--pipe"} == taken(program, command, own)
        assert say(program, command, "--nonsense")[2].endswith(
            "see %s help %s\n" % (program, command))
    code, text, errors = say(program, "help", "nonsense")
    assert (code, text) == (2, "") and "nonsense: no such command" in errors


def arguments(program, command):
    """Returns the words that the first line of the help has behind the options."""
    usage = say(program, "help", command)[1].splitlines()[0]
    plain = re.sub(r"--for PRODUCT|\[(--|OPTION)[^]]*\](\.\.\.)?", "", usage)
    return plain.replace("BACKUP|-", "BACKUP").split()[3:]


@pytest.mark.parametrize("program", [CHECK, LOAD])
def test_a_mistake_names_the_argument(program):
    for words, said in (((), "a command is missing, see %s --help\n" % program),
                        (("nonsense",), "nonsense: no such command, see %s --help\n"
                         % program)):
        code, text, errors = say(program, *words)
        assert (code, text, errors) == (2, "", "%s: %s" % (program, said))
    for command in say(program, "--print=words")[1].split():
        if command == "help" or command[0] == "-":
            continue
        takes = arguments(program, command)
        assert takes, command
        mistakes = [(["x"] * at, "%s is missing" % takes[at].rstrip("."))
                    for at in range(len(takes)) if takes[at][0] != "["]
        if not takes[-1].endswith("..."):
            mistakes.append((["x"] * len(takes) + ["y"],
                             "y is one argument too many"))
        for words, said in mistakes:
            got = say(program, command, *words)
            assert got == (2, "", "%s: %s: %s, see %s help %s\n" %
                           (program, command, said, program, command)), words


def test_a_backup_goes_to_a_stream_with_tar_only():
    for words in (("x", "-"), ("--tar", "x", "y")):
        code, text, errors = say(CHECK, "backup", *words)
        assert (code, text) == (2, "") and "OUT is - with --tar" in errors


@pytest.mark.parametrize("program", [CHECK, LOAD])
def test_a_bad_part_of_the_reference_is_a_mistake(program):
    assert say(program, "--print=nonsense")[0] == 2
    assert say(SERVER, "--print=nonsense")[0] == 2
