"""Runs as tables: what the program is asked, and what becomes of its answer. No program runs here."""
import csv
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import headcount  # noqa: E402
from headcount import command  # noqa: E402

ROW = {"task": "", "run": "run-2.csv", "difference": -0.5, "p_value": None, "verdict": "undecided"}
# Prints the arguments and the first run as a row of an answer.
PROGRAM = """#!{python}
import json, sys
row = {row} | {{"arguments": sys.argv[4:], "content": open(sys.argv[2]).read()}}
print(json.dumps({{"rows": [row]}}))
"""


class Frame:
    """What a pandas frame has, where there is no pandas."""

    def __init__(self, rows):
        self.rows = rows

    def to_dict(self, kind):
        assert kind == "records"
        return self.rows


class Compared(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program = pathlib.Path(folder.name) / "headcount"
        self.install(PROGRAM.format(python=sys.executable, row=repr(ROW)))
        for patch in [mock.patch.object(command, "BIN", self.program.parent), mock.patch.object(command, "libtorch", return_value={}),
                      mock.patch("importlib.metadata.requires", return_value=["torch==2.11.0"])]:
            patch.start()
            self.addCleanup(patch.stop)

    def install(self, program):
        self.program.write_text(program)
        self.program.chmod(0o755)

    def compared(self, *frames, **options):
        table = headcount.compare(*frames, **options)
        return table[0] if isinstance(table, list) else table.iloc[0].to_dict()

    def test_scores_are_passed_in_full_and_options_as_typed(self):
        rows = [{"doc": "a,b", "score": 0.1 + 0.2, "page": 1, "other": "x"}, {"doc": "c", "score": True, "page": 2, "other": "y"},
                {"doc": "d", "score": 0, "page": float("nan"), "other": "z"}]
        for frame in [rows, Frame(rows)]:
            row = self.compared(frame, frame, id="doc", cluster="page", margin=1, lower_is_better=True, gate=False, tasks=["a", "b"])
            self.assertEqual(list(csv.reader(row["content"].splitlines())),
                             [["doc", "score", "page"], ["a,b", "0.30000000000000004", "1"], ["c", "True", "2"], ["d", "0", ""]])
            self.assertEqual(row["arguments"], ["--json", "--id=doc", "--cluster=page", "--margin=1", "--lower-is-better", "--tasks=a", "--tasks=b"])
            self.assertEqual((row["verdict"], row["difference"]), ("undecided", -0.5))

    def test_paths_are_passed_as_they_are(self):
        path = pathlib.Path(tempfile.mkdtemp()) / "log.jsonl"
        path.write_text("{}\n")
        self.assertEqual(self.compared(path, path)["content"], "{}\n")

    def test_what_the_program_refuses_is_said(self):
        with self.assertRaisesRegex(headcount.CompareError, "^a run has no column `acc`$"):
            headcount.compare([{"id": 1, "score": 1}], [], score="acc")
        with self.assertRaisesRegex(headcount.CompareError, "^a run has no rows$"):
            headcount.compare([], [])
        self.install("#!/bin/sh\necho 'warning: averaged' >&2; echo 'error: no document is in all runs' >&2\nexit 1\n")
        with self.assertRaisesRegex(headcount.CompareError, "^no document is in all runs$"):
            headcount.compare([{"id": 1, "score": 1}], [{"id": 2, "score": 1}])


if __name__ == "__main__":
    unittest.main()
