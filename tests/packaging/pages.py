#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds manual pages and shell completion against --help, in both directions.

    pages.py --binary BIN --pages BUILD/pages

Reads verbs and options out of the text that BIN prints, and compares: names, values and
explanations with the manual pages; what bash offers, asked through COMPREPLY of the sourced script;
the script of zsh as text; and what both shells type into a terminal when Tab is pressed. zsh is
left out, and said so, where it is missing.

pages.py --broken plants one mistake of each kind and requires that it is found."""
import argparse
import json
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DRIVER = r'''
source "$1"
while read -r count; do
    COMP_WORDS=()
    for ((k = 0; k < count; k++)); do
        IFS= read -r word
        COMP_WORDS+=("$word")
    done
    COMP_CWORD=$((count - 1))
    _twinstep
    printf '%s\n' "${COMPREPLY[@]}" "--end--"
done
'''
OPTION = re.compile(r"^ {2,6}(?:-(\w), )?--([a-z][a-z0-9-]*)(?:=(\S+))?(?: +(.*))?$")


class Program:
    """The program as it describes itself, by --help and list."""

    def __init__(self, binary):
        self.binary = str(pathlib.Path(binary).resolve())
        rows = re.findall(r"^  (?!twinstep)(.{14}) (.*)$", self.say("--help"), re.M)
        self.briefs = {name.strip(): brief for name, brief in rows}
        self.help = {verb: self.say(*verb.split(), "--help") for verb in self.briefs}
        self.options = {verb: options_of(text) for verb, text in self.help.items()}

    def say(self, *words):
        return subprocess.run([self.binary, *words], capture_output=True, text=True,
                              check=True).stdout

    def listed(self, topic):
        return {row["name"]: row["about"]
                for row in json.loads(self.say("list", topic, "--json"))[topic]}


def squeeze(text):
    return " ".join(text.split())


def options_of(text):
    """Returns {long name: (short, value, explanation)}, without the usage above them."""
    found, name = {}, None
    for line in text.split("\n\n", 1)[1].split("\n"):
        match = OPTION.match(line)
        if match:
            short, name, value, words = match.groups()
            found[name] = (short, value, words or "")
        elif line.startswith(" " * 20) and name:
            short, value, words = found[name]
            found[name] = (short, value, f"{words} {line.strip()}".strip())
        else:
            name = None
    return found


def plain(roff):
    """Returns the text of a manual page without its escapes."""
    for escape, sign in (("\\-", "-"), ("\\&", ""), ("\\(aq", "'"), ("\\(ga", "`"), ("\\(ti", "~"),
                         ("\\(ha", "^"), ("\\fB", ""), ("\\fI", ""), ("\\fR", ""), ("\\e", "\\")):
        roff = roff.replace(escape, sign)
    return roff


def section(page, name):
    match = re.search(rf"^\.SH {name}\n(.*?)(?=^\.SH |\Z)", page, re.M | re.S)
    return match.group(1) if match else ""


def check_manual(program, pages, wrong):
    found = {p.name.split(".1")[0]: p for p in pages.glob("twinstep*.1*")}
    text = {name: path_text(path) for name, path in found.items()}
    wanted = {"twinstep", *(f"twinstep-{verb.replace(' ', '-')}" for verb in program.briefs)}
    if set(text) != wanted:
        wrong.append(f"manual pages: {sorted(set(text) ^ wanted)}")
        return
    overview = dict(re.findall(r"^\.TP\n\.B (.*)\n(.*)$", section(text["twinstep"], "VERBS"), re.M))
    overview = {plain(verb): plain(brief) for verb, brief in overview.items()}
    if overview != program.briefs:
        wrong.append(f"twinstep(1): verbs: {set(overview.items()) ^ set(program.briefs.items())}")
    for verb, options in program.options.items():
        check_page(program, verb, options, text[f"twinstep-{verb.replace(' ', '-')}"], wrong)


def check_page(program, verb, options, page, wrong):
    shown = {}
    for term, words in re.findall(r"^\.TP\n(.*)\n(.*)$", section(page, "OPTIONS"), re.M):
        match = re.fullmatch(r"(?:-(\w), )?--([a-z0-9-]+)(?:=(.*))?", plain(term))
        short, name, value = match.groups()
        shown[name] = (short, value, plain(words))
    if shown != options:
        wrong.append(f"twinstep {verb}: options of the manual page: "
                     f"{sorted(set(shown.items()) ^ set(options.items()), key=str)}")
    if plain(section(page, "NAME")).strip().split(" \\- ")[-1].split(" - ", 1)[1] != \
            program.briefs[verb]:
        wrong.append(f"twinstep {verb}: its manual page says {section(page, 'NAME')}")
    helped = squeeze(program.help[verb])
    for part in ("DESCRIPTION", "EXAMPLE"):
        for line in section(page, part).split("\n"):
            said = squeeze(plain(line))
            if said and not said.startswith(".E") and said not in helped:
                wrong.append(f"twinstep {verb}: --help does not say: {said}")
    if not section(page, "EXAMPLE"):
        wrong.append(f"twinstep {verb}: no example in its manual page")
    said = squeeze(plain(section(page, "EXIT STATUS")))
    if said not in helped and said not in squeeze(program.say("--help")):
        wrong.append(f"twinstep {verb}: --help does not say: {said}")


def path_text(path):
    if path.suffix == ".gz":
        return subprocess.run(["gzip", "-dc", path], capture_output=True, text=True,
                              check=True).stdout
    return path.read_text(encoding="utf-8")


class Bash:
    """A bash that has sourced the script; asked() returns COMPREPLY, as a set."""

    def __init__(self, script, folder):
        self.process = subprocess.Popen(["bash", "--norc", "-c", DRIVER, "driver", str(script)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        cwd=folder)

    def asked(self, *words):
        cut = []  # as readline cuts them: "=" is a word of its own
        for word in ("twinstep", *words):
            cut += [part for part in re.split("(=)", word) if part] or [""]
        self.process.stdin.write(f"{len(cut)}\n" + "".join(f"{word}\n" for word in cut))
        self.process.stdin.flush()
        said = set(iter(lambda: self.process.stdout.readline().rstrip("\n"), "--end--"))
        return said - {""}


def shorts_and_longs(options):
    return {f"--{name}" for name in options} | {f"-{o[0]}" for o in options.values() if o[0]}


def check_bash(program, pages, folder, wrong):
    bash = Bash(pages / "twinstep.bash", folder)

    def expect(words, wanted):
        said = bash.asked(*words)
        if said != set(wanted):
            wrong.append(f"bash: twinstep {' '.join(words)}: {sorted(said ^ set(wanted))[:12]}")

    firsts = {verb.split()[0] for verb in program.briefs}
    scenarios, contracts = program.listed("scenarios"), program.listed("contracts")
    expect([""], {*firsts, "--help", "--version"})
    expect(["re"], {verb for verb in firsts if verb.startswith("re")})
    expect(["lr", ""], {verb.split()[1] for verb in program.briefs if verb.startswith("lr ")})
    expect(["data", ""], {"show"})
    expect(["nosuch", "-"], {"--help"})
    for verb, options in program.options.items():
        expect([*verb.split(), "-"], shorts_and_longs(options))
        for name, (_, value, _) in options.items():
            if value is None:  # then the next word can be an option again
                expect([*verb.split(), f"--{name}", "-"], shorts_and_longs(options))
    files = {"plain.h5", "folder"}
    expect(["demo", ""], scenarios)
    expect(["run", "lr-z"], {"lr-zero-init"})
    expect(["run", ""], {*scenarios, *files})
    expect(["attribute", ""], files)
    expect(["attribute", "pl"], {"plain.h5"})
    expect(["suite", ""], {"folder"})
    expect(["env", ""], set())
    expect(["parity", "w"], {"weights", *(name for name in scenarios if name[0] == "w")})
    expect(["parity", "dtype-b"], {"dtype-bf16"})
    expect(["parity", "weights", ""], files)
    expect(["lr", "compare", ""], contracts)
    expect(["lr", "compare", "hf", "olmo-core-"], {"olmo-core-tokens"})
    expect(["lr", "check", "x.csv", "--expect", ""], contracts)
    expect(["lr", "fit", "--schedule", ""], program.listed("schedules"))
    expect(["list", ""], json.loads(program.say("list", "--json")))
    formats = json.loads(program.say("list", "formats", "--json"))["formats"]
    exports = [row for row in formats if row["about"].startswith("twinstep export --to")]
    expect(["import", "--format", ""], [row["name"] for row in formats if row not in exports])
    expect(["export", "--to", ""], [row["name"] for row in exports])
    expect(["export", "--names", "t"], {"trl", "torchtune"})
    expect(["run", "-o", "fo"], {"folder"})
    expect(["run", "--output", "fo"], {"folder"})
    expect(["run", "--output=fo"], {"folder"})
    expect(["run", "--save-model", ""], {"folder"})
    expect(["run", "--checkpoint-every", ""], set())
    expect(["run", "--backend", ""], {"cpu", "cuda"})
    expect(["run", "--backend=cu"], {"cuda"})
    expect(["run", "--backend="], {"cpu", "cuda"})
    expect(["run", "--set", "common.optimizer.lr"], {"common.optimizer.lr="})
    expect(["run", "--set", "st"], {"steps="})
    expect(["run", "--set=common.optimizer.lr"], {"common.optimizer.lr="})
    expect(["run", "--set", "common.numerics.mode="], program.listed("modes"))
    expect(["run", "--set", "common.numerics.mode=inv"], {"invariant"})
    expect(["run", "--set=common.optimizer.name=ada"], {"adam", "adamw", "adafactor"})
    expect(["parity", "a", "--set", "numerics.comp"], {"numerics.compute="})
    expect(["noise", "--modes", "invariant,f"], {"invariant,fast"})
    expect(["run", "--", "--s"], set())
    keys = {f"common.{row['key']}=" for table in json.loads(program.say("keys", "--json"))["tables"]
            for row in table["keys"] if "cause" in row}
    expect(["run", "--set", "common."], keys)
    document = (ROOT / "docs/INSTALL.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\$ twinstep (.*)<Tab>\n(.*)$", document, re.M)
    for line, words in shown:
        expect(line.split(" "), words.split())
    if not shown:
        wrong.append("docs/INSTALL.md: shows no completion")
    bash.process.stdin.close()
    bash.process.wait()


def check_zsh_text(program, pages, wrong):
    script = (pages / "_twinstep").read_text(encoding="utf-8")
    blocks = dict(re.findall(r"^_twinstep-([a-z-]+)\(\) \{\n(.*?)^\}", script, re.M | re.S))
    if set(blocks) != {verb.replace(" ", "-") for verb in program.briefs}:
        wrong.append(f"zsh: verbs: {sorted(blocks)}")
        return
    for verb, options in program.options.items():
        block = blocks[verb.replace(" ", "-")]
        shown = set(re.findall(r"^ +(?:'\*?|'\([^)]*\)'\{-\w\+?,)--([a-z0-9-]+)", block, re.M))
        if shown != set(options):
            wrong.append(f"zsh: twinstep {verb}: {sorted(shown ^ set(options))}")
    for verb, brief in program.briefs.items():
        quoted = brief.replace(":", "\\:").replace("'", "'\\''")
        if f"'{verb.split()[-1]}:{quoted}'" not in script:
            wrong.append(f"zsh: twinstep {verb}: its line of --help is not there")


class Terminal:
    """A shell that somebody types into."""

    def __init__(self, command, prepare, folder):
        child, self.file = pty.fork()
        if child == 0:
            os.chdir(folder)
            os.environ.update(TERM="dumb", PS1="ready> ", INPUTRC="/dev/null", ZDOTDIR=str(folder))
            os.execvp(command[0], command)
        self.child = child
        self.send(prepare + "; echo pre''pared\n", "prepared\r\n")
        self.send("", "")

    def send(self, text, until):
        """Returns what the shell writes until `until` is in it; where that is "", until it is
        quiet."""
        os.write(self.file, text.encode())
        said, end = "", time.monotonic() + 60
        while time.monotonic() < end:
            if select.select([self.file], [], [], 0.3)[0]:
                said += os.read(self.file, 65536).decode(errors="replace")
            elif not until:
                break
            if until and until in said:
                break
        return said

    def typed(self, line):
        """Returns the words that `twinstep` gets when Tab is pressed after LINE, a | after each."""
        self.send(f"twinstep {line}\t", "")
        return re.findall(r"\[([^\]\r\n]*)\]\r\n", self.send("\n", "]\r\n"))[-1]

    def close(self):
        os.write(self.file, b"exit\n")
        os.close(self.file)
        os.waitpid(self.child, 0)


TYPED = [("run --backend=cu", "run|--backend=cuda|"), ("run --set common.numerics.mode=sha",
         "run|--set|common.numerics.mode=shaped|"), ("lr comp", "lr|compare|"),
         ("run --set common.optimizer.weight_d", "run|--set|common.optimizer.weight_decay=|"),
         ("demo lr-ze", "demo|lr-zero-init|"), ("attribute pla", "attribute|plain.h5|"),
         ("noise --modes invariant,sha", "noise|--modes|invariant,shaped|"),
         ("export --to=mega", "export|--to=megatron|")]


def check_typed(pages, folder, wrong):
    shows = "twinstep() { printf '%s|' \"$@\" | sed 's/^/[/;s/$/]\\n/'; }"
    shells = [(["bash", "--norc", "--noprofile", "-i"], f"source '{pages}/twinstep.bash'"),
              (["zsh", "-f", "-i"], f"fpath=('{pages}' $fpath); autoload -Uz compinit; "
                                    f"compinit -u -D; setopt no_beep")]
    for command, prepare in shells:
        if shutil.which(command[0]) is None:
            print(f"{command[0]} is not installed: left out")
            continue
        terminal = Terminal(command, f"{prepare}; {shows}", folder)
        for line, wanted in TYPED:
            said = terminal.typed(line)
            if said != wanted:
                wrong.append(f"{command[0]}: twinstep {line}, then Tab: expected {wanted!r}, "
                             f"got {said!r}")
        terminal.close()


def check_syntax(shell, file, wrong):
    if shutil.which(shell):
        result = subprocess.run([shell, "-n", file], capture_output=True, text=True, check=False)
        if result.returncode != 0:
            wrong.append(f"{shell} -n {file.name}: {result.stderr}")


def check(program, pages, file=""):
    """Returns what is wrong: in every file, or in `file` alone."""
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "plain.h5").write_bytes(b"")
        (folder / "folder").mkdir()
        if file in ("", "twinstep.bash"):
            check_syntax("bash", pages / "twinstep.bash", wrong)
            check_bash(program, pages, folder, wrong)
        if file in ("", "_twinstep"):
            check_syntax("zsh", pages / "_twinstep", wrong)
            check_zsh_text(program, pages, wrong)
        if file == "" or file.endswith(".1"):
            check_manual(program, pages, wrong)
        if file == "":
            check_typed(pages, folder, wrong)
    return wrong


# For each planted mistake: the file, what it has, and what is put in its place.
PLANTED = [("twinstep-run.1", "\\fB\\-\\-floor\\fR", "\\fB\\-\\-flour\\fR"),
           ("twinstep-run.1", "Show no progress", "Show progress"),
           ("twinstep-lr-fit.1", ".TP\n\\fB\\-\\-all\\fR\n", ""),
           ("twinstep-bisect.1", "twinstep bisect lr\\-set", "twinstep bisect lr\\-get"),
           ("twinstep.1", ".B bisect", ".B dissect"),
           ("twinstep.bash", " --quiet", " --quite"),
           ("twinstep.bash", " --save-model:folders", ""),
           ("twinstep.bash", "lr-zero-init ", ""),
           ("_twinstep", "'--quiet[", "'--quite["),
           ("_twinstep", "'bisect:", "'dissect:"),
           ("_twinstep", "_twinstep_words() {", "_twinstep_words() ((")]


def broken(program, pages):
    missed = 0
    for file, there, instead in PLANTED:
        if "((" in instead and not shutil.which("zsh"):
            print("zsh is not installed: its syntax is not looked at")
            continue
        with tempfile.TemporaryDirectory() as name:
            copy = pathlib.Path(name) / "pages"
            shutil.copytree(pages, copy)
            subprocess.run(["gzip", "-d", *copy.glob("*.gz")], check=True)
            text = (copy / file).read_text(encoding="utf-8")
            if there not in text:
                sys.exit(f"{file}: {there!r} is not there to be planted over")
            (copy / file).write_text(text.replace(there, instead), encoding="utf-8")
            found = check(program, copy, file)
        print(f"{file}: {there!r} -> {instead!r}: {found[0][:90] if found else 'NOT FOUND'}")
        missed += not found
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--pages", type=pathlib.Path, required=True)
    parser.add_argument("--broken", action="store_true")
    options = parser.parse_args()
    program, pages = Program(options.binary), options.pages.resolve()
    if options.broken:
        return 1 if broken(program, pages) else 0
    wrong = check(program, pages)
    print("\n".join(wrong))
    print(f"{len(program.briefs)} verbs, {sum(map(len, program.options.values()))} options, "
          f"{len(wrong)} differences")
    return 1 if wrong or len(program.briefs) < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
