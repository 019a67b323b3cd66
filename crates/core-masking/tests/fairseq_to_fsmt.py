"""Checks scripts/fairseq_to_fsmt.py on tiny random archives that it makes: one of each layout that fairseq has had,
whose folders must hold the same numbers, and bad ones, which must be refused in one line.

    python fairseq_to_fsmt.py

Needs torch. Where transformers (4, with sacremoses) is there too, it loads the folders, and its logits must be those of
fairseq's formula, which is written below in plain torch. The last line says `passed`; a fault ends in exit code 1.
"""
import argparse
import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import torch
except ImportError as error:
    sys.exit(f"fairseq_to_fsmt.py: {error}: install torch")
try:
    import sacremoses  # noqa: F401, by way of the tokeniser
    from transformers import FSMTForConditionalGeneration, FSMTTokenizer
except ImportError:
    FSMTForConditionalGeneration = None

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "fairseq_to_fsmt.py"
spec = importlib.util.spec_from_file_location("script", SCRIPT)
script = importlib.util.module_from_spec(spec)
spec.loader.exec_module(script)

WIDTH, HEADS, ENCODER, DECODER, INNER = 12, 3, 2, 1, 20
DICTIONARIES = {"en": ["a@@ 9", "b 8", "ab 7", "a 6", "C 3", "&apos;@@ 2", "@@ 1"], "fr": ["a 9", "b 8", "b@@ 7", "É 2"]}
CODES = ["#version: 0.2", "a b</w>", "a b"]
SETTINGS = {
    "arch": "transformer_wmt_en_de", "source_lang": "en", "target_lang": "fr", "encoder_embed_dim": WIDTH,
    "encoder_ffn_embed_dim": INNER, "encoder_layers": ENCODER, "encoder_attention_heads": HEADS,
    "decoder_embed_dim": WIDTH, "decoder_ffn_embed_dim": INNER, "decoder_layers": DECODER,
    "decoder_attention_heads": HEADS, "max_source_positions": 40, "max_target_positions": 30, "dropout": 0.1,
    "share_decoder_input_output_embed": True, "share_all_embeddings": False, "encoder_normalize_before": False,
}


def random_tensors(rows):
    """All tensors of a translator as newer versions of fairseq name them; `rows` of the embeddings by side."""
    tensors = {f"{side}.embed_tokens.weight": torch.randn(number, WIDTH) for side, number in rows.items()}
    for side, layers in [("encoder", ENCODER), ("decoder", DECODER)]:
        for layer in range(layers):
            prefix = f"{side}.layers.{layer}."
            attentions = ["self_attn"] if side == "encoder" else ["self_attn", "encoder_attn"]
            maps = {f"{name}.{part}": [WIDTH, WIDTH] for name in attentions for part in projections()}
            maps.update({"fc1": [INNER, WIDTH], "fc2": [WIDTH, INNER]})
            for name, shape in maps.items():
                tensors[f"{prefix}{name}.weight"] = torch.randn(shape) / math.sqrt(shape[1])
                tensors[f"{prefix}{name}.bias"] = torch.randn(shape[0]) / 3
            for norm in [f"{name}_layer_norm" for name in [*attentions, "final"]]:
                tensors[f"{prefix}{norm}.weight"] = 1 + torch.randn(WIDTH) / 5
                tensors[f"{prefix}{norm}.bias"] = torch.randn(WIDTH) / 5
    return tensors


def projections():
    return ["q_proj", "k_proj", "v_proj", "out_proj"]


def stacked(tensors):
    """With query, key and value in one tensor, as until 2019."""
    old = dict(tensors)
    for name in [name for name in tensors if name.endswith("q_proj.weight")]:
        prefix = name.removesuffix("q_proj.weight")
        for part in ["weight", "bias"]:
            parts = [old.pop(f"{prefix}{projection}.{part}") for projection in projections()[:3]]
            old[f"{prefix}in_proj_{part}"] = torch.cat(parts)
    return old


def numbered(tensors):
    """With norms by number, the output's table apart, and the buffers of 2018."""
    numbers = {
        "encoder": {"self_attn_layer_norm": 0, "final_layer_norm": 1},
        "decoder": {"self_attn_layer_norm": 0, "encoder_attn_layer_norm": 1, "final_layer_norm": 2},
    }
    old = {}
    for name, tensor in stacked(tensors).items():
        for norm, number in numbers[name.split(".")[0]].items():
            name = name.replace(f".{norm}.", f".layer_norms.{number}.")
        old[name] = tensor
    for side in numbers:
        old[f"{side}.version"] = torch.ones(1)
        old[f"{side}.embed_positions._float_tensor"] = torch.zeros(1)
    return {**old, "decoder.embed_out": tensors["decoder.embed_tokens.weight"].clone()}


def write(folder, checkpoint, dictionaries=DICTIONARIES, codes=CODES, **options):
    folder.mkdir(parents=True)
    torch.save(checkpoint, folder / "model.pt", **options)
    for language, lines in dictionaries.items():
        (folder / f"dict.{language}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "bpecodes").write_text("".join(f"{line}\n" for line in codes), encoding="utf-8")


def rows(dictionaries):
    return {side: 4 + len(lines) for side, lines in zip(["encoder", "decoder"], dictionaries.values())}


def fault_of(archive, folder):
    """What the script says against an archive; nothing if it writes the folder."""
    try:
        script.convert(archive, folder)
    except script.Fault as fault:
        return str(fault)
    return ""


def read_tensors(path):
    """The numbers of a safetensors file, read by hand."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__")
    types = {"F32": torch.float32, "F16": torch.float16}
    bytes_of = lambda entry: bytearray(data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]])
    return {
        name: torch.frombuffer(bytes_of(entry), dtype=types[entry["dtype"]]).view(entry["shape"])
        for name, entry in header.items()
    }


def expected_tensors(tensors, tied):
    """Names of transformers."""
    expected = {f"model.{name}": tensor for name, tensor in tensors.items()}
    output = expected.pop("model.decoder.embed_tokens.weight")
    if not tied:
        expected["model.decoder.output_projection.weight"] = output
    return expected


def attention(tensors, prefix, x, memory, bias):
    """`x` and `memory`: [batch, position, width]; `bias` is added before the softmax."""
    maps = {name: (tensors[f"{prefix}{name}.weight"], tensors[f"{prefix}{name}.bias"]) for name in projections()}
    heads = lambda x, name: torch.nn.functional.linear(x, *maps[name]).unflatten(2, [HEADS, -1]).transpose(1, 2)
    query, key, value = heads(x, "q_proj"), heads(memory, "k_proj"), heads(memory, "v_proj")
    weights = (query @ key.transpose(2, 3) / math.sqrt(WIDTH // HEADS) + bias).softmax(3)
    return torch.nn.functional.linear((weights @ value).transpose(1, 2).flatten(2), *maps["out_proj"])


def logits(tensors, source, target):
    """fairseq's transformer, normalised after each sublayer: Vaswani et al. (2017), positions from 2 on."""
    def norm(x, prefix):
        return torch.nn.functional.layer_norm(x, [WIDTH], tensors[f"{prefix}.weight"], tensors[f"{prefix}.bias"])

    def embed(side, ids):
        half = WIDTH // 2
        places = torch.arange(2, 2 + ids.shape[1])[:, None]
        angles = places * torch.exp(-math.log(10000) * torch.arange(half) / (half - 1))
        table = tensors[f"{side}.embed_tokens.weight"]
        return table[ids] * math.sqrt(WIDTH) + torch.cat([angles.sin(), angles.cos()], 1)

    def feed_forward(x, prefix):
        for name in ["fc1", "fc2"]:
            x = torch.nn.functional.linear(x, tensors[f"{prefix}{name}.weight"], tensors[f"{prefix}{name}.bias"])
            x = x.relu() if name == "fc1" else x
        return x

    memory = embed("encoder", source)
    for layer in range(ENCODER):
        prefix = f"encoder.layers.{layer}."
        seen = attention(tensors, f"{prefix}self_attn.", memory, memory, 0)
        memory = norm(memory + seen, f"{prefix}self_attn_layer_norm")
        memory = norm(memory + feed_forward(memory, prefix), f"{prefix}final_layer_norm")
    x = embed("decoder", target)
    future = torch.full([target.shape[1]] * 2, -math.inf).triu(1)
    for layer in range(DECODER):
        prefix = f"decoder.layers.{layer}."
        x = norm(x + attention(tensors, f"{prefix}self_attn.", x, x, future), f"{prefix}self_attn_layer_norm")
        x = norm(x + attention(tensors, f"{prefix}encoder_attn.", x, memory, 0), f"{prefix}encoder_attn_layer_norm")
        x = norm(x + feed_forward(x, prefix), f"{prefix}final_layer_norm")
    return x @ tensors["decoder.embed_tokens.weight"].T


def check(condition, message):
    if not condition:
        sys.exit(f"FAILED: {message}")


def check_layout(work, name, tensors, checkpoint, dictionaries=DICTIONARIES, codes=CODES, tied=False, **options):
    archive, folder = work / name, work / "folders" / name
    write(archive, checkpoint, dictionaries, codes, **options)
    fault = fault_of(archive, folder)
    check(not fault, f"{name}: {fault}")
    found, expected = read_tensors(folder / "model.safetensors"), expected_tensors(tensors, tied)
    tables = {f"model.{side}.embed_positions.weight" for side in ["encoder", "decoder"]}
    check(set(found) == set(expected) | tables, f"{name}: {set(found) ^ (set(expected) | tables)}")
    for key, tensor in expected.items():
        check(torch.equal(found[key], tensor), f"{name}: {key} differs")
    for key in tables:
        check(list(found[key].shape) == [42, WIDTH], f"{name}: {key} is {found[key].shape}")
    check((folder / "merges.txt").read_text() == "a b</w>\na b\n", f"{name}: merges.txt")
    vocabulary = json.loads((folder / "vocab-src.json").read_text())
    if dictionaries is DICTIONARIES:
        specials = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
        pieces = {"a": 4, "b</w>": 5, "ab</w>": 6, "a</w>": 7, "C</w>": 8, "&apos;": 9, "@@</w>": 10}
        check(vocabulary == {**specials, **pieces}, f"{name}: {vocabulary}")
    if FSMTForConditionalGeneration is not None:
        check_in_transformers(name, folder, tensors)
    return json.loads((folder / "config.json").read_text())


def check_in_transformers(name, folder, tensors):
    model, loading = FSMTForConditionalGeneration.from_pretrained(folder, output_loading_info=True)
    model = model.float().eval()
    check(not any(loading.values()), f"{name}: {loading}")
    source, target = torch.tensor([[4, 6, 5, 7, 2], [7, 7, 4, 5, 2]]), torch.tensor([[2, 4, 5, 7], [2, 6, 6, 3]])
    with torch.no_grad():
        found = model(input_ids=source, decoder_input_ids=target, use_cache=False).logits
    expected = logits({name: tensor.float() for name, tensor in tensors.items()}, source, target)
    gap = (found - expected).abs().max().item()
    check(gap < 1e-4, f"{name}: logits differ by {gap:e}")
    pieces = FSMTTokenizer.from_pretrained(folder)("ab b a C").input_ids
    check(pieces == [6, 5, 7, 8, 2] or name == "joined", f"{name}: {pieces}")


def check_layouts(work):
    args = argparse.Namespace(**SETTINGS)
    tensors = random_tensors(rows(DICTIONARIES))
    config = check_layout(work, "named", tensors, {"args": args, "model": tensors})
    check(config["max_position_embeddings"] == 40 and not config["tie_word_embeddings"], str(config))
    output = {"decoder.output_projection.weight": tensors["decoder.embed_tokens.weight"]}
    cfg = {"model": argparse.Namespace(**SETTINGS), "task": {"source_lang": "en", "target_lang": "fr"}}
    cfg["model"].source_lang = None
    check_layout(work, "cfg", tensors, {"args": None, "cfg": cfg, "model": {**tensors, **output}})
    parts = {name: SETTINGS[name] for name in SETTINGS if name not in ["arch", "source_lang", "target_lang"]}
    cfg = {"model": {"_name": "transformer", **parts}, "task": {"_name": "translation", **cfg["task"]}}
    check_layout(work, "cfg-of-dicts", tensors, {"cfg": cfg, "model": tensors})
    check_layout(work, "stacked", tensors, {"args": args, "model": stacked(tensors)}, codes=["a b</w> 12", "a b 3"])
    old = {"args": args, "model": numbered(tensors), "extra_state": {"epoch": 1}}
    check_layout(work, "oldest", tensors, old, _use_new_zipfile_serialization=False)
    halves = {name: tensor.half() for name, tensor in tensors.items()}
    check_layout(work, "half", halves, {"args": args, "model": halves})
    joined = {"en": DICTIONARIES["en"], "fr": DICTIONARIES["en"]}
    shared = random_tensors(rows(joined))
    shared["decoder.embed_tokens.weight"] = shared["encoder.embed_tokens.weight"]
    args = argparse.Namespace(**{**SETTINGS, "share_all_embeddings": True})
    config = check_layout(work, "joined", shared, {"args": args, "model": shared}, joined, tied=True)
    check(config["tie_word_embeddings"], str(config))


class Code:
    def __reduce__(self):
        return os.system, ("exit 3",)


def refused(work, expected, change=None, settings=None, tensors=None, **options):
    """Whether an archive with one fault gives one line that holds `expected`."""
    shutil.rmtree(work / "bad", ignore_errors=True)
    model = {**random_tensors(rows(DICTIONARIES)), **(tensors or {})}
    model = {name: tensor for name, tensor in model.items() if tensor is not None}
    archive = work / "bad" / "archive"
    write(archive, {"args": argparse.Namespace(**{**SETTINGS, **(settings or {})}), "model": model}, **options)
    if change:
        change(archive)
    fault = fault_of(archive, work / "bad" / "folder")
    check(expected in fault and fault.isprintable(), f"{expected}: {fault}")
    check(not (work / "bad" / "folder").exists(), f"{expected}: a folder was written")


def check_refusals(work):
    for settings, expected in [
        ({"arch": "fconv_wmt_en_fr"}, "its architecture is `fconv_wmt_en_fr`"),
        ({"arch": "transformer_lm_big"}, "its architecture is `transformer_lm_big`"),
        ({"encoder_normalize_before": True}, "`encoder_normalize_before` is True, but fsmt has only False"),
        ({"decoder_learned_pos": True}, "`decoder_learned_pos` is True"),
        ({"adaptive_softmax_cutoff": "5,9"}, "`adaptive_softmax_cutoff` is 5,9"),
        ({"activation_fn": "swish\x1b"}, "`activation_fn` is `swish\\x1b`: expected one of relu"),
        ({"encoder_attention_heads": 5}, "does not divide the width of 12"),
        ({"decoder_embed_dim": 16}, "`decoder_embed_dim` is 16, but fsmt has one width for all, 12"),
        ({"encoder_layers": 0}, "`encoder_layers` must be a number from 1 to 65536"),
        ({"max_source_positions": "many"}, "`max_source_positions` must be a number from 1 to 65536, but is `many`"),
        ({"max_target_positions": 1 << 40}, "`max_target_positions` must be a number from 1 to 65536"),
        ({"dropout": "0.1"}, "`dropout` must be at least 0 and below 1, but is `0.1`"),
        ({"encoder_embed_dim": 2, "decoder_embed_dim": 2, "encoder_attention_heads": 1, "decoder_attention_heads": 1},
         "`encoder_embed_dim` must be even for sinusoidal positions, and at least 4, but is 2"),
        ({"activation_fn": "tanh"}, "`activation_fn` is `tanh`: expected one of relu"),
        ({"encoder_layers": 3}, "lacks the tensor `encoder.layers.2.self_attn.q_proj.weight`"),
        ({"encoder_layers": 1}, "that fsmt does not have: `encoder.layers.1.fc1.bias`"),
        ({"encoder_ffn_embed_dim": 21}, "tensor `encoder.layers.0.fc1.weight` is [20, 12], but its settings ask for [21, 12]"),
        ({"source_lang": "../en"}, "`source_lang` must be the code of a language"),
        ({"share_all_embeddings": True}, "the embeddings of both sides are one, but their dictionaries differ"),
        ({"share_decoder_input_output_embed": False}, "lacks the tensor `decoder.embed_out`"),
    ]:
        refused(work, expected, settings=settings)
    nan = torch.full([WIDTH], math.nan)
    for tensors, expected in [
        ({"encoder.layer_norm.weight": torch.ones(WIDTH)}, "does not have: `encoder.layer_norm.weight`"),
        ({"decoder.embed_out": torch.ones(8, WIDTH)}, "`decoder.embed_out` differs from the decoder's embedding"),
        ({"encoder.layers.0.fc2.bias": nan}, "`encoder.layers.0.fc2.bias` has numbers that are not finite"),
        ({"encoder.layers.0.fc2.bias": None}, "lacks the tensor `encoder.layers.0.fc2.bias`"),
        ({"encoder.layers.0.fc2.bias": torch.ones(WIDTH, dtype=torch.int)}, "has the type torch.int32"),
        ({"encoder.layers.0.self_attn.in_proj_weight": torch.ones(7, WIDTH)}, "is [7, 12], but its settings ask for [36, 12]"),
        ({"decoder.embed_tokens.weight": torch.ones(9, WIDTH)}, "8 with the special ones, but the embedding has 9 rows"),
        ({"encoder.embed_tokens.weight": None}, "lacks the tensor `encoder.embed_tokens.weight`"),
        ({"encoder.layers.0.fc2.bias": 5}, "`encoder.layers.0.fc2.bias` is not a tensor"),
    ]:
        refused(work, expected, tensors=tensors)
    for lines, expected in [
        (["a@@ 9", "b 8", "b"], "dict.fr.txt, line 3: `b` is not a piece"),
        (["a 9", "b 8", "a 7", "c 1"], "dict.fr.txt, line 3: `a` occurs twice"),
        (["a 9", "<s> 8", "b 7", "c 1"], "dict.fr.txt, line 2: `<s>` occurs twice"),
        (["a 9", "b 8", " 7", "c 1"], "dict.fr.txt, line 3: ` 7` is not a piece"),
        (["a 9"], "dict.fr.txt has 1 pieces, 5 with the special ones, but the embedding has 8 rows"),
    ]:
        refused(work, expected, dictionaries={**DICTIONARIES, "fr": lines})
    for codes, expected in [
        (["a"], "bpecodes, line 1: `a` is not two pieces"),
        (["a b", "ab cd"], "bpecodes, line 2: `cd` is neither a letter nor made by an earlier line"),
        (["a </w>"], "bpecodes, line 1: `</w>` is neither a letter"),
    ]:
        refused(work, expected, codes=codes)
    model = random_tensors(rows(DICTIONARIES))
    whole = {"args": argparse.Namespace(**SETTINGS), "model": model}
    saved = lambda value: lambda archive: torch.save(value, archive / "model.pt")
    half = lambda archive: (archive / "model.pt").write_bytes((archive / "model.pt").read_bytes()[:5000])
    for change, expected in [
        (saved({**whole, "extra": Code()}), "may hold tensors and argparse.Namespace only, but holds `"),
        (saved({**whole, "extra": Path("x")}), "may hold tensors and argparse.Namespace only, but holds `pathlib."),
        (saved([1]), "model.pt is not an archive of fairseq"),
        (saved({"model": model}), "neither `args` nor `cfg`"),
        (saved({"args": whole["args"]}), "has no `model` with named tensors"),
        (saved({**whole, "args": {"arch": 5}}), "its architecture is `5`"),
        (saved({**whole, "args": 5}), "`args` and `cfg` must be lists of settings"),
        (half, "model.pt is torn or was not written by torch"),
        (lambda archive: (archive / "model.pt").write_bytes(b"hello"), "model.pt "),
        (lambda archive: (archive / "model.pt").write_bytes(b""), "model.pt is torn"),
        (lambda archive: (archive / "model.pt").unlink(), "cannot read "),
        (lambda archive: (archive / "dict.fr.txt").unlink(), "dict.fr.txt: No such file"),
        (lambda archive: (archive / "bpecodes").unlink(), "bpecodes: No such file"),
        (lambda archive: (archive / "dict.fr.txt").write_bytes(b"\xff 1\n"), "dict.fr.txt is not valid UTF-8"),
        (lambda archive: (archive / "dict.fr.txt").write_text("a 1\nb"), "dict.fr.txt has no line break at its end"),
        (shutil.rmtree, "is not a folder: unpack the archive first"),
    ]:
        refused(work, expected, change)
    write(work / "there", whole)
    done = subprocess.run([sys.executable, SCRIPT, work / "there", work], capture_output=True, text=True)
    lines = done.stderr.splitlines()
    check(done.returncode == 1 and len(lines) == 1 and lines[0].endswith("exists already"), done.stderr)


def main():
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as work:
        check_layouts(Path(work))
        print("layouts: the numbers are the same")
        if FSMTForConditionalGeneration is None:
            print("transformers is not there: logits are not compared")
        check_refusals(Path(work))
    print("passed")


if __name__ == "__main__":
    main()
