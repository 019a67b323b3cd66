"""Tests that models without heads, which differ from layer to layer, run in ONNX Runtime as in transformers; and refusals."""
import importlib.util
import json
import shutil
import unittest

from test_models import Installed

# Models of 3 layers of 4 heads (2 layers in an encoder and a decoder). One layer has no head left. Counted from 0.
MAKE = """
import sys, torch, transformers
from headcount import modeling_headcount
torch.manual_seed(1)
small = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=3, num_attention_heads=4, initializer_range=0.3)
texts = dict(vocab_size=31, max_position_embeddings=32, **small)
sizes = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
         "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "init_std": 0.3}
models = {
    "bert": transformers.BertForSequenceClassification(transformers.BertConfig(num_labels=3, **texts)),
    "gpt2": transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=31, n_embd=16, n_layer=3, n_head=4, n_positions=32,
        bos_token_id=1, eos_token_id=1, initializer_range=0.3)),
    "llama": transformers.LlamaForCausalLM(transformers.LlamaConfig(num_key_value_heads=2, **texts)),
    "vit": transformers.ViTForImageClassification(transformers.ViTConfig(image_size=8, patch_size=4, **small)),
    "marian": transformers.MarianMTModel(transformers.MarianConfig(vocab_size=31, max_position_embeddings=32, pad_token_id=0,
        decoder_start_token_id=0, eos_token_id=1, bos_token_id=2, **sizes)),
}
for name, whole in models.items():
    config = whole.config
    whole.save_pretrained(f"whole-{name}")
    if config.is_encoder_decoder:
        config.pruned_attention_heads = {"enc-enc": {"0": [1]}, "enc-dec": {"0": [0, 1, 2, 3], "1": [2]}, "dec-dec": {"0": [0, 1]}}
    else:
        config.pruned_query_heads = {"0": [1], "1": [0, 1, 2, 3], "2": [0, 3]}
    modeling_headcount.lacking_heads(type(whole))(config).save_pretrained(name)
"""

# Inputs of sizes other than those traced and compared, with padding at the end of rows.
RUN = """
import sys, torch, onnxruntime, headcount, transformers
from headcount import onnx
for name, auto in [("bert", "SequenceClassification"), ("gpt2", "CausalLM"), ("llama", "CausalLM"), ("vit", "ImageClassification"),
                   ("marian", "Seq2SeqLM")]:
    file = headcount.to_onnx(name)
    model = getattr(transformers, f"AutoModelFor{auto}").from_pretrained(name).eval()
    whole = getattr(transformers, f"AutoModelFor{auto}").from_pretrained(f"whole-{name}").eval()
    weights = sum(weight.numel() * 4 for weight in model.parameters())
    assert str(file) == f"{name}/model.onnx" and file.stat().st_size < weights + 200_000, (name, file.stat().st_size, weights)
    for batch, length in (4, 5), (1, 29):
        values = onnx.inputs(model, batch, length)
        expected, found = onnx.logits(model, values), torch.from_numpy(onnx.run(file, values))
        gap, effect = (found - expected).abs().max(), (onnx.logits(whole, values) - expected).abs().max()
        assert gap < 1e-5 and effect > 1e-2, (name, batch, length, gap, effect)
print(transformers.__version__)
"""


class Onnx(Installed):
    @classmethod
    def setUpClass(cls):
        for name in "torch", "transformers", "onnx", "onnxruntime":
            if importlib.util.find_spec(name) is None:
                print(f"skipped: ONNX files of pruned models: there is no {name}")
                raise unittest.SkipTest(f"there is no {name}")
        super().setUpClass()
        code, errors = cls.run_python(MAKE)
        if code:
            raise AssertionError(errors)

    def refused(self, arguments, before=""):
        code, errors = self.run_python(f"import sys\n{before}\nfrom headcount import onnx\nsys.exit(onnx.main({arguments}))")
        self.assertEqual((code, errors.count("\n")), (1, 1), errors)
        return errors

    def test_models_without_heads_run_as_in_transformers(self):
        code, errors = self.run_python(RUN)
        self.assertEqual(code, 0, errors)

    def test_what_cannot_be_written_is_refused_in_a_line(self):
        shutil.copytree(self.folder / "llama", self.folder / "empty", ignore=shutil.ignore_patterns("*.safetensors"))
        shutil.copytree(self.folder / "whole-bert", self.folder / "masked-words")
        path = self.folder / "masked-words/config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"architectures": ["BertForMaskedLM"]}))
        self.assertIn("there is no `nowhere/config.json`", self.refused(["nowhere"]))
        self.assertRegex(self.refused(["empty"]), "cannot open `empty`: .*no file named .*model.safetensors")
        self.assertIn("a BertForMaskedLM cannot be written as ONNX", self.refused(["masked-words"]))
        self.assertIn("there is no folder `nowhere`", self.refused(["llama", "nowhere/model.onnx"]))
        missing = "import importlib.util as u\nfind = u.find_spec\nu.find_spec = lambda name, *p: None if name == 'onnxruntime' else find(name, *p)"
        self.assertIn("there is no package `onnxruntime`: `pip install onnxruntime`", self.refused(["llama"], missing))

    def test_a_file_that_computes_other_logits_is_not_written(self):
        other = """
from headcount import onnx
real = onnx.run
onnx.run = lambda file, values: real(file, values) + 1e-3
"""
        self.assertIn("nothing is written", self.refused(["whole-llama"], other))
        self.assertFalse((self.folder / "whole-llama/model.onnx").exists())


if __name__ == "__main__":
    unittest.main()
