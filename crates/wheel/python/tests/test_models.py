"""Tests that pruned models open in transformers once `headcount` is imported, and that the import loads nothing."""
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PACKAGES = pathlib.Path(__file__).resolve().parents[1]
MODELING = PACKAGES.parents[1] / "experiment/src/modeling_headcount.py"

# A Llama with 3 layers of 4 heads in 2 groups, whole and without five heads; counted from 0.
MAKE = """
import torch, transformers
from headcount import modeling_headcount
torch.manual_seed(1)
config = transformers.LlamaConfig(vocab_size=31, hidden_size=16, intermediate_size=24, num_hidden_layers=3,
    num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32)
transformers.LlamaForCausalLM(config).save_pretrained("whole")
config.pruned_query_heads = {"0": [1], "2": [0, 1, 2, 3]}
model = modeling_headcount.lacking_heads(transformers.LlamaForCausalLM)(config).eval()
model.save_pretrained("pruned")
with torch.inference_mode():
    torch.save(model(torch.arange(6)[None]).logits, "logits")
"""

OPEN = """
import pathlib, torch
from transformers import AutoModelForCausalLM
model, faults = AutoModelForCausalLM.from_pretrained("pruned", output_loading_info=True)
assert not any(faults.values()), faults
assert type(model).__module__ == "headcount.modeling_headcount", type(model)
with torch.inference_mode():
    gap = (model.eval()(torch.arange(6)[None]).logits - torch.load("logits")).abs().max().item()
assert gap < 1e-6, gap
whole = AutoModelForCausalLM.from_pretrained("whole")
made = AutoModelForCausalLM.from_config(whole.config)
assert type(whole) is type(made) is transformers.LlamaForCausalLM, (type(whole), type(made))
made.save_pretrained("made")
assert not pathlib.Path("made/modeling_headcount.py").exists()
"""


class Installed(unittest.TestCase):
    """The package as it lies in a wheel, beside the module that models of their own folder use."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        shutil.copytree(PACKAGES / "headcount", cls.folder / "headcount")
        shutil.copy(MODELING, cls.folder / "headcount")

    @classmethod
    def run_python(cls, code):
        environment = {**os.environ, "PYTHONPATH": str(cls.folder), "HF_HUB_OFFLINE": "1"}
        done = subprocess.run([sys.executable, "-c", code], cwd=cls.folder, env=environment, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL)
        return done.returncode, done.stderr


class Import(Installed):
    def test_it_loads_no_library(self):
        code, errors = self.run_python("""
import sys
import warnings
before = set(sys.modules)
import headcount
loaded = {name for name in set(sys.modules) - before if not name.startswith("headcount")}
assert not loaded, loaded
""")
        self.assertEqual(code, 0, errors)

    def test_a_transformers_that_has_changed_stays_usable_and_a_warning_says_so(self):
        auto = self.folder / "transformers/models/auto"
        auto.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, self.folder / "transformers")
        for package in auto, *auto.parents[:2]:
            (package / "__init__.py").write_text("__version__ = '9.0'\n")
        (auto / "modeling_auto.py").write_text("ready = True\n")
        for first, second in [("headcount", "transformers.models.auto.modeling_auto as auto"),
                              ("transformers.models.auto.modeling_auto as auto", "headcount")]:
            code, errors = self.run_python(f"import {first}\nimport {second}\nassert auto.ready")
            self.assertEqual(code, 0, errors)
            self.assertIn("transformers 9.0 cannot open models that lack heads", errors)


class Registration(Installed):
    @classmethod
    def setUpClass(cls):
        for name in "torch", "transformers":
            if importlib.util.find_spec(name) is None:
                print(f"skipped: pruned models in transformers: there is no {name}")
                raise unittest.SkipTest(f"there is no {name}")
        super().setUpClass()
        code, errors = cls.run_python(MAKE)
        if code:
            raise AssertionError(errors)

    def check(self, code):
        found, errors = self.run_python(code)
        self.assertEqual(found, 0, errors)

    def test_models_open_in_either_order_of_imports(self):
        self.check("import headcount, transformers" + OPEN)
        self.check("import transformers, headcount" + OPEN)
        self.check("import transformers; transformers.AutoModelForCausalLM.register\nimport headcount" + OPEN)

    def test_neither_the_module_nor_its_entry_need_be_in_the_folder(self):
        path = self.folder / "pruned/config.json"
        text, module = path.read_text(), self.folder / "pruned/modeling_headcount.py"
        self.addCleanup(path.write_text, text)
        self.addCleanup(shutil.copy, MODELING, module)
        config = json.loads(text)
        self.assertEqual(config.pop("auto_map"), {"AutoModelForCausalLM": "modeling_headcount.LlamaForCausalLM"})
        path.write_text(json.dumps(config))
        module.unlink()
        self.check("import headcount, transformers" + OPEN)

    def test_without_it_they_do_not_open(self):
        code, errors = self.run_python("import transformers" + OPEN)
        self.assertEqual(code, 1)
        self.assertRegex(errors, "mismatch|trust_remote_code")
