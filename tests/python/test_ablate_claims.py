# SPDX-License-Identifier: Apache-2.0
"""labels: unit

Claims of twinstep ablate and bisect-command: what workers that are gone left in the folder, workers
that share a machine, and what a worker that waits says."""
import os
import pathlib
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).with_name("ablate")))
from case import PROGRAM, Case, Slow, alive  # noqa: E402

BOOT = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
SPACE = os.readlink("/proc/self/ns/pid")
HOST = socket.gethostname()
ENDED = f"{HOST} {BOOT} {SPACE} {os.getpid()} 1"  # this number serves another process now
GONE = "gone 11111111-2222-3333-4444-555555555555 pid:[4026531836] 7 99"
TRACE = "echo + {run} >> LOG; sleep 0.5; echo - {run} >> LOG; echo {a} > {dir}/x"


def most(lines):
    """How many runs there were at a time."""
    now = best = 0
    for line in lines:
        now += 1 if line.startswith("+") else -1
        best = max(best, now)
    return best


def own_processes():
    """The words that start a program in a name space of processes of its own, or None."""
    words = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    try:
        done = subprocess.run([*words, "true"], check=False, capture_output=True)
    except OSError:
        return None
    return words if done.returncode == 0 else None


UNSHARE = own_processes()


class Left(Case):
    def setUp(self):
        super().setUp()
        self.script("echo + {run} >> LOG; echo {a} > {dir}/x")
        self.run_program("x.yaml", code=1)  # makes the folder
        for run in (self.root / "x.ablate/runs").iterdir():
            (run / "done").unlink()
        self.log.unlink()
        self.claims = self.root / "x.ablate/claims"

    def test_what_a_crash_left_is_replaced(self):
        for name, text in (("baseline-1", ""), ("baseline-2", ENDED), ("baseline-2.lock", ENDED),
                           ("test-1", ENDED), ("test-1.lock", ""), ("test-2", ""), ("test-2.lock", ""),
                           (f"slot-{HOST}-0", ENDED), (f"slot-{HOST}-0.lock", "")):
            (self.claims / name).write_text(text)
        self.assertEqual(self.verdict(code=1)["verdict"], "outside-floor")
        self.assertEqual(len(self.logged()), 8)  # of one factor, a third run of each arm too
        self.assertEqual(list(self.claims.iterdir()), [])

    def test_a_claim_without_a_start_ends_with_its_process(self):
        with subprocess.Popen(["true"]) as ended:
            pass
        gone = f"{HOST} {BOOT} {SPACE} {ended.pid} -"  # its planner had no memory to read the start
        (self.claims / "baseline-2").write_text(gone)
        (self.claims / f"slot-{HOST}-0").write_text(gone)
        self.assertEqual(self.verdict(code=1)["verdict"], "outside-floor")
        (self.root / "x.ablate/runs/test-1/done").unlink()
        (self.claims / "test-1").write_text(f"{HOST} {BOOT} {SPACE} {os.getpid()} -")
        said = self.run_program("x.yaml", "--take-over", HOST, code=2).stderr
        self.assertIn(f"its process {os.getpid()} lives here and has the claim test-1", said)

    def test_what_is_no_claim_is_an_error_with_its_name(self):
        (self.claims / "test-1").write_text("mine")
        self.assertRegex(self.run_program("x.yaml", code=2).stderr,
                         r'claims/test-1: expected a claim .*, got "mine"; remove it')

    def test_take_over_takes_what_stood_there_and_nothing_later(self):
        (self.claims / "baseline-1").write_text(GONE)
        (self.claims / "baseline-1.lock").write_text(GONE)
        (self.claims / "test-1").write_text(GONE.replace("gone", "other"))
        worker = subprocess.Popen([PROGRAM, "ablate", "x.yaml", "--take-over", "gone"], cwd=self.root,
                                  env=self.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(worker.kill)
        while len(self.logged()) < 3:  # all but what the other machine has
            time.sleep(0.02)
        self.assertNotIn("+ test-1", self.logged())
        waits = "x: waits for process 7 of other (--take-over, if it is gone)\n"
        said = [worker.stderr.readline()]
        while said[-1] != waits:  # it is told where no terminal is, too, and once
            said.append(worker.stderr.readline())
        (self.claims / "hybrid-1").write_text(GONE.replace(" 7 ", " 8 "))  # it is back, and works
        (self.claims / "test-1").unlink()
        while "+ test-1" not in self.logged():
            time.sleep(0.02)
        with self.assertRaises(subprocess.TimeoutExpired):
            worker.wait(1.5)
        (self.claims / "hybrid-1").unlink()
        said = "".join(said) + worker.communicate(timeout=30)[1]
        self.assertEqual(worker.returncode, 1)
        self.assertIn("x: --take-over gone: 2 claims are of that machine\n", said)
        self.assertEqual(said.count(waits), 1)
        self.assertEqual(said.count("x: waits for process 8 of gone (--take-over, if it is gone)\n"), 1)

    def test_take_over_of_a_process_that_lives_is_refused(self):
        start = pathlib.Path(f"/proc/{os.getpid()}/stat").read_text().rsplit(")", 1)[1].split()[19]
        (self.claims / "test-1").write_text(f"{HOST} {BOOT} {SPACE} {os.getpid()} {start}")
        said = self.run_program("x.yaml", "--take-over", HOST, code=2).stderr
        self.assertIn(f"its process {os.getpid()} lives here and has the claim test-1", said)
        self.assertEqual(self.logged(), [])


class Machine(Slow):
    def workers(self, *environments):
        started = [subprocess.Popen([PROGRAM, "ablate", "x.yaml", "--quiet"], cwd=self.root, text=True,
                                    env=dict(self.env, **more), stdout=subprocess.PIPE)
                   for more in environments]
        said = [worker.communicate(timeout=60)[0] for worker in started]
        self.assertEqual(len(set(said)), 1, "\n".join(sorted(set(said))))
        self.assertEqual(len(self.logged()), 2 * len(list((self.root / "x.ablate/runs").iterdir())))
        return [worker.returncode for worker in started], most(self.logged())

    def test_workers_share_the_slots_of_a_machine(self):
        self.script(TRACE, slots=2)
        self.assertEqual(self.workers({}, {}, {}), ([1] * 3, 2))

    def test_jobs_on_one_machine_have_slots_of_their_own(self):
        self.script(TRACE)
        codes, at_once = self.workers(*({"SLURM_JOB_ID": job, "CUDA_VISIBLE_DEVICES": "0"} for job in "123"))
        self.assertEqual(codes, [1] * 3)
        self.assertIn(at_once, (2, 3))  # 1 if they shared the one slot; 3 where all begin in time

    def test_jobs_on_one_machine_share_no_port(self):
        self.script("echo + {port} >> LOG; sleep 0.5; echo - {port} >> LOG; echo {a} > {dir}/x")
        codes, at_once = self.workers(*({"SLURM_JOB_ID": job} for job in "123"))
        self.assertEqual(codes, [1] * 3)
        self.assertIn(at_once, (2, 3))
        taken = set()
        for line in self.logged():
            sign, port = line.split()
            self.assertEqual(int(port) % 64, 29500 % 64)
            self.assertEqual(port in taken, sign == "-", self.logged())
            (taken.add if sign == "+" else taken.remove)(port)
        self.assertEqual(list((self.root / "x.ablate/claims").iterdir()), [])

    @unittest.skipUnless(UNSHARE, "needs unshare, and the right to use it")
    def test_workers_in_containers_run_nothing_twice(self):
        # Neither sees whether a process of the other one lives: numbers mean nothing there, and what the
        # first process of a container is called serves another process outside.
        self.script(TRACE)
        words = [PROGRAM, "ablate", "x.yaml", "--quiet"]
        started = [subprocess.Popen([*within, *words], cwd=self.root, text=True, stdout=subprocess.PIPE,
                                    env=dict(self.env, SLURM_JOB_ID=job))
                   for job, within in (("1", UNSHARE), ("2", UNSHARE), ("3", []))]
        said = [worker.communicate(timeout=90)[0] for worker in started]
        self.assertEqual([worker.returncode for worker in started], [1] * 3)
        self.assertEqual(len(set(said)), 1)
        runs = sorted(run.name for run in (self.root / "x.ablate/runs").iterdir())
        self.assertEqual(sorted(line for line in self.logged() if line.startswith("+")), [f"+ {r}" for r in runs])
        self.assertEqual(sorted(line for line in self.logged() if line.startswith("-")), [f"- {r}" for r in runs])

    @unittest.skipUnless(UNSHARE, "needs unshare, and the right to use it")
    def test_what_a_container_had_is_left_to_it_until_it_is_taken_over(self):
        self.script("echo + {run} >> LOG; case {run} in *-2) test ! -e LOG.hold || sleep 60;; esac; echo {a} > {dir}/x")
        hold = pathlib.Path(f"{self.log}.hold")
        hold.touch()
        words = [PROGRAM, "ablate", "x.yaml", "--quiet"]
        inside = subprocess.Popen([*UNSHARE, *words], cwd=self.root, env=dict(self.env, SLURM_JOB_ID="1"),
                                  stdout=subprocess.DEVNULL)
        self.addCleanup(inside.kill)
        while not any(line.endswith("-2") for line in self.logged()):
            time.sleep(0.02)
        inside.kill()               # and the kernel ends all in its name space
        inside.wait()
        hold.unlink()
        first = self.logged()
        worker = subprocess.Popen(words[:-1], cwd=self.root, env=dict(self.env, SLURM_JOB_ID="2"), text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(worker.kill)
        told = worker.stderr.readline()
        while "(--take-over, if it is gone)" not in told and told:
            told = worker.stderr.readline()
        self.assertIn(f"of {HOST}", told)
        self.assertEqual(self.logged().count(first[-1]), 1)     # it was not begun again
        worker.terminate()          # and with it the run that it has begun, which would hold the pipes
        worker.communicate()

    def test_workers_that_see_other_devices_have_slots_of_their_own(self):
        self.script(TRACE)
        codes, at_once = self.workers(*({"CUDA_VISIBLE_DEVICES": gpu} for gpu in ("0", "1,2", "0")))
        self.assertEqual(at_once, 2)
        # 3 if one of them was so slow that the other got all of an arm, which is seen
        self.assertIn(codes, ([1] * 3, [3] * 3))
        places = {line for done in (self.root / "x.ablate/runs").glob("*/done")
                  for line in done.read_text().splitlines() if line.startswith("place ")}
        self.assertEqual(places, {f"place {HOST} device 0", f"place {HOST} device 1,2"})


if __name__ == "__main__":
    unittest.main()
