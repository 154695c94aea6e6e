# SPDX-License-Identifier: Apache-2.0
"""Records trainings whose kernels race (tests/python/racing.c) and the floor of that noise.

    TWINSTEP_TORCH_VENV/bin/python tests/bench/record_racing.py FOLDER

FOLDER gets racing.floor.h5 (99 A/A pairs of ten updates, by twinstep.noise), racing_a.h5 and
racing_b.h5 (two runs that are meant to be the same, in processes of their own), and
racing_rate.h5, whose learning rate is 1 % higher: its configuration says so (initial_lr), and so
does `lr_applied`, but a floor holds the configuration of A alone and judges losses and norms, which
is what is tried here. `gzip -9n` makes the files of tests/golden/record, which
tests/python/test_record_judged.py and test_ci.py judge."""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parents[1] / "python"
UPDATES = 10


def record(path, rate):
    """One run of UPDATES updates."""
    import racing
    import twinstep
    model, optimizer, schedule, step = racing.training(lr=1e-2 * rate)
    with twinstep.Recorder(model, optimizer, schedule, path=path, every=1, quiet=True) as recorder:
        for k in range(UPDATES):
            step(k)
            recorder.update()


def main(folder):
    """The floor here, the recordings in processes of their own."""
    folder = pathlib.Path(folder).resolve()
    library = folder / "libracing.so"
    subprocess.run(["cc", "-std=c11", "-O2", "-shared", "-fPIC", "-pthread", "-o", library,
                    HERE / "racing.c"], check=True)
    os.environ["TWINSTEP_RACING"] = str(library)
    for name, rate in (("racing_a", 1.0), ("racing_b", 1.0), ("racing_rate", 1.01)):
        subprocess.run([sys.executable, __file__, "record", folder / f"{name}.h5", str(rate)],
                       check=True)
    import racing
    import twinstep
    print(twinstep.noise(racing.training, updates=UPDATES, output=folder / "racing.floor.h5"))


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    if sys.argv[1] == "record":
        record(sys.argv[2], float(sys.argv[3]))
    else:
        main(sys.argv[1])
