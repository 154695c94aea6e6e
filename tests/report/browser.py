#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages of `twinstep report` in a headless Chromium: no sideways scrolling, nothing loaded.

    browser.py --binary TWINSTEP [--keep FOLDER]

Writes pages of catalogue scenarios, exact, noisy, of several causes, and of an imported log;
measures each at phone, tablet and desktop width, light and dark, and prints one to PDF. A copy of
the page gets a script that measures; the page itself has none. Exit status 77 (skipped) without
Chromium, 1 when a page is wider than its window, 0 otherwise. --keep leaves pages and screenshots
there to look at."""
import argparse
import html
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

WIDTHS = [320, 375, 768, 1280]
PAGES = ["exact", "floor", "causes", "sampled", "log"]
# Lists elements that stick out and cannot be scrolled, and the width that the page needs.
PROBE = """
<script>
addEventListener("load", function () {
  document.querySelectorAll("details").forEach(function (d) { d.open = true; });
  var root = document.documentElement, out = [];
  document.querySelectorAll("main *").forEach(function (e) {
    var box = e.getBoundingClientRect();
    if (box.right > innerWidth + 1 && !e.closest(".scroll") && out.length < 5)
      out.push(e.tagName + "." + e.getAttribute("class"));
  });
  var small = [];
  document.querySelectorAll("svg.plot text").forEach(function (e) {
    if (e.getBoundingClientRect().height < 9) small.push(e.textContent);
  });
  var result = {inner: innerWidth, scroll: root.scrollWidth, out: out, small: small.length,
                loaded: performance.getEntriesByType("resource").length,
                plots: document.querySelectorAll("svg.plot").length,
                dark: getComputedStyle(document.body).backgroundColor};
  parent.postMessage(JSON.stringify(result), "*");
});
</script>
"""
# A browser's own window has a least width, so pages are shown in frames, which have none.
FRAMES = """<!DOCTYPE html>
<meta charset="utf-8"/><meta name="color-scheme" content="light dark"/>
<pre id="measured"></pre>
<script>
var all = [];
addEventListener("message", function (event) {
  all.push(JSON.parse(event.data));
  document.getElementById("measured").textContent = JSON.stringify(all);
});
</script>
"""


def browser():
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        path = shutil.which(name)
        if path:
            return path
    return None


def call(words, folder):
    result = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False,
                            timeout=120)
    return result.returncode, result.stdout, result.stderr


def chromium(program, folder, *words):
    common = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
              "--disable-background-networking", "--no-first-run",
              f"--user-data-dir={folder}/profile"]
    return call([*common, *words], folder)


def make_pages(binary, folder):
    (folder / "rows.jsonl").write_text("".join(
        json.dumps({"step": k, "loss": 2.0 / k, "learning_rate": 1e-6 / k,
                    "a/very_long/name_of_a_column_that_nobody_would_write_but_somebody_does": k})
        + "\n" for k in range(1, 2001)))
    for words in (["run", "lr-set-before-step", "--quiet", "--overwrite", "-o", "exact.h5"],
                  ["run", "kernel-order", "--quiet", "--overwrite", "-o", "floor.h5"],
                  ["run", "confounded", "--set", "common.numerics.mode=deterministic", "--quiet",
                   "--overwrite", "-o", "causes.h5"],
                  ["run", "six-differences", "--quiet", "--overwrite", "-o", "sampled.h5"],
                  ["import", "rows.jsonl", "--overwrite", "-o", "log.h5"]):
        code, _, error = call([binary, *words], folder)
        if code > 1:
            sys.exit(f"{words}: {error}")
    for name in PAGES:
        code, _, error = call([binary, "report", f"{name}.h5", "--overwrite", "-o",
                               f"{name}.html"], folder)
        if code != 0:
            sys.exit(error)
        text = (folder / f"{name}.html").read_text(encoding="utf-8")
        assert "<script" not in text
        (folder / f"{name}-probe.html").write_text(text.replace("</body>", PROBE + "</body>"),
                                                   encoding="utf-8")
    return PAGES


def measure(program, folder, name, dark):
    """Returns one dictionary for each of WIDTHS."""
    frames = "".join(f'<iframe src="{name}-probe.html" width="{width}" height="900" '
                     'style="border:0"></iframe>' for width in WIDTHS)
    (folder / f"{name}-frames.html").write_text(FRAMES + frames, encoding="utf-8")
    words = ["--window-size=1400,900", "--virtual-time-budget=5000", "--dump-dom"]
    if dark:
        words.append("--blink-settings=preferredColorScheme=0")
    code, dom, error = chromium(program, folder, *words, f"file://{folder}/{name}-frames.html")
    found = re.search(r'<pre id="measured">(.+?)</pre>', dom, re.S)
    if code != 0 or not found:
        sys.exit(f"{name}: nothing was measured: {error[-300:]}")
    seen = {one["inner"]: one for one in json.loads(html.unescape(found.group(1)))}
    if sorted(seen) != WIDTHS:
        sys.exit(f"{name}: expected widths {WIDTHS}, got {sorted(seen)}")
    return seen


def faults(page, width, seen, dark):
    """Returns what is wrong with one measured page."""
    if seen["scroll"] > width or seen["out"]:
        yield f"{seen['scroll']} wide, sticking out: {seen['out']}"
    if seen["loaded"] != 0:
        yield f"{seen['loaded']} resources loaded"
    if seen["small"] != 0:
        yield f"{seen['small']} labels lower than 9 pixels"
    if seen["plots"] < (2 if page == "log" else 6):
        yield f"only {seen['plots']} drawings"
    if (seen["dark"] == "rgb(255, 255, 255)") == dark:
        yield f"background {seen['dark']}"


def check(program, folder, pages):
    broken = 0
    for page in pages:
        for dark in (False, True):
            for width, seen in measure(program, folder, page, dark).items():
                for fault in faults(page, width, seen, dark):
                    print(f"{page} at {width}{' dark' if dark else ''}: {fault}")
                    broken += 1
    code, _, error = chromium(program, folder, "--no-pdf-header-footer",
                              f"--print-to-pdf={folder}/exact.pdf", f"file://{folder}/exact.html")
    if code != 0 or not (folder / "exact.pdf").read_bytes().startswith(b"%PDF"):
        print(f"print: {error[-300:]}")
        broken += 1
    return broken


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--keep")
    options = parser.parse_args()
    program = browser()
    if program is None:
        print("no Chromium here: skipped")
        return 77
    binary = str(pathlib.Path(options.binary).resolve())
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(options.keep or scratch).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        pages = make_pages(binary, folder)
        broken = check(program, folder, pages)
        if options.keep:
            for page in pages:
                chromium(program, folder, "--window-size=375,4000",
                         f"--screenshot={folder}/{page}.png", f"file://{folder}/{page}.html")
    print(f"{len(pages)} pages at {len(WIDTHS)} widths, light and dark: {broken} faults")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
