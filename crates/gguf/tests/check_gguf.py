"""Runs what `export-gguf` writes in llama.cpp, beside the same models in transformers.

    python check_gguf.py [--bin target/release] [--model data/smollm2-135m-instruct] [--gguf FILE.gguf]

Tiny random models of each kind lose heads in different ways. In f32, without flash attention, llama.cpp must give the logits
that transformers gives with zeros in the heads' place, to 2e-3; the same bits as a file with these zeros, unless a layer keeps
one head alone; and so the same greedy tokens in f16 and q8_0. With --model a real folder is checked instead of
these. --gguf names the file of a Llama or Gemma 3 whose folder is then made anew: weights must be equal bit for bit, logits to
1e-3 (of Gemma to what GELU from a table costs), of a text beyond its windows too, and the ids of made-up texts all the same.

Needs llama-cpp-python, gguf, torch, transformers 4 or 5 and safetensors. The last line says `passed`; a fault is one line, and
the exit code 1.
"""
import argparse
import ctypes
import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import gguf
    import llama_cpp
    import numpy as np
    import torch
    from safetensors.torch import load_file, save_file
    from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, PreTrainedTokenizerFast, Qwen2Config
except ImportError as error:
    sys.exit(f"check_gguf.py: {error}: install llama-cpp-python, gguf, torch, transformers and safetensors")

LENGTH = 24  # tokens of a prompt; as many are added to it
BEYOND = 700  # tokens of a text that is longer than the windows of Gemma 3, 512
D_HEAD = 64
ROWS = 320
F32 = 0  # ggml's number, for the cache

SMALL = dict(
    vocab_size=ROWS, hidden_size=288, intermediate_size=160, num_hidden_layers=4, num_attention_heads=9,
    num_key_value_heads=3, head_dim=D_HEAD, max_position_embeddings=512, initializer_range=0.15,
)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)
ALL = set(range(9))

# Heads that go, by layer; 9 in groups of 3.
CUTS = {
    "no heads": [set()] * 4,
    "whole groups": [set(), {3, 4, 5}, {0, 1, 2, 6, 7, 8}, {6, 7, 8}],
    "as many of each group": [{0, 4, 8}, {1, 2, 3, 4, 7, 8}, set(), {2, 5, 6}],
    "unequal within groups": [{3, 4, 8}, {4, 5, 7, 8}, {1, 2, 3, 4, 5, 6}, {2, 8}],
    "a layer without heads": [set(), ALL, {0, 1, 2}, ALL],
    "the first layer without heads": [ALL, {5}, ALL, set()],
    "one head": [ALL, ALL, ALL - {4}, ALL],
}
KINDS = {
    "llama": (LlamaConfig, dict(rms_norm_eps=1e-5)),
    "llama untied, scaled": (LlamaConfig, dict(tie_word_embeddings=False, rope_theta=500_000.0, rope_scaling=LLAMA3)),
    "llama with biases": (LlamaConfig, dict(attention_bias=True)),
    "mistral": (MistralConfig, dict(sliding_window=None, rms_norm_eps=1e-5)),
    "qwen2": (Qwen2Config, dict(use_sliding_window=False, tie_word_embeddings=True)),
}


class Fault(Exception):
    """Why a file is not what it should be."""


def run(args, binary, *arguments):
    done = subprocess.run([args.bin / binary, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Fault(f"{binary} {' '.join(map(str, arguments))}: {done.stderr.strip()}")


def random_folder(folder, kind):
    config_class, settings = KINDS[kind]
    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_config(config_class(**SMALL | settings)).eval()
    for name, weight in model.named_parameters():
        if name.endswith("bias"):  # zeros until here
            weight.data.normal_(std=0.3)
    model.save_pretrained(folder)
    # transformers 5 leaves `head_dim` to the families that have it
    set_config(folder, head_dim=D_HEAD)


def set_config(folder, **entries):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


def removed(source, folder, heads, cut):
    """The folder without these heads: cut out as `export-model` does it, or with zeros in their place."""
    folder.mkdir()
    for file in source.iterdir():
        if file.name != "model.safetensors" and file.suffix != ".gguf":
            shutil.copy(file, folder)
    config = json.loads((source / "config.json").read_text())
    count, shared = config["num_attention_heads"], config["num_key_value_heads"]
    weights = load_file(source / "model.safetensors")
    for layer, gone in enumerate(heads):
        kept = [head for head in range(count) if head not in gone]
        groups = sorted({head * shared // count for head in kept})
        for map_, present in (("q", kept), ("k", groups), ("v", groups), ("o", kept)):
            for ending in ("weight", "bias"):
                name = f"model.layers.{layer}.self_attn.{map_}_proj.{ending}"
                if name not in weights or (map_ == "o" and ending == "bias"):
                    continue
                axis, old = int(map_ == "o"), weights[name]
                parts = old.unflatten(axis, (shared if map_ in "kv" else count, -1))
                if cut:
                    new = parts.index_select(axis, torch.tensor(present, dtype=torch.long))
                else:
                    away = [part for part in range(parts.shape[axis]) if part not in present]
                    new = parts.index_fill(axis, torch.tensor(away, dtype=torch.long), 0.0)
                weights[name] = new.flatten(axis, axis + 1).contiguous()
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    if cut:
        set_config(folder, pruned_query_heads={str(layer): sorted(gone) for layer, gone in enumerate(heads) if gone})


class Llama:
    """A file in llama.cpp, without flash attention and with a cache in f32."""

    def __init__(self, path, context=128):
        self.model = llama_cpp.Llama(
            str(path), n_ctx=context, n_batch=128, n_threads=2, logits_all=True, verbose=False, flash_attn=False, type_k=F32, type_v=F32
        )

    def logits(self, ids):
        self.model.reset()
        self.model.eval(ids)
        return np.array(self.model.scores[: len(ids)])

    def greedy(self, ids):
        ids = list(ids)
        for _ in range(LENGTH):
            ids.append(int(self.logits(ids)[-1].argmax()))
        return ids


def gap(left, right):
    return float(np.abs(left - right).max())


def greedy_in_transformers(model, ids):
    ids = list(ids)
    with torch.no_grad():
        for _ in range(LENGTH):
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    return ids


def check(args, name, source, heads, prompts, tolerance, work):
    """The folder without these heads, in llama.cpp as in transformers."""
    cut, zeros = work / "cut", work / "zeros"
    removed(source, cut, heads, True)
    removed(source, zeros, heads, False)
    model = AutoModelForCausalLM.from_pretrained(zeros, dtype=torch.float32).eval()
    config = json.loads((source / "config.json").read_text())
    worst, apart, same = 0.0, 0.0, []
    bits = all(len(gone) != config["num_attention_heads"] - 1 for gone in heads)
    for kind in ("f32", "f16", "q8_0"):
        files = [work / f"{form.name}.{kind}.gguf" for form in (cut, zeros)]
        for form, file in zip((cut, zeros), files):
            run(args, "export-gguf", form, file, "--type", kind)
        small, dense = map(Llama, files)
        for ids in prompts:
            found, expected = small.logits(ids), dense.logits(ids)
            with torch.no_grad():
                logits = model(torch.tensor([ids])).logits[0].numpy()
            apart = max(apart, gap(found, expected))
            # llama.cpp multiplies one head by another kernel, whose roundings differ: by no more than those of the type
            if gap(found, expected) > (0.0 if bits else tolerance if kind == "f32" else gap(expected, logits)):
                raise Fault(f"{name}, {kind}: {gap(found, expected):.2g} from the file with zeros")
            if kind == "f32":
                worst = max(worst, gap(found, logits))
        text = small.greedy(prompts[0])
        if bits and text != dense.greedy(prompts[0]):
            raise Fault(f"{name}, {kind}: other greedy tokens than the file with zeros")
        if text == greedy_in_transformers(model, prompts[0]):
            same.append(kind)
        sizes = [file.stat().st_size for file in files]
        for file in files:
            file.unlink()
    if "f32" not in same:
        raise Fault(f"{name}: other greedy tokens than transformers in f32")
    if not worst <= tolerance:
        raise Fault(f"{name}: logits differ from transformers by {worst:.2g}, more than {tolerance:g}")
    shutil.rmtree(cut), shutil.rmtree(zeros)
    size = f"q8_0 {sizes[0] / sizes[1]:.3f} of the size"
    print(f"{name}: {worst:.1e} from transformers, {apart:.1g} from zeros in 3 types, greedy as transformers in {', '.join(same)}; {size}", flush=True)


def texts(count):
    """Texts of odd parts: digits, blanks, signs, scripts, symbols that are special elsewhere."""
    parts = [*"0123456789", "  ", "   ", "\n", "\n\n", "\t", " ", "\u00a0", "\u3000", "é", "e\u0301", "ß", "½", "²", "٣", "猫", "日本", "🐕"]
    parts += ["€", "—", "…", "“", "'s", "'S", "'ll", "'re", "'", '"', "<|im_start|>", "<|endoftext|>", "<", "|", "_", "#", "!!", "://"]
    parts += ["\r\n", "\r", "Ω", "д", "ا", "\u200b", "the", " The", " river", "naïve", "Straße", " don't", "WIKI", "3.14", " 1,024"]
    rng = random.Random(7)
    return ["".join(rng.choices(parts, k=rng.randint(1, 14))) for _ in range(count)]


def with_rounded_gelu(model, ids):
    """Logits with GELU as llama.cpp looks it up, in a table of 16-bit floats."""
    rounded = torch.nn.Module()
    rounded.forward = lambda x: torch.nn.functional.gelu(x.half().float(), approximate="tanh").half().float()
    exact = [layer.mlp.act_fn for layer in model.model.layers]
    for layer in model.model.layers:
        layer.mlp.act_fn = rounded
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].numpy()
    for layer, own in zip(model.model.layers, exact):
        layer.mlp.act_fn = own
    return logits


def check_import(args, work):
    """The folder against the file that it was made of."""
    reader = gguf.GGUFReader(args.gguf)
    again = work / "again"
    run(args, "import-model", args.gguf, again)
    stored = load_file(again / "model.safetensors")
    kind = reader.fields["general.architecture"].contents()
    names = dict(attn_q="self_attn.q_proj", attn_k="self_attn.k_proj", attn_v="self_attn.v_proj", attn_output="self_attn.o_proj",
                 attn_norm="input_layernorm", ffn_norm="post_attention_layernorm", ffn_gate="mlp.gate_proj", ffn_up="mlp.up_proj", ffn_down="mlp.down_proj")
    turning = {}
    if kind == "gemma3":
        names |= dict(attn_q_norm="self_attn.q_norm", attn_k_norm="self_attn.k_norm", post_attention_norm="post_attention_layernorm",
                      ffn_norm="pre_feedforward_layernorm", post_ffw_norm="post_feedforward_layernorm")
    else:
        turning = {part: reader.fields[f"{kind}.attention.{name}"].contents() for part, name in (("attn_q", "head_count"), ("attn_k", "head_count_kv"))}
    writer = gguf.GGUFWriter(work / "plain.gguf", kind)
    for key, field in reader.fields.items():
        if not key.startswith("GGUF.") and key not in ("general.architecture", "general.file_type"):
            extra = dict(sub_type=field.types[-1]) if field.types[0] == gguf.GGUFValueType.ARRAY else {}
            writer.add_key_value(key, field.contents(), field.types[0], **extra)
    for tensor in reader.tensors:
        plain = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        writer.add_tensor(tensor.name, plain)
        part = tensor.name.split(".")
        if kind == "gemma3" and plain.ndim == 1:  # norms are 1 more than in the folder
            plain = plain - np.float32(1)
        if part[0] == "blk":
            name = f"model.layers.{part[1]}.{names[part[2]]}.weight"
            if count := turning.get(part[2]):
                plain = plain.reshape(count, -1, 2, plain.shape[1]).swapaxes(1, 2).reshape(plain.shape)
        else:
            name = dict(token_embd="model.embed_tokens.weight", output_norm="model.norm.weight", output="lm_head.weight")[part[0]]
        if not np.array_equal(stored.pop(name).numpy().view(np.uint32), plain.view(np.uint32)):
            raise Fault(f"`{name}` is not what gguf makes of `{tensor.name}`")
    if stored:
        raise Fault(f"the folder has tensors that the file lacks: {sorted(stored)}")
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()

    original = llama_cpp.Llama(str(args.gguf), vocab_only=True, verbose=False)
    files = [original]
    if kind == "llama":
        run(args, "export-gguf", again, work / "back.gguf")
        files.append(llama_cpp.Llama(str(work / "back.gguf"), vocab_only=True, verbose=False))
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(again / "tokenizer.json"))
    lost, all_texts = 0, texts(4000)
    for text in all_texts:
        known, found = (file.tokenize(text.encode(), add_bos=True, special=True) for file in (original, files[-1]))
        if tokenizer(text)["input_ids"] != known or found != known:
            raise Fault(f"{text!r} is {known} in llama.cpp, {tokenizer(text)['input_ids']} in the folder")
        begin = known[:1] == [original.token_bos()] and kind == "gemma3"
        lost += tokenizer.decode(known[begin:]) != text
    made = " and in a file made of it" if kind == "llama" else ""
    print(f"ids of {len(all_texts)} texts: all as in llama.cpp, in the folder{made}; {lost} texts are not got back", flush=True)

    plain, model = Llama(work / "plain.gguf", BEYOND), AutoModelForCausalLM.from_pretrained(again, dtype=torch.float32).eval()
    worst, tolerance = 0.0, 1e-3
    beyond = original.tokenize("".join(all_texts).encode(), add_bos=True)[:BEYOND]
    for ids in [*prompts_of(original, 4), beyond]:
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0].numpy()
        worst = max(worst, gap(plain.logits(ids), logits))
        if kind == "gemma3":
            tolerance = max(tolerance, 3 * gap(logits, with_rounded_gelu(model, ids)))
    if kind == "gemma3":
        unlimited = AutoModelForCausalLM.from_pretrained(again, dtype=torch.float32, sliding_window=BEYOND).eval()
        with torch.no_grad():
            without = gap(unlimited(torch.tensor([beyond])).logits[0].numpy(), logits)
        if not without > tolerance:
            raise Fault(f"logits without windows differ by {without:.2g}: too little to tell that there are windows")
    if not worst <= tolerance:
        raise Fault(f"logits of the folder and of its file differ by {worst:.2g}, more than {tolerance:.2g}")
    print(f"import-model: all weights bit for bit, logits {worst:.1e} from llama.cpp's ({tolerance:.1g} allowed)", flush=True)


def prompts_of(vocabulary, count):
    text = b" The river rises in the hills north of the town, and 1,250 people lived there in 1931. It was built by the king's own hand."
    ids = vocabulary.tokenize(text, add_bos=False)
    return [ids[start : start + LENGTH] for start in range(count)]


def real_cuts(config):
    """Half of the groups and half of the heads at random, and a third of the layers without heads."""
    rng, layers, count = random.Random(5), config["num_hidden_layers"], config["num_attention_heads"]
    groups = config["num_key_value_heads"]
    share = count // groups
    whole = [{g * share + h for g in rng.sample(range(groups), rng.randint(0, groups - 1)) for h in range(share)} for _ in range(layers)]
    single = [set(rng.sample(range(count), rng.randint(0, count - 2))) for _ in range(layers)]
    empty = [set(range(count)) if layer % 3 == 0 else set() for layer in range(layers)]
    return {"groups": whole, "heads": single, "layers": empty}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=Path("target/release"), help="folder of import-model and export-gguf")
    parser.add_argument("--model", type=Path, help="folder of a real model")
    parser.add_argument("--gguf", type=Path, help="GGUF file that it was made of")
    args = parser.parse_args()
    torch.set_num_threads(2)
    silent = llama_cpp.llama_log_callback(lambda *_: None)
    llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))
    rng = random.Random(1)
    prompts = [[rng.randrange(ROWS) for _ in range(LENGTH)] for _ in range(2)]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for kind in KINDS if not args.model and not args.gguf else ():
            source = work / "model"
            random_folder(source, kind)
            for cut, heads in CUTS.items():
                check(args, f"{kind}, {cut}", source, heads, prompts, 2e-3, work)
            shutil.rmtree(source)
        if args.gguf:
            check_import(args, work)
        if args.model:
            config = json.loads((args.model / "config.json").read_text())
            run(args, "export-gguf", args.model, work / "words.gguf")
            prompts = prompts_of(llama_cpp.Llama(str(work / "words.gguf"), vocab_only=True, verbose=False), 2)
            for cut, heads in real_cuts(config).items():
                check(args, f"{args.model.name}, {cut}", args.model, heads, prompts, 2e-3, work)
    print("passed")


if __name__ == "__main__":
    try:
        main()
    except Fault as fault:
        sys.exit(f"check_gguf.py: {fault}")
