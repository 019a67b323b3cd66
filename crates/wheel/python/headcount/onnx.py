"""ONNX files of models that transformers opens, with or without all their heads: `python -m headcount.onnx FOLDER [FILE.onnx]`.

The graph takes `input_ids` and `attention_mask` (also `token_type_ids` or `decoder_input_ids`), `[batch, sequence]`, or
`pixel_values`, and returns `logits` in f32; batch and sequence may have any length. It has no key-value cache. The program
`export-model` runs this file too, without its package.
"""
import contextlib
import importlib.util
import inspect
import os
import sys
import tempfile
import unittest.mock
import warnings
from pathlib import Path

PACKAGES = ["torch", "transformers", "onnx", "onnxruntime"]
AUTO_CLASSES = {
    "ForSequenceClassification": "AutoModelForSequenceClassification", "ForTokenClassification": "AutoModelForTokenClassification",
    "ForImageClassification": "AutoModelForImageClassification", "ForCausalLM": "AutoModelForCausalLM",
    "LMHeadModel": "AutoModelForCausalLM", "ForConditionalGeneration": "AutoModelForSeq2SeqLM", "MTModel": "AutoModelForSeq2SeqLM",
}
# Batch and sequence of the traced input, and of those on which the file is compared with the model
TRACED, COMPARED = (2, 7), [(1, 1), (3, 12)]
TOLERANCE = 1e-4  # of logits, as a part of the largest if that is above 1
LARGEST = 2**31 - 2**24  # bytes of weights; one ONNX file holds 2 GiB


class OnnxError(Exception):
    """A model that cannot be written as ONNX: one sentence says why."""


def to_onnx(folder, file=None, **settings):
    """Writes the model of a folder as an ONNX file, checks it, and returns its path; by default `model.onnx` in the folder."""
    if missing := [name for name in PACKAGES if importlib.util.find_spec(name) is None]:
        raise OnnxError(f"there is no package `{missing[0]}`: `pip install {' '.join(missing)}`")
    folder = Path(folder)
    file = Path(file or folder / "model.onnx")
    if not (folder / "config.json").is_file():
        raise OnnxError(f"there is no `{folder / 'config.json'}`: name the folder of a model")
    if not file.parent.is_dir():
        raise OnnxError(f"cannot write `{file}`: there is no folder `{file.parent}`")
    model = open_model(folder, settings)
    with tempfile.TemporaryDirectory(dir=file.parent) as partial:
        written = Path(partial) / file.name
        write(model, written)
        gap, allowed = compare(model, written)
        if not gap <= allowed:  # not so for NaN either
            raise OnnxError(f"`{folder}`: logits of ONNX Runtime differ by {gap:.1e}, more than {allowed:.1e}: nothing is written")
        os.replace(written, file)
    return file


def open_model(folder, settings):
    """The model of a folder in f32, all of whose weights fit."""
    import transformers.models.auto.modeling_auto  # first: classes that lack heads are registered then, and not amid other imports
    transformers.utils.logging.disable_progress_bar()
    try:
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True, **settings)
        name = (config.architectures or ["model without `architectures`"])[0]
        auto = next((auto for end, auto in AUTO_CLASSES.items() if name.endswith(end)), None)
        if auto is None:
            raise OnnxError(f"`{folder}`: a {name} cannot be written as ONNX: expected a class ending in {', '.join(AUTO_CLASSES)}")
        model, faults = getattr(transformers, auto).from_pretrained(
            folder, output_loading_info=True, local_files_only=True, attn_implementation="eager", **settings)
    except (AttributeError, ImportError, KeyError, OSError, RuntimeError, ValueError) as error:
        raise OnnxError(f"transformers {transformers.__version__} cannot open `{folder}`: {' '.join(str(error).split())[:200]}") from error
    for fault in "missing_keys", "mismatched_keys":
        # transformers makes tables of positions itself, although it calls some missing
        if keys := [str(key) for key in faults[fault] if "embed_positions" not in str(key)]:
            raise OnnxError(f"`{folder}` has {len(keys)} {fault.replace('_', ' ')}, such as {min(keys)}")
    size = sum(weight.numel() * 4 for weight in model.parameters())
    if size > LARGEST:
        raise OnnxError(f"`{folder}` has {size / 2**30:.1f} GiB of weights in f32: one ONNX file holds 2 GiB")
    model.config.use_cache = False
    return model.float().eval()


def inputs(model, batch, length):
    """Random inputs by name; the last tokens of all rows but the first are padding."""
    import torch
    config, generator = model.config, torch.Generator().manual_seed(1)
    if model.main_input_name == "pixel_values":
        sides = config.image_size if isinstance(config.image_size, (list, tuple)) else [config.image_size] * 2
        return {"pixel_values": torch.randn(batch, config.num_channels, *sides, generator=generator)}
    tokens = min(size for name in ("vocab_size", "src_vocab_size", "tgt_vocab_size") if (size := getattr(config, name, None)))
    draw = lambda limit, length: torch.randint(limit, (batch, length), generator=generator)
    found = {"input_ids": draw(tokens, length)}
    found["attention_mask"] = (torch.arange(length) < length - torch.arange(batch)[:, None]).long()
    if getattr(config, "type_vocab_size", 0) > 1 and "token_type_ids" in inspect.signature(model.forward).parameters:
        found["token_type_ids"] = draw(config.type_vocab_size, length)
    if config.is_encoder_decoder:
        found["decoder_input_ids"] = draw(tokens, length + 2)
    return found


def logits(model, values):
    import torch
    with torch.inference_mode():
        return model(**values).logits


def write(model, file):
    import torch

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *values):
            return self.model(**dict(zip(given, values))).logits

    given = inputs(model, *TRACED)
    axes = {name: {0: "batch", 1: "decoder_sequence" if name == "decoder_input_ids" else "sequence"} for name in given}
    if "pixel_values" in given:
        axes["pixel_values"] = {0: "batch"}
    is_sequence = logits(model, given).dim() == 3  # not one row of logits for each text or image
    axes["logits"] = axes.get("decoder_input_ids", axes.get("input_ids")) if is_sequence else {0: "batch"}
    try:
        with warnings.catch_warnings(), broadcast_masks(), torch.no_grad():
            warnings.simplefilter("ignore")  # sizes that are the same for all inputs are constants
            # By tracing: torch.export of torch 2.11 fails on Marian. Folding would write tied embeddings twice.
            torch.onnx.export(Logits().eval(), tuple(given.values()), str(file), input_names=list(given), output_names=["logits"],
                              dynamic_axes=axes, opset_version=18, do_constant_folding=False, dynamo=False)
    except Exception as error:  # each model and version has its own ways to fail
        raise OnnxError(f"torch {torch.__version__} cannot trace a {type(model).__name__}: {' '.join(str(error).split())[:200]}") from error


@contextlib.contextmanager
def broadcast_masks():
    """Attention masks by broadcasting, as in transformers 5: version 4 makes them by `vmap`, which cannot be traced."""
    from transformers import masking_utils
    if not hasattr(masking_utils, "_vmap_for_bhqkv"):
        yield
        return
    expand = lambda mask, bh_indices=True: lambda b, h, q, k: mask(b[:, None, None, None], h[:, None, None], q[:, None], k)
    with unittest.mock.patch.multiple(masking_utils, _vmap_for_bhqkv=expand, TransformGetItemToIndex=contextlib.nullcontext):
        yield


def run(file, values):
    """The logits that ONNX Runtime computes."""
    import onnxruntime
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    used = [given.name for given in session.get_inputs()]
    return session.run(["logits"], {name: values[name].numpy() for name in used})[0]


def compare(model, file):
    """The largest gap of the logits, and the largest that is allowed."""
    import torch
    gap, largest = torch.zeros(()), torch.ones(())
    for batch, length in COMPARED:
        values = inputs(model, batch, length)
        expected = logits(model, values)
        try:
            found = torch.from_numpy(run(file, values))
        except Exception as error:  # onnxruntime has no class of its own for what it cannot run
            raise OnnxError(f"ONNX Runtime cannot run a {type(model).__name__}: {' '.join(str(error).split())[:200]}") from error
        gap, largest = torch.maximum(gap, (found - expected).abs().max()), torch.maximum(largest, expected.abs().max())
    return gap.item(), TOLERANCE * largest.item()


def main(arguments):
    if len(arguments) not in (1, 2) or arguments[0].startswith("-"):
        print("usage: python -m headcount.onnx FOLDER [FILE.onnx]", file=sys.stderr)
        return 2
    try:
        # without its package, this was started by the program that has just written the folder and the code in it
        print(to_onnx(*arguments, **({} if __package__ else {"trust_remote_code": True})))
    except (OnnxError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
