# SPDX-License-Identifier: Apache-2.0
"""Checks what compare.py makes of the seconds that it measured, on a machine that is made up: the
order of rows, each round's own ratio, the share of that round's peak, and the end where a peer
trains something else."""
import pathlib
import sys
import types

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import compare  # noqa: E402

# Seconds of an update by round. The ratios are 3, 0.5 and 0.5; that of the medians is 1.
OURS, THEIRS = (0.3, 0.2, 0.1), (0.1, 0.4, 0.2)
SHAPE = (5261568, 1024, 1020)


class Machine:
    def __init__(self, shape=SHAPE):
        self.args = types.SimpleNamespace(build="BUILD", threads=2)
        self.cpu, self.intel, self.mkl, self.versions = "a CPU", True, "kernels", ("1", "2")
        self.shape, self.asked, self.round = shape, [], 0
        self.base = compare.wide_row("Intel(R) Advanced Vector Extensions 2 (Intel(R) AVX2) enabled processors")

    def rows(self):
        return [self.base, "twinstep f32"]

    def peak(self):
        self.round += 1
        return {("fma-f32", 1): 50.0, ("fma-f32", 2): 100.0 * self.round}

    def row(self, name, row):
        self.asked.append(row)
        seconds = (THEIRS if row == self.base else OURS)[self.round - 1]
        return (SHAPE if row == self.base else self.shape), seconds, 0.1 * self.round


def main():
    machine = Machine()
    measured = compare.measure(machine, ["small"], 3)
    there = machine.rows()
    assert machine.asked == there + there[::-1] + there, machine.asked
    page = "\n".join(compare.page(machine, ["small"], 3, measured))
    # From paper: 1024 tokens x 4 layers x (4 x 256^2 + 3 x 256 x 688), 1020 labels x 256 x 8192, and
    # causal attention 4 layers x 256 x 256 x 1024, six times each: 32.26 + 1.61 GFLOP.
    assert "Products of an update: 33.9 GFLOP." in page, page
    # 33.87 in 0.3, 0.2 and 0.1 s are 113, 169 and 339 GFLOP/s, of 100, 200 and 300: 113, 85, 113 %.
    assert "| twinstep f32 | 200 (100 to 300) | 0.50 | 113 % | 0.30 |" in page, page
    # what MKL says, and nothing that the processor's maker would suggest
    assert "| PyTorch f32, MKL AVX2 | 200 (100 to 400) | 1.00 |" in page, page
    told = "Intel(R) Advanced Vector Extensions 512 (Intel(R) AVX-512) with support of Vector Neural Network"
    assert compare.wide_row(told) == "PyTorch f32, MKL AVX-512"
    assert "MKL" not in compare.wide_row("another library")
    assert "must count the same parameters, tokens and labels" in page, page
    assert "fma-f32, 2 threads 200 (100 to 300)" in page, page
    try:
        compare.measure(Machine((5261568, 1024, 1024)), ["small"], 1)
    except SystemExit as end:
        assert "trains another model or other rows" in str(end), end
    else:
        raise AssertionError("another number of labels was taken for the same training")


if __name__ == "__main__":
    main()
