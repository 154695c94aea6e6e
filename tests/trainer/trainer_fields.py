#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The names of all arguments of the trainers of transformers and TRL.

Writes trainer_fields.inc, each name of which tests/trainer/test_synonyms.c wants to be answered;
with --check it only says whether these hold all names of the versions that are installed (77: none
are). Names that only older versions had may stay."""
import argparse
import dataclasses
import pathlib
import re
import sys


def fields():
    """Returns (class, version, its own names) for each class of arguments."""
    import transformers
    import trl
    classes = [(transformers.TrainingArguments, transformers.__version__),
               (trl.DPOConfig, trl.__version__), (trl.SFTConfig, trl.__version__)]
    inherited, found = set(), []
    for kind, version in classes:
        names = {field.name for field in dataclasses.fields(kind) if field.init}
        found.append((kind.__name__, version, sorted(names - inherited)))
        inherited = inherited or names
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    path = pathlib.Path(__file__).with_suffix(".inc")
    try:
        found = fields()
    except ImportError as error:
        print(f"skipped: {error}")
        return 77
    text = "/* SPDX-License-Identifier: Apache-2.0\n * Made by trainer_fields.py. */\n"
    for kind, version, names in found:
        text += f"/* {kind} {version} */\n" + "".join(f'"{name}",\n' for name in names)
    if not options.check:
        path.write_text(text, encoding="utf-8")
        return 0
    kept = set(re.findall(r'^"(\w+)",$', path.read_text(encoding="utf-8"), re.M))
    now = {name for *_, names in found for name in names}
    print(f"not in {path.name}: {sorted(now - kept)}; not installed: {sorted(kept - now)}")
    return 0 if now <= kept else 1


if __name__ == "__main__":
    sys.exit(main())
