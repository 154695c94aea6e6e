#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs a build and looks at what is there.

    installed.py --build BUILD [--compiler CC]          into a prefix, by cmake --install
    installed.py --build BUILD --deb [--keep FOLDER]    as a .deb by CPack, unpacked

Both: every file and its mode, a binary without symbols that runs, pages gzipped. The prefix: a
module built with what pkg-config says, loaded by the installed program; the module of ranks over
MPI, where it is built, found by it. The .deb: control fields,
owners, checksums, changelogs, and the debug symbols beside it. Nothing is built here: CPack and
cmake --install take what the build tree holds. Skipped (77) where a tool is missing."""
import argparse
import gzip
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*words, **more):
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                            check=False, **more)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: exit status {result.returncode}\n{result.stdout}"
                 f"{result.stderr}")
    return result.stdout


def needs(*tools):
    for tool in tools:
        if shutil.which(tool) is None:
            print(f"{tool} is not installed: skipped")
            sys.exit(77)


def wanted_files(binary, only):
    """Returns {path below the prefix: mode}; `only` are those of one way to install."""
    listed = (ROOT / "cmake/module_headers.cmake").read_text(encoding="utf-8")
    headers = re.search(r"TWINSTEP_MODULE_HEADERS\s+([^)]*)\)", listed).group(1).split()
    overview = re.findall(r"^  (?!twinstep)(.{14}) ", run(binary, "--help"), re.M)
    pages = ["twinstep", *(f"twinstep-{verb.strip().replace(' ', '-')}" for verb in overview)]
    files = [*(f"include/twinstep/{header}" for header in headers),
             *(f"share/man/man1/{page}.1.gz" for page in pages),
             "share/bash-completion/completions/twinstep", "share/pkgconfig/twinstep.pc",
             "include/twinstep_trace.h", "lib/pkgconfig/twinstep-trace.pc",
             "share/twinstep/template_optim.c", "share/twinstep/template_sched.c",
             "share/doc/twinstep/copyright", "share/doc/twinstep/NOTICE", *only]
    version = run(binary, "--version").split()[-1]
    library = "lib/libtwinstep_trace.so"
    return {"bin/twinstep": 0o755, library: 0o777, f"{library}.0": 0o777, # these two are links
            f"{library}.{version}": 0o644, **{file: 0o644 for file in files}}


def check_files(prefix, wanted):
    found = {path.relative_to(prefix).as_posix(): stat.S_IMODE(path.lstat().st_mode)
             for path in prefix.rglob("*") if not path.is_dir()}
    for path in sorted({*found, *wanted}):
        if found.get(path) != wanted.get(path):
            sys.exit(f"{path}: expected mode {wanted.get(path)}, got {found.get(path)}; "
                     "None: no file")
    for path in prefix.rglob("*"):
        if path.is_dir() and stat.S_IMODE(path.stat().st_mode) != 0o755:
            sys.exit(f"{path}: expected mode 755, got {stat.S_IMODE(path.stat().st_mode):o}")
    return len(found)


def check_binary(binary, built):
    sections = run("readelf", "-SW", binary)
    for section in (".debug_info", ".symtab"):
        if section in sections:
            sys.exit(f"{binary}: has {section}")
    if run(binary, "--version") != run(built, "--version"):
        sys.exit("the installed program has another version than the built one")
    if run(binary, "list", "--json") != run(built, "list", "--json"):
        sys.exit("the installed program lists something else than the built one")
    sizes = [file.stat().st_size / 1e6 for file in (built, binary)]
    return f"binary {sizes[0]:.1f} MB built, {sizes[1]:.1f} MB installed"


def check_notices(prefix):
    """The notices of each library that the program holds, not only loads, lie beside it."""
    loads = run("readelf", "-dW", prefix / "bin/twinstep")
    notices = (prefix / "share/doc/twinstep/copyright").read_text(encoding="utf-8")
    for library, name, holder in (("libhdf5", "HDF5", "The HDF Group"),
                                  ("libsz", "libaec", "Mathis Rosenhauer")):
        if library not in loads and (f"\nLicense: {name}\n" not in notices or holder not in notices):
            sys.exit(f"copyright: expected the licence of {name}, which the program holds")


def check_module(prefix, compiler, folder):
    environment = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "share/pkgconfig")}
    flags = shlex.split(run("pkg-config", "--cflags", "twinstep", env=environment))
    version = run("pkg-config", "--modversion", "twinstep", env=environment).strip()
    if f"twinstep {version}\n" != run(prefix / "bin/twinstep", "--version"):
        sys.exit(f"pkg-config says version {version}")
    for template, key in (("template_optim", "optimizer.momentum"),
                          ("template_sched", "schedule.decay")):
        module = folder / f"{template}.so"
        run(compiler, "-std=c11", "-O2", "-fPIC", "-shared", "-Wall", "-Werror", *flags,
            "-o", module, prefix / f"share/twinstep/{template}.c")
        if key not in run(prefix / "bin/twinstep", "keys", "--module", module):
            sys.exit(f"{module}: expected key {key}")
    return f"pkg-config: {' '.join(flags).replace(str(prefix), 'PREFIX')}"


RECORDER = """
#include <stdio.h>
#include <twinstep_trace.h>
int main(void) {
    const uint64_t shape[1] = {3};
    const float values[3] = {1.0f, -0.0f, 2.5f};
    const struct twinstep_trace_tensor tensor = {"weight", "f32", 1, shape, 0};
    const struct twinstep_trace_options options = {
        .writer = "recorder", .groups = 1, .tensors = &tensor, .tensor_count = 1};
    struct twinstep_trace *trace;
    if (twinstep_trace_open("run.h5", &options, &trace) != 0 ||
        twinstep_trace_put(trace, "loss", 1.5) != 0 ||
        twinstep_trace_put_group(trace, "lr_applied", 0, 0.1) != 0 ||
        twinstep_trace_digest(trace, "digest_parameter", 0, values, 0, 3) != 0 ||
        twinstep_trace_end(trace, 1) != 0 || twinstep_trace_close(trace, 1) != 0)
        return fputs(twinstep_trace_error(), stderr), 1;
    return 0;
}
"""


def check_trace_library(prefix, compiler, folder):
    """A program that knows nothing but pkg-config writes a trace that the program takes."""
    environment = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    flags = shlex.split(run("pkg-config", "--cflags", "--libs", "twinstep-trace", env=environment))
    (folder / "recorder.c").write_text(RECORDER, encoding="utf-8")
    run(compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", folder / "recorder.c", "-o",
        folder / "recorder", *flags)
    subprocess.run([folder / "recorder"], cwd=folder, check=True,
                   env={**os.environ, "LD_LIBRARY_PATH": str(prefix / "lib")})
    said = run(prefix / "bin/twinstep", "import", "--check", folder / "run.h5")
    if "a trace of recorder" not in said or "roots    stored" not in said:
        sys.exit(f"trace of the library: {said}")
    names = run("nm", "-D", "--defined-only", prefix / "lib/libtwinstep_trace.so")
    if not all(" twinstep_trace_" in line for line in names.splitlines()):
        sys.exit(f"the library shows more than its header: {names}")
    return f"a recorder in C: {' '.join(flags).replace(str(prefix), 'PREFIX')}"


def check_ranks(prefix, folder, ranks):
    """The installed program finds the module of ranks over MPI, or says that there is none."""
    scenario = folder / "ranks.yaml"
    scenario.write_text("twinstep: 1\nname: ranks\nsteps: 1\n", encoding="utf-8")
    done = subprocess.run([prefix / "bin/twinstep", "run", scenario, "--ranks", "mpi", "-o",
                           folder / "ranks.h5", "--quiet"], capture_output=True, text=True,
                          check=False)
    is_missed = "found none" in done.stderr
    if is_missed == bool(ranks):
        sys.exit(f"--ranks mpi: the module is {ranks or 'not built'}, but:\n{done.stderr}")
    return "twinstep_mpi.so: " + ("found by the installed program" if ranks else "not built")


def check_prefix(build, compiler, folder):
    needs("pkg-config", "readelf")
    prefix = folder / "a prefix"
    run("cmake", "--install", build, "--prefix", prefix)
    ranks = ["lib/twinstep/twinstep_mpi.so"] if (build / "twinstep_mpi.so").exists() else []
    count = check_files(prefix, wanted_files(build / "bin/twinstep", [
        "share/zsh/site-functions/_twinstep", "share/doc/twinstep/LICENSE", *ranks]))
    print(f"{count} files")
    print(check_binary(prefix / "bin/twinstep", build / "bin/twinstep"))
    check_notices(prefix)
    print(check_module(prefix, compiler, folder))
    print(check_trace_library(prefix, compiler, folder))
    print(check_ranks(prefix, folder, ranks))


def check_control(fields):
    wanted = {"Package": "twinstep", "Section": "science", "Priority": "optional"}
    for name, value in wanted.items():
        if fields.get(name) != value:
            sys.exit(f"control: {name}: expected {value}, got {fields.get(name)}")
    if not re.fullmatch(r"\d+\.\d+\.\d+-\d+", fields["Version"]) or "Homepage" in fields:
        sys.exit(f"control: {fields}")
    for library in ("libc6", "libgsl", "libhdf5", "libfyaml", "libjansson", "libnettle", "libgomp",
                    "zlib1g", "liblzma", "libzstd", "libsqlite3"):
        if library not in fields["Depends"]:
            sys.exit(f"control: Depends: expected {library}, got {fields['Depends']}")


def fields_of(package):
    text = run("dpkg-deb", "--field", package)
    return dict(re.findall(r"^([\w-]+): (.*)$", text, re.M))


def check_checksums(package, unpacked, folder):
    run("dpkg-deb", "--control", package, folder)
    for line in (folder / "md5sums").read_text(encoding="utf-8").splitlines():
        digest, path = line.split(maxsplit=1)
        if hashlib.md5((unpacked / path).read_bytes()).hexdigest() != digest:
            sys.exit(f"md5sums: {path} has another checksum")


def check_changelogs(unpacked, fields):
    folder = unpacked / "usr/share/doc/twinstep"
    packed = (folder / "changelog.gz").read_bytes()
    if gzip.decompress(packed) != (ROOT / "CHANGELOG.md").read_bytes():
        sys.exit("changelog.gz is not CHANGELOG.md")
    if packed[4:8] != bytes(4):
        sys.exit("changelog.gz: holds the time at which it was compressed")
    first = gzip.decompress((folder / "changelog.Debian.gz").read_bytes()).decode().split("\n")[0]
    if first != f"twinstep ({fields['Version']}) unstable; urgency=medium":
        sys.exit(f"changelog.Debian.gz begins with {first}")


def check_document(files):
    """docs/INSTALL.md must list the files, with each verb's page and each header as one line."""
    text = (ROOT / "docs/INSTALL.md").read_text(encoding="utf-8")
    shown = re.search(r"<!-- installed: files -->\n```\n(.*?)```", text, re.S).group(1).split()
    got = {re.sub(r"(man1/twinstep-).*", r"\1VERB.1.gz", re.sub(r"(include/twinstep)/.*", r"\1/...",
                                                                path[1:])) for path in files}
    if set(shown) != got:
        sys.exit(f"docs/INSTALL.md: files: {sorted(set(shown) ^ got)}")


def check_symbols(package, binary, folder):
    run("dpkg-deb", "-x", package, folder)
    identity = re.search(r"Build ID: (\w\w)(\w+)", run("readelf", "-nW", binary))
    path = folder / "usr/lib/debug/.build-id" / identity.group(1) / f"{identity.group(2)}.debug"
    if ".debug_info" not in run("readelf", "-SW", path):
        sys.exit(f"{package}: no debug symbols")


def check_deb(build, folder, keep):
    needs("dpkg-deb", "dpkg-shlibdeps", "file", "objcopy", "readelf")
    run("cpack", "--config", build / "CPackConfig.cmake", "-B", folder, cwd=build)
    package, = folder.glob("*.deb")
    symbols, = folder.glob("*-dbgsym*.ddeb")
    fields, unpacked = fields_of(package), folder / "unpacked"
    check_control(fields)
    listed = run("dpkg-deb", "--contents", package).splitlines()
    for line in listed:
        if line.split()[1] != "root/root":
            sys.exit(f"owner: {line}")
    run("dpkg-deb", "-x", package, unpacked)
    count = check_files(unpacked / "usr", wanted_files(build / "bin/twinstep", [
        "share/zsh/vendor-completions/_twinstep", "share/doc/twinstep/changelog.gz",
        "share/doc/twinstep/changelog.Debian.gz"]))
    check_document([line.split(" -> ")[0].split()[-1] for line in listed
                    if not line.endswith("/")])
    check_checksums(package, unpacked, folder / "control")
    check_changelogs(unpacked, fields)
    check_symbols(symbols, unpacked / "usr/bin/twinstep", folder / "symbols")
    print(f"{package.name}: {package.stat().st_size / 1e6:.1f} MB, {count} files")
    print(f"{symbols.name}: {symbols.stat().st_size / 1e6:.1f} MB")
    print(f"Depends: {fields['Depends']}")
    print(check_binary(unpacked / "usr/bin/twinstep", build / "bin/twinstep"))
    check_notices(unpacked / "usr")
    if keep:
        for file in (package, symbols):
            shutil.copy(file, keep)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--deb", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if options.deb:
            check_deb(options.build.resolve(), folder, options.keep)
        else:
            check_prefix(options.build.resolve(), options.compiler, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
