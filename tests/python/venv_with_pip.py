# SPDX-License-Identifier: Apache-2.0
"""An environment with pip beside the packages of the system, for test_wheel.py and test_action.py."""
import ensurepip
import os
import pathlib
import subprocess
import sys
import zipfile


def bundled():
    """The wheel of pip that ensurepip would install, or None where it does not say where that is."""
    folder = getattr(ensurepip, "_WHEEL_PKG_DIR", None) or pathlib.Path(ensurepip.__file__).parent / "_bundled"
    wheels = sorted(pathlib.Path(folder).glob("pip-*.whl"))
    return wheels[-1] if wheels else None


def make(place, environment):
    """Makes the environment. Where the system has no pip, its wheel is unpacked there, which is all that
    installing it comes to: ensurepip installs setuptools, too, compiles both, and takes ten times as long."""
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", place], check=True,
                   capture_output=True)
    python = place / "bin/python"
    if subprocess.run([python, "-m", "pip", "--version"], capture_output=True, env=environment,
                      check=False).returncode != 0:
        wheel = bundled()
        if wheel is None:
            subprocess.run([python, "-m", "ensurepip"], check=True, capture_output=True, env=environment)
        else:
            with zipfile.ZipFile(wheel) as file:
                file.extractall(next(place.glob("lib/python3*/site-packages")))
    command(place, "pip", "import sys\nfrom pip._internal.cli.main import main\nsys.exit(main())\n")


def command(place, name, text):
    """Writes a command of the environment, as pip does for those of what it installs."""
    path = place / "bin" / name
    path.write_text(f"#!{os.fspath(place)}/bin/python\n{text}", encoding="utf-8")
    path.chmod(0o755)
