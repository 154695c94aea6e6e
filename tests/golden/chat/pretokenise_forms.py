#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/pretokenise.py without transformers: every form of rows gives the ids that TRL made of it
(pretokenised.json, which says with which versions), `twinstep data show` reads them, and bad input
ends with status 2 and says what is wrong. The tokenizer is tests/golden/chat/stub/transformers.py;
pretokenise_check.py does the same with the real one."""
import argparse
import json
import os
import pathlib
import tempfile

import pretokenise_rows as rows_here


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True)
    binary = parser.parse_args().binary
    stubbed = {**os.environ, "PYTHONPATH": str(rows_here.HERE / "stub"), "PYTHONDONTWRITEBYTECODE": "1"}
    bare = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    fixture = rows_here.read_fixture()
    with tempfile.TemporaryDirectory() as folder:
        rows_here.write_tokenizer(folder, fixture)
        assert set(fixture["rows"]) == set(rows_here.ROWS)
        for name, given in rows_here.ROWS.items():
            text = rows_here.pretokenise(folder, given, stubbed)
            rows = [json.loads(line) for line in text.splitlines()]
            rows_here.check_fixture(fixture, name, rows)
            rows_here.check_shown(binary, folder, name, text, rows)
        rows_here.check_refused(folder, stubbed)
        done = rows_here.run_script(str(pathlib.Path(folder, "none")), '{"text": "a"}', stubbed)
        assert done.returncode == 2 and "has no tokenizer.json" in done.stderr, done
        hidden = pathlib.Path(folder, "hidden", "transformers")
        hidden.mkdir(parents=True)
        (hidden / "__init__.py").write_text("raise ImportError('No module named transformers')\n", encoding="utf-8")
        done = rows_here.run_script(folder, '{"text": "a"}', {**bare, "PYTHONPATH": str(hidden.parent)})
        assert done.returncode == 2 and "pip install transformers" in done.stderr, done
    made = ", ".join(f"{name} {version}" for name, version in fixture["made_with"].items())
    print(f"{len(rows_here.ROWS)} forms as recorded with {made}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
