# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel (PEP 517) with the standard library alone: no package is downloaded to build it.

    pip install ./python                      the package; the program is found on PATH
    twinstep_build.py OUT [--program FILE]    the wheel, with the program in it (preset `wheel`)

The C files of digest/ are compiled with $CC, cc by default. Without a compiler, or with one that
fails, the wheel has no machine code, its tag is py3-none-any, and numpy computes the digests.
Otherwise the tag names the newest version of glibc that the machine code in it asks for. Equal
input makes equal bytes."""
import argparse
import base64
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = "twinstep/_digest.so"  # of digest/*.c
PROGRAM = "twinstep/_program/twinstep"
SCRIPT = "pretokenise.py"  # of docs/, which `twinstep tokenize` runs
EPOCH = (1980, 1, 1, 0, 0, 0)  # the least that a zip can say


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_sdist = get_requires_for_build_wheel


def project():
    return tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def script():
    """Returns the bytes of docs/pretokenise.py: of the checkout, or of an sdist."""
    file = HERE / SCRIPT
    return (file if file.exists() else HERE.parent / "docs" / SCRIPT).read_bytes()


def licences(holds_program):
    """Returns the files that a wheel must carry, by name: those of the checkout, or of an sdist."""
    found = {}
    for name in ("LICENSE", "NOTICE"):
        file = HERE / name if (HERE / name).exists() else HERE.parent / name
        found[name] = file.read_bytes()
    if holds_program:
        found["GPL-3"] = pathlib.Path("/usr/share/common-licenses/GPL-3").read_bytes()
    return found


def metadata(holds_program):
    p = project()
    licence = "Apache-2.0 AND GPL-3.0-or-later" if holds_program else p["license"]["text"]
    lines = ["Metadata-Version: 2.1", f"Name: {p['name']}", f"Version: {p['version']}",
             f"Summary: {p['description']}", f"License: {licence}",
             f"Requires-Python: {p['requires-python']}"]
    lines += [f"Requires-Dist: {word}" for word in p["dependencies"]]
    for extra, words in p["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {word}; extra == '{extra}'" for word in words]
    return "\n".join(lines) + "\n"


def compile_digest():
    """Returns the bytes of the library of digest/*.c; None without sources or without a compiler
    that makes a library of them, which is told."""
    sources = sorted((HERE / "digest").glob("*.c"))
    compiler = os.environ.get("CC", "cc").split()
    if not sources or shutil.which(compiler[0]) is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "digest.so")
        done = subprocess.run([*compiler, "-std=c11", "-O3", "-ffp-contract=off", "-fPIC",
                               "-shared", "-s", "-pthread", "-fvisibility=hidden", "-I", str(HERE),
                               "-o", str(out), *map(str, sources)],
                              check=False, capture_output=True, text=True)
        if done.returncode != 0 or not out.is_file():
            print(f"twinstep: {compiler[0]} does not compile python/digest, so numpy computes the "
                  f"digests, slower:\n{done.stderr}", file=sys.stderr)
            return None
        return out.read_bytes()


def platform_tag(binaries):
    """Returns `any`, or manylinux with the newest glibc that a binary names (PEP 600)."""
    if not binaries:
        return "any"
    minors = [int(minor) for data in binaries for minor in re.findall(rb"GLIBC_2\.(\d+)", data)]
    return f"manylinux_2_{max([17, *minors])}_{platform.machine()}"


def package_files(program):
    """Returns what a wheel installs: {path: (bytes, 0o644 or 0o755)}."""
    files = {path.relative_to(HERE / "src").as_posix(): (path.read_bytes(), 0o644)
             for path in sorted((HERE / "src").rglob("*"))
             if path.is_file() and path.suffix in (".py", ".typed")}
    files[f"twinstep/_{SCRIPT}"] = (script(), 0o644)
    library = compile_digest()
    if library is not None:
        files[LIBRARY] = (library, 0o755)
    if program:
        files[PROGRAM] = (pathlib.Path(program).read_bytes(), 0o755)
    return files


def write_wheel(folder, program=None):
    """Writes the wheel into the folder; returns its name."""
    p, files = project(), package_files(program)
    tag = "py3-none-" + platform_tag([data for data, mode in files.values() if mode == 0o755])
    info = f"{p['name']}-{p['version']}.dist-info"
    points = {"console_scripts": p["scripts"], **p["entry-points"]}
    scripts = "\n".join(f"[{group}]\n" + "".join(f"{name} = {at}\n" for name, at in of.items())
                        for group, of in points.items())
    own = {"METADATA": metadata(bool(program)), "entry_points.txt": scripts,
           "WHEEL": "Wheel-Version: 1.0\nGenerator: twinstep_build\n"
                    f"Root-Is-Purelib: {str(tag.endswith('any')).lower()}\nTag: {tag}\n"}
    files |= {f"{info}/{name}": (text.encode(), 0o644) for name, text in own.items()}
    files |= {f"{info}/licenses/{name}": (data, 0o644) for name, data in licences(program).items()}
    record = ""
    for name, (data, _) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = (f"{record}{info}/RECORD,,\n".encode(), 0o644)
    wheel = f"{p['name']}-{p['version']}-{tag}.whl"
    with zipfile.ZipFile(pathlib.Path(folder, wheel), "w", zipfile.ZIP_DEFLATED) as out:
        for name, (data, mode) in files.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(entry, data)
    return wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, (config_settings or {}).get("program"))


def build_sdist(sdist_directory, config_settings=None):
    p = project()
    base = f"{p['name']}-{p['version']}"
    with tarfile.open(pathlib.Path(sdist_directory, f"{base}.tar.gz"), "w:gz") as out:
        for path in sorted([HERE / "pyproject.toml", HERE / "twinstep_build.py",
                            *(HERE / "digest").glob("*.[ch]"), *(HERE / "src").rglob("*.py"),
                            *(HERE / "src").rglob("py.typed")]):
            out.add(path, f"{base}/{path.relative_to(HERE)}")
        with tempfile.TemporaryDirectory() as folder:
            for name, data in {**licences(False), SCRIPT: script(),
                               "PKG-INFO": metadata(False).encode()}.items():
                pathlib.Path(folder, name).write_bytes(data)
                out.add(pathlib.Path(folder, name), f"{base}/{name}")
    return f"{base}.tar.gz"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("out", metavar="OUT", help="folder for the wheel")
    parser.add_argument("--program", metavar="FILE", help="the twinstep program, to stand in it")
    options = parser.parse_args()
    pathlib.Path(options.out).mkdir(parents=True, exist_ok=True)
    print(pathlib.Path(options.out, write_wheel(options.out, options.program)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
