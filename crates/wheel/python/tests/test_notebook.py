"""Runs the notebook in an empty folder, where nbclient and an installed `headcount` are; outputs are committed."""
import importlib.util
import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[4]
NOTEBOOK = ROOT / "experiments/notebooks/from-folder-to-pruned-model.ipynb"
PATH = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


class Notebook(unittest.TestCase):
    def test_outputs_are_committed(self):
        cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        self.assertGreater(len(code), 5)
        self.assertEqual([cell["execution_count"] for cell in code], list(range(1, len(code) + 1)))
        outputs = json.dumps([cell["outputs"] for cell in code])
        self.assertNotIn('"error"', outputs)
        self.assertNotRegex(outputs, "/home|/root|/tmp|/work", "no path of a machine")

    def test_it_runs_from_top_to_bottom(self):
        needs = "nbclient", "ipykernel", "torch", "transformers", "pandas", "matplotlib"
        missing = [name for name in needs if importlib.util.find_spec(name) is None]
        missing += [] if shutil.which("headcount", path=PATH) else ["command `headcount`"]
        if missing:
            print(f"skipped: the notebook: there is no {missing[0]}")
            raise unittest.SkipTest(f"there is no {missing[0]}")
        import nbclient
        import nbformat

        notebook = nbformat.read(NOTEBOOK, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            client = nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}})
            client.execute(env={**os.environ, "PATH": PATH})
        last = [cell for cell in notebook.cells if cell.cell_type == "code"][-1]
        self.assertRegex(last.outputs[0].text, r"^[1-9]\d* of 32 heads are gone, and [\d,]+ of [\d,]+ parameters\n$")
