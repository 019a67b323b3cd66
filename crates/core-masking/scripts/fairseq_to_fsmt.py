"""Turns the archive of a translator of fairseq into a Hugging Face folder of the family `fsmt`.

    python fairseq_to_fsmt.py wmt14.en-fr.joined-dict.transformer data/wmt14-en-fr-fairseq

ARCHIVE is an unpacked folder with model.pt, a dictionary for each language (dict.en.txt, dict.fr.txt) and bpecodes:
those of https://github.com/facebookresearch/fairseq/tree/main/examples/translation, old and new, or your own. FOLDER
gets config.json, generation_config.json, model.safetensors and the tokeniser's files; it must not be there yet. The
numbers stay as they are.

Taken are transformers with layer normalisation after each sublayer, sinusoidal positions, and one embedding for the
decoder's input and output; all else is refused by name. model.pt is a pickle: no code in it is run, tensors and
argparse.Namespace are all that it may hold. Text is made lower-case where the source dictionary has no capital letter.

Needs torch 2.5 or newer and nothing else. A fault is one line, and the exit code 1.
"""
import argparse
import ctypes
import json
import math
import os
import pickle
import re
import shutil
import sys
from pathlib import Path

try:
    import torch
except ImportError as error:
    sys.exit(f"fairseq_to_fsmt.py: {error}: install torch")

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
BEGIN, PAD, END = 0, 1, 2
END_OF_WORD = "</w>"
MOST = 1 << 16  # of any size in a translator
# fairseq's name: that of transformers
ACTIVATIONS = {
    "relu": "relu", "gelu": "gelu", "gelu_accurate": "gelu_new", "gelu_fast": "gelu_new",
}
DTYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
# the oldest archives number what later ones name
NORMS = {
    "encoder": {"self_attn_layer_norm": 0, "final_layer_norm": 1},
    "decoder": {"self_attn_layer_norm": 0, "encoder_attn_layer_norm": 1, "final_layer_norm": 2},
}
# settings that must have the value of a plain transformer, which they have where they are missing
PLAIN = {
    "encoder_normalize_before": False, "decoder_normalize_before": False, "encoder_learned_pos": False,
    "decoder_learned_pos": False, "no_token_positional_embeddings": False, "adaptive_input": False,
    "adaptive_softmax_cutoff": None, "layernorm_embedding": False, "no_cross_attention": False,
    "cross_self_attention": False, "character_embeddings": False, "decoder_layers_to_keep": None,
    "encoder_layers_to_keep": None,
}


class Fault(Exception):
    """Why an archive cannot be converted."""


def shown(value):
    """Foreign text in one line and not at any length."""
    text = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in str(value))
    return text if len(text) <= 120 else text[:120] + "…"


class Settings:
    """What the archive says about its model: `args`, or `cfg` with its parts."""

    def __init__(self, checkpoint):
        parts = [checkpoint.get("args")]
        cfg = checkpoint.get("cfg")
        if isinstance(cfg, dict):
            parts += [cfg.get("model"), cfg.get("task")]
        as_dict = lambda part: vars(part) if isinstance(part, argparse.Namespace) else part
        self.parts = [as_dict(part) for part in parts if part is not None]
        if not all(isinstance(part, dict) for part in self.parts):
            raise Fault("`args` and `cfg` must be lists of settings, but one of them is something else")
        if not self.parts:
            raise Fault("model.pt has neither `args` nor `cfg`, so its architecture is not known")

    def get(self, name, default=None):
        return next((part[name] for part in self.parts if part.get(name) is not None), default)

    def number(self, name, usual=None):
        value = self.get(name, usual)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
            raise Fault(f"`{name}` must be a number from 1 to {MOST}, but is `{shown(value)}`")
        return value

    def share(self, name, usual=0.0):
        value = self.get(name, usual)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
            raise Fault(f"`{name}` must be at least 0 and below 1, but is `{shown(value)}`")
        return value

    def language(self, name):
        value = self.get(name)
        if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z][A-Za-z_-]*", value):
            raise Fault(f"`{name}` must be the code of a language, but is `{shown(value)}`")
        return value

    def check(self):
        """Refuses all but plain transformers."""
        name = self.get("arch") or self.get("_name")
        if not isinstance(name, str) or not re.match(r"transformer(?!_lm)", name):
            raise Fault(f"its architecture is `{shown(name)}`, but only transformers that translate can be converted")
        for name, plain in PLAIN.items():
            if (value := self.get(name, plain)) != plain:
                raise Fault(f"`{name}` is {shown(value)}, but fsmt has only {plain}")
        width = self.number("encoder_embed_dim")
        for name in ["decoder_embed_dim", "decoder_input_dim", "decoder_output_dim"]:
            if (value := self.get(name, width)) != width:
                raise Fault(f"`{name}` is {shown(value)}, but fsmt has one width for all, {width}")
        for name in ["encoder_attention_heads", "decoder_attention_heads"]:
            if width % self.number(name):
                raise Fault(f"`{name}` is {self.number(name)}, which does not divide the width of {width}")
        if (name := self.get("activation_fn", "relu")) not in ACTIVATIONS:
            raise Fault(f"`activation_fn` is `{shown(name)}`: expected one of {', '.join(ACTIVATIONS)}")


class Tensors:
    """The tensors of the archive, each of which is taken once or dropped by name."""

    def __init__(self, checkpoint):
        tensors = checkpoint.get("model")
        if not isinstance(tensors, dict) or not all(isinstance(name, str) for name in tensors):
            raise Fault("model.pt has no `model` with named tensors")
        for name, tensor in tensors.items():
            if not isinstance(tensor, torch.Tensor):
                raise Fault(f"`{shown(name)}` is not a tensor")
        self.left = dict(tensors)

    def take(self, name, shape):
        """The tensor of this name, which must have this shape."""
        if (tensor := self.left.pop(name, None)) is None:
            raise Fault(f"model.pt lacks the tensor `{name}`")
        if list(tensor.shape) != shape:
            raise Fault(f"tensor `{name}` is {list(tensor.shape)}, but its settings ask for {shape}")
        if tensor.dtype not in DTYPES:
            raise Fault(f"tensor `{name}` has the type {tensor.dtype}: expected one of {', '.join(map(str, DTYPES))}")
        if not torch.isfinite(tensor).all():
            raise Fault(f"tensor `{name}` has numbers that are not finite")
        return tensor

    def take_norm(self, side, layer, norm, width):
        prefix = f"{side}.layers.{layer}."
        numbered = f"{prefix}layer_norms.{NORMS[side][norm]}"
        name = numbered if f"{numbered}.weight" in self.left else prefix + norm
        return {f"{norm}.{part}": self.take(f"{name}.{part}", [width]) for part in ["weight", "bias"]}

    def take_attention(self, prefix, width):
        """Query, key and value, which older archives have in one tensor, and the output."""
        taken = {}
        for part, shape in [("weight", [width, width]), ("bias", [width])]:
            if f"{prefix}in_proj_{part}" in self.left:
                stacked = self.take(f"{prefix}in_proj_{part}", [3 * width] + shape[1:])
                taken.update({f"{name}_proj.{part}": piece for name, piece in zip("qkv", stacked.chunk(3))})
            else:
                taken.update({f"{n}_proj.{part}": self.take(f"{prefix}{n}_proj.{part}", shape) for n in "qkv"})
            taken[f"out_proj.{part}"] = self.take(f"{prefix}out_proj.{part}", shape)
        return taken

    def drop(self, name, same_as=None):
        """Leaves out what a folder has no place for; if `same_as` is given, it must hold the same numbers."""
        tensor = self.left.pop(name, None)
        if tensor is not None and same_as is not None and not torch.equal(tensor, same_as):
            raise Fault(f"tensor `{name}` differs from the decoder's embedding, but must be the same")

    def check_all_taken(self):
        if self.left:
            names = [f"`{shown(name)}`" for name in sorted(self.left)]
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            raise Fault(f"model.pt has tensors that fsmt does not have: {', '.join(names[:5])}{more}")


def read_checkpoint(path):
    """What the pickle holds; nothing in it is run."""
    try:
        path.open("rb").close()
    except OSError as error:
        raise Fault(f"cannot read {shown(path)}: {error.strerror or shown(error)}") from None
    try:
        with torch.serialization.safe_globals([argparse.Namespace]):
            checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        found = re.search(r"(?:GLOBAL|class|global:?) `?([A-Za-z_][\w.]*\.\w+)", str(error))
        what = f"`{shown(found.group(1))}`" if found else "something else"
        raise Fault(f"model.pt may hold tensors and argparse.Namespace only, but holds {what}, or is torn") from None
    except Exception as error:  # torn files end in many ways
        reason = shown((str(error).splitlines() or [type(error).__name__])[0])
        raise Fault(f"model.pt is torn or was not written by torch: {reason}") from None
    if not isinstance(checkpoint, dict):
        raise Fault("model.pt is not an archive of fairseq: expected `args` or `cfg`, and `model`")
    return checkpoint


def read_lines(path):
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise Fault(f"cannot read {shown(path)}: {error.strerror or shown(error)}") from None
    except UnicodeDecodeError:
        raise Fault(f"{path.name} is not valid UTF-8") from None
    if not text.endswith("\n"):
        raise Fault(f"{path.name} has no line break at its end: it is torn")
    return text.split("\n")[:-1]


def read_dictionary(path, rows):
    """Pieces with their numbers; `@@` at the end of one says that the word goes on, END_OF_WORD that it does not."""
    pieces = {token: number for number, token in enumerate(SPECIALS)}
    lines = read_lines(path)
    for number, line in enumerate(lines, 1):
        token, _, count = line.rpartition(" ")
        if not token or not count.isdecimal():
            raise Fault(f"{path.name}, line {number}: `{shown(line)}` is not a piece and how often it occurs")
        # "@@" alone is a word
        piece = token.removesuffix("@@") if token.endswith("@@") and token != "@@" else token + END_OF_WORD
        if piece in pieces or token in SPECIALS:
            raise Fault(f"{path.name}, line {number}: `{shown(token)}` occurs twice")
        pieces[piece] = len(pieces)
    if len(pieces) != rows:
        raise Fault(
            f"{path.name} has {len(lines)} pieces, {len(pieces)} with the special ones, but the embedding has "
            f"{rows} rows"
        )
    return pieces


def read_merges(archive):
    """Pairs of pieces, without the version above (subword-nmt) and the counts after them (fastBPE)."""
    path = next((archive / name for name in ["bpecodes", "code"] if (archive / name).exists()), archive / "bpecodes")
    merges, known = [], set()
    for number, line in enumerate(read_lines(path), 1):
        if number == 1 and line.startswith("#version:"):
            continue
        words = line.split(" ")
        if len(words) == 3 and words[2].isdecimal():
            words = words[:2]
        if len(words) != 2 or not all(words):
            raise Fault(f"{path.name}, line {number}: `{shown(line)}` is not two pieces")
        for word in words:
            if len(word.removesuffix(END_OF_WORD)) != 1 and word not in known:
                raise Fault(f"{path.name}, line {number}: `{shown(word)}` is neither a letter nor made by an earlier line")
        known.add("".join(words))
        merges.append(" ".join(words))
    return merges


def positions(rows, width):
    """Sines, then cosines, each with frequencies from 1 to 1/10000; the row of the padding symbol is 0."""
    half = width // 2
    frequencies = torch.exp(torch.arange(half, dtype=torch.float) * -(math.log(10000) / (half - 1)))
    angles = torch.arange(rows, dtype=torch.float).unsqueeze(1) * frequencies
    table = torch.cat([angles.sin(), angles.cos()], dim=1)
    table[PAD] = 0
    return table


def rows_of(tensors, name):
    tensor = tensors.left.get(name)
    if tensor is None or tensor.dim() != 2:
        raise Fault(f"model.pt lacks the tensor `{name}`, or it is not a matrix")
    return tensor.shape[0]


def convert_tensors(settings, tensors, config):
    """All tensors under the names of transformers."""
    width = config["d_model"]
    target = tensors.take("decoder.embed_tokens.weight", [config["tgt_vocab_size"], width])
    if config["tie_word_embeddings"]:
        tensors.drop("encoder.embed_tokens.weight", same_as=target)
        embeddings = {"encoder.embed_tokens": target}
    else:
        source = tensors.take("encoder.embed_tokens.weight", [config["src_vocab_size"], width])
        embeddings = {"encoder.embed_tokens": source, "decoder.output_projection": target}
    shared = settings.get("share_all_embeddings") or settings.get("share_decoder_input_output_embed")
    outputs = ["decoder.embed_out", "decoder.output_projection.weight"]
    if not shared and not any(name in tensors.left for name in outputs):
        raise Fault("model.pt lacks the tensor `decoder.embed_out`, and its embedding is not shared")
    for name in outputs:
        tensors.drop(name, same_as=target)
    table = positions(config["max_position_embeddings"] + PAD + 1, width)
    converted = {f"model.{side}.embed_positions.weight": table for side in NORMS}
    converted.update({f"model.{name}.weight": tensor for name, tensor in embeddings.items()})
    for side, norms in NORMS.items():
        for layer in range(config[f"{side}_layers"]):
            prefix = f"{side}.layers.{layer}."
            new = {}
            for attention in ["self_attn"] if side == "encoder" else ["self_attn", "encoder_attn"]:
                taken = tensors.take_attention(f"{prefix}{attention}.", width)
                new.update({f"{attention}.{name}": tensor for name, tensor in taken.items()})
            for norm in norms:
                new.update(tensors.take_norm(side, layer, norm, width))
            inner = config[f"{side}_ffn_dim"]
            for name, shape in [("fc1", [inner, width]), ("fc2", [width, inner])]:
                new[f"{name}.weight"] = tensors.take(f"{prefix}{name}.weight", shape)
                new[f"{name}.bias"] = tensors.take(f"{prefix}{name}.bias", shape[:1])
            converted.update({f"model.{prefix}{name}": tensor for name, tensor in new.items()})
        # the version, and the table of positions or what stands for it
        for name in ["version", "embed_positions._float_tensor", "embed_positions.weights"]:
            tensors.drop(f"{side}.{name}")
    tensors.check_all_taken()
    return converted


def configuration(settings, tensors):
    """config.json; sizes of vocabularies are those of the embeddings."""
    width = settings.number("encoder_embed_dim")
    if width % 2 or width < 4:
        raise Fault(f"`encoder_embed_dim` must be even for sinusoidal positions, and at least 4, but is {width}")
    config = {
        "architectures": ["FSMTForConditionalGeneration"],
        "model_type": "fsmt",
        "langs": [settings.language("source_lang"), settings.language("target_lang")],
        "src_vocab_size": rows_of(tensors, "encoder.embed_tokens.weight"),
        "tgt_vocab_size": rows_of(tensors, "decoder.embed_tokens.weight"),
        "d_model": width,
        "num_hidden_layers": settings.number("encoder_layers"),
        "max_position_embeddings": max(settings.number(f"max_{side}_positions", 1024) for side in ["source", "target"]),
        "activation_function": ACTIVATIONS[settings.get("activation_fn", "relu")],
        "activation_dropout": settings.share("activation_dropout", settings.share("relu_dropout")),
        "attention_dropout": settings.share("attention_dropout"),
        "dropout": settings.share("dropout"),
        "scale_embedding": not settings.get("no_scale_embedding", False),
        "tie_word_embeddings": bool(settings.get("share_all_embeddings", False)),
        "is_encoder_decoder": True,
        "torch_dtype": str(tensors.left["decoder.embed_tokens.weight"].dtype).removeprefix("torch."),
    }
    for side in NORMS:
        config[f"{side}_layers"] = settings.number(f"{side}_layers")
        config[f"{side}_attention_heads"] = settings.number(f"{side}_attention_heads")
        config[f"{side}_ffn_dim"] = settings.number(f"{side}_ffn_embed_dim")
    symbols = {"bos_token_id": BEGIN, "pad_token_id": PAD, "eos_token_id": END, "decoder_start_token_id": END}
    return {**config, **symbols, "forced_eos_token_id": END}


def write_tensors(path, tensors):
    """https://huggingface.co/docs/safetensors/index#format"""
    header, end = {"__metadata__": {"format": "pt"}}, 0
    tensors = {name: tensors[name].detach().contiguous() for name in sorted(tensors)}
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, tensor in tensors.items():
            first, last = header[name]["data_offsets"]
            # not by way of numpy, which need not be there
            file.write((ctypes.c_char * (last - first)).from_address(tensor.data_ptr()))


def write_json(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def convert(archive, folder):
    if folder.exists():
        raise Fault(f"{shown(folder)} exists already")
    if not archive.is_dir():
        raise Fault(f"{shown(archive)} is not a folder: unpack the archive first")
    checkpoint = read_checkpoint(archive / "model.pt")
    settings = Settings(checkpoint)
    settings.check()
    tensors = Tensors(checkpoint)
    config = configuration(settings, tensors)
    vocabularies = {
        side: read_dictionary(archive / f"dict.{language}.txt", config[f"{side}_vocab_size"])
        for side, language in zip(["src", "tgt"], config["langs"])
    }
    if config["tie_word_embeddings"] and vocabularies["src"] != vocabularies["tgt"]:
        raise Fault("the embeddings of both sides are one, but their dictionaries differ")
    merges = read_merges(archive)
    converted = convert_tensors(settings, tensors, config)
    lower_case = not any(piece != piece.lower() for piece in vocabularies["src"])

    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    write_json(part / "config.json", config)
    symbols = {name: value for name, value in config.items() if name.endswith("_token_id")}
    write_json(part / "generation_config.json", {**symbols, "num_beams": 5, "max_length": 200})
    settings = {"langs": config["langs"], "do_lower_case": lower_case, "model_max_length": 1024}
    write_json(part / "tokenizer_config.json", {**settings, "tokenizer_class": "FSMTTokenizer"})
    for side, vocabulary in vocabularies.items():
        write_json(part / f"vocab-{side}.json", vocabulary)
    (part / "merges.txt").write_text("".join(f"{merge}\n" for merge in merges), encoding="utf-8")
    write_tensors(part / "model.safetensors", converted)
    os.rename(part, folder)


def main():
    summary, _, details = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(
        description=summary, epilog=details, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("archive", type=Path, metavar="ARCHIVE", help="the unpacked archive")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder to write")
    args = parser.parse_args()
    try:
        convert(args.archive, args.folder)
    except Fault as fault:
        sys.exit(f"fairseq_to_fsmt.py: {fault}")
    except OSError as error:
        sys.exit(f"fairseq_to_fsmt.py: cannot write {shown(error.filename)}: {error.strerror}")


if __name__ == "__main__":
    main()
