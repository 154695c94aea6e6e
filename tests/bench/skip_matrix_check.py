# SPDX-License-Identifier: Apache-2.0
"""Checks on three hand-made logs that the oracle of skip_matrix.py would notice an answer that leaves
out the skip of update 1 or the scheduler that is one update late, where both print one column; one that
claims either; and that it asks for no late scheduler where the log shows a skip of another update.

    skip_matrix_check.py --binary TWINSTEP"""
import argparse
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import skip_matrix  # noqa: E402

# transformers, a line of 20 updates from 0.002 without a warm-up, a row every update. The scheduler
# stands at counter 0 for updates 1 and 2, where update 1 was skipped and where its first call was lost.
COLUMN = [0.002] + [0.0001 * (20 - n) for n in range(19)]
TRAINING = dict(contract="hf", kind="linear", peak=0.002, warmup=0, total=200, every=10, skipped=[1], end=200,
                decay=0, untyped=False, processes=2, batch=8, evidence=False, first_row=False, pattern="first")


def judged(binary, training, ask):
    kept = skip_matrix.answer_of
    skip_matrix.answer_of = ask
    try:
        with tempfile.TemporaryDirectory() as folder:
            return skip_matrix.judge(binary, dict(training), folder, None)[0]
    finally:
        skip_matrix.answer_of = kept


def changed(change):
    """The program's answer with something else in it."""
    def ask(command):
        status, answer = real(command)
        return change(status, answer)
    return ask


def without(contract):
    return lambda status, answer: (status, dict(answer, fits=[f for f in answer["fits"] if f["contract"] != contract]))


def late_first(status, answer):
    late = [f for f in answer["fits"] if f["contract"] == "lag1"]
    return status, dict(answer, fits=late + [f for f in answer["fits"] if f not in late])


def other_peak(status, answer):
    return status, dict(answer, fits=[dict(f, lr=0.003, unseen=None) if f["contract"] == "lag1" else f
                                      for f in answer["fits"]])


def one_more(status, answer):
    late = [f for f in answer["fits"] if f["contract"] == "lag1" and skip_matrix.same_kind(f["schedule"], "linear")]
    return status, dict(answer, fits=answer["fits"] + [dict(f, lr=0.003, unseen=None) for f in late[:1]])


real = skip_matrix.answer_of


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    binary = parser.parse_args().binary

    # By hand: which trainings with a late scheduler print the column, and which do where update 7 was
    # skipped, so that rows 1 to 7 are those of a sound one.
    small = dict(TRAINING, total=20, shown=False, digits=17)
    rows = list(enumerate(COLUMN, 1))
    simplest = skip_matrix.simplest_of(small, rows, None)
    assert [h[0] for h in simplest] == [1] and simplest[0][6] == ((1, 1, 1),), simplest
    assert skip_matrix.late_of(small, rows, simplest, None) == [(1, "linear", 0.002, 0, 0)]
    seventh = [(k, 0.0001 * (20 - (k - 1 if k <= 7 else k - 2))) for k in range(1, 21)]
    simplest = skip_matrix.simplest_of(small, seventh, None)
    assert [h[6] for h in simplest] == [((7, 7, 1),)], simplest
    assert skip_matrix.late_of(small, seventh, simplest, None) == []

    hf = TRAINING
    assert judged(binary, hf, real) == "late: same set"
    for change in (without("lag1"), without("hf"), late_first, other_peak, one_more,
                   lambda status, answer: (0, answer)):
        assert judged(binary, hf, changed(change)) == "late: not the set", change
    # Where the command names the contract, the doubt names the late scheduler. Megatron's line has a
    # floor, which explains more.
    asked = dict(hf, contract="nemo-rl-megatron", kind="cosine", warmup=40)
    assert judged(binary, asked, real) == "late: same set"
    for change in (lambda status, answer: (status, dict(answer, doubt=None)), lambda status, answer: (0, answer)):
        assert judged(binary, asked, changed(change)) == "late: not the set", change
    # Two updates are what `lag1` prints as well, where nobody says that the row shows the next LR.
    assert judged(binary, dict(hf, contract="accelerate-split-batches", warmup=40, skipped=[1, 2]), real) == "right"
    # A later update that was skipped is no late scheduler, and decided.
    assert judged(binary, dict(hf, skipped=[77]), real) == "right"


if __name__ == "__main__":
    main()
