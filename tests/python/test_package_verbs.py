# SPDX-License-Identifier: Apache-2.0
"""labels: cli

Verbs that only the package has: whoever gives one to the program is sent to the package."""
import os
import subprocess
import unittest

import twinstep.__main__

PROGRAM = os.environ["TWINSTEP_PROGRAM"]


class PackageVerbs(unittest.TestCase):
    def test_verify_the_program_knows_whose_they_are(self):
        for verb in twinstep.__main__._OWN:
            done = subprocess.run([PROGRAM, verb], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(f"twinstep: error: {verb} is a verb of the Python package", done.stderr)


if __name__ == "__main__":
    unittest.main()
