"""Opens what `export-model` writes in transformers, 4.57 or 5, beside the original.

    iterative-prune minilm-cola --step-percent 50
    export-model minilm-cola cut --percent 50
    export-model minilm-cola dense --form zeros --percent 50
    python check_export.py data/models/minilm-cola --cut cut --dense dense --split data/glue/CoLA/dev.tsv

    iterative-prune demo-language --unit group --uniform
    export-model demo-language uniform --form uniform --percent 50
    python check_export.py data/models/demo-language --uniform uniform

On made-up tokens each folder must give the logits of ORIGINAL with the removed heads masked by hooks before the output
projections; a translator or a language model also the same tokens, greedily and with beams, in padded batches and with
a cache. So must what `save_pretrained` makes of it. A cut folder is loaded with trust_remote_code=True. With --split, a
classifier must also get the scores that `iterative-prune` wrote into pruning.json.

    python check_export.py --table DIR

prints which forms this version of transformers reads, by family, and of which ONNX Runtime gives the logits after `to_onnx`. DIR has a folder for each, as tests/transformers.rs
writes it: `original`; `some`, without a few heads, and `layer`, without all heads of the first layer, both with folders
`cut`, `dense` and, where there can be one, `uniform`.

Needs torch and transformers; the column `onnx` also onnx and onnxruntime, without which it is skipped. The last line says `passed`; a fault is one line, and the exit code 1.
"""
import argparse
import contextlib
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import math
import platform
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

try:
    import torch
    import transformers
except ImportError as error:
    sys.exit(f"check_export.py: {error}: install torch and transformers")

EXPORTS = ("dense", "uniform", "cut")
LONGEST = 48  # made-up rows, in tokens
NEW_TOKENS = 8
SCORE_TOLERANCE = 1e-6  # points; one example more or less is at least a thousand times that
SEARCHES = ({"num_beams": 1}, {"num_beams": 3})

# Entries of config.json with the heads of a layer, by attention type; T5 has one for all.
HEADS = {
    "self": "num_attention_heads", "enc-enc": "encoder_attention_heads", "enc-dec": "decoder_attention_heads",
    "dec-dec": "decoder_attention_heads",
}
# Names of output projections of attention modules.
OUTPUT = re.compile(
    r"(self_attn|encoder_attn|SelfAttention|EncDecAttention|attn|attention|attention\.output)"
    r"\.(o_proj|out_proj|out_lin|c_proj|dense|o|Wo)$"
)
# Families whose positions begin behind that of the padding.
BEHIND_PADDING = ("roberta", "xlm-roberta", "camembert", "mpnet")
# Families that transformers cannot run with a cache: of mT5 it has one for as many layers as the encoder has.
WITHOUT_CACHE = ("fsmt", "mt5")


class Fault(Exception):
    """Why an export is not what it should be, or could not be checked."""


def main():
    arguments = parse_arguments()
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()  # weights that do not fit are faults
    print(f"python {platform.python_version()}, torch {torch.__version__}, transformers {transformers.__version__}")
    try:
        print_table(arguments) if arguments.table else check(arguments)
    except Fault as fault:
        sys.exit(f"check_export.py: {fault}")
    print("passed")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("original", type=Path, nargs="?", metavar="ORIGINAL", help="folder of the model that was pruned")
    add("--cut", type=Path, metavar="DIR", help="what --form cut wrote")
    add("--dense", type=Path, metavar="DIR", help="what --form zeros wrote")
    add("--uniform", type=Path, metavar="DIR", help="what --form uniform wrote")
    add("--table", type=Path, metavar="DIR", help="folders of families; prints what this version reads")
    add("--split", type=Path, metavar="FILE.tsv", help="table that the scores are of; classifiers only")
    add("--tolerance", type=float, default=1e-5, metavar="GAP",
        help="largest gap of logits, as a part of the largest logit if that is above 1 (default %(default)s)")
    add("--seed", type=int, default=1, metavar="SEED", help="seed of the made-up tokens (default %(default)s)")
    arguments = parser.parse_args()
    if not arguments.table and not (arguments.original and any(getattr(arguments, name) for name in EXPORTS)):
        parser.error(f"nothing to check: give ORIGINAL with --{', --'.join(EXPORTS[:-1])} or --{EXPORTS[-1]}, or --table")
    return arguments


def check(arguments):
    """Raises a fault if a folder is not the original without the removed heads."""
    folders = {name: getattr(arguments, name) for name in EXPORTS if getattr(arguments, name)}
    abouts = {name: read_json(folder / "pruning.json")["identity"] for name, folder in folders.items()}
    for about in abouts.values():
        check_origin(arguments.original, about)
    about = next(iter(abouts.values()))
    if any(other["arguments"]["removed_heads"] != about["arguments"]["removed_heads"] for other in abouts.values()):
        raise Fault("the folders lack different heads: export them in one run")
    heads = about["arguments"]["removed_heads"]
    reference = Reference.of(arguments.original, heads, arguments.seed, arguments.tolerance)
    print(f"masking changes logits by up to {reference.effect:.1e}, of {reference.largest:.1f}")
    models = {"original": reference.original}
    for name, folder in folders.items():
        models[name], gap = compare(reference, folder, with_code=name == "cut")
        sizes = f"{models[name].num_parameters():,} parameters of {reference.original.num_parameters():,}"
        print(f"{name}: logits differ by at most {gap:.1e}, {reference.count()} tokens are the same; {sizes}")
    if arguments.split:
        check_scores(arguments, folders, models, about)


# The table

COLUMNS = ("cut", "cut, with code", "dense", "uniform", "onnx, with code")


def print_table(arguments):
    """A row for each family: for each form the version if it reads it, with a star if not where a layer has no head."""
    version, references = transformers.__version__.split(".")[0], []
    skipped = [name for name in ("onnx", "onnxruntime") if importlib.util.find_spec(name) is None]
    print(f"onnx is skipped: there is no {skipped[0]}" if skipped else f"onnxruntime {importlib.metadata.version('onnxruntime')}")
    for family in sorted(folder for folder in arguments.table.iterdir()):
        cells = []
        for form in COLUMNS:
            outcomes = []
            for removal in ("some", "layer", "same"):
                is_onnx = form.startswith("onnx")
                folder = family / removal / ("cut" if is_onnx else form.split(",")[0])
                if not folder.exists() or is_onnx and skipped:
                    continue
                reference = is_read(folder, form.endswith("code"), arguments, compare_onnx if is_onnx else compare)
                outcomes.append(reference)
                if form.endswith("code") and reference and not is_onnx:
                    references.append((reference, folder))
            cells.append(version + "*" * (not all(outcomes)) if any(outcomes) else "–")
        print(f"| `{family.name}` | {' | '.join(cells)} |", flush=True)
    check_registered(references)


def is_read(folder, with_code, arguments, compare):
    """What a folder was compared with, if it gives what it should; else stderr says why not."""
    if with_code and "auto_map" not in read_json(folder / "config.json"):
        return None
    try:
        reference = Reference.of(folder.parents[1] / "original", removed_of(folder), arguments.seed, arguments.tolerance)
        compare(reference, folder, with_code)
        return reference
    except Exception as error:  # each version has its own ways to fail
        form = "with code" if with_code else "without code"
        where = "/".join(folder.parts[-3:])
        print(f"{where} {form}: {type(error).__name__}: {' '.join(str(error).split())[:200]}", file=sys.stderr)
        return None


def check_registered(references):
    """After `register()` no remote code is needed, and whole models are of the classes that they were of."""
    sys.path.insert(0, str(references[0][1]))
    import modeling_headcount

    modeling_headcount.register()
    for reference, folder in references:
        model, _ = compare(reference, folder, with_code=False)
        whole = load(Path(reference.original.name_or_path))
        if type(model).__module__ != "modeling_headcount" or type(whole) is not type(reference.original):
            raise Fault(f"`{folder}`: register() gives {type(model)}, and {type(whole)} for the original")


# Folders

def read_json(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Fault(f"cannot read `{path}`: {error}") from error


def removed_of(folder):
    return read_json(folder / "pruning.json")["identity"]["arguments"]["removed_heads"]


def check_origin(original, about):
    """Refuses a model that was not the one pruned."""
    path = original / "model.safetensors"
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise Fault(f"cannot read `{path}`: {error.strerror}") from error
    if found != about["weights"]:
        raise Fault(f"`{path}` is not what was pruned: its SHA-256 is {found}, not {about['weights']}")


def load(folder, **settings):
    """The model of a folder, in f32, all of whose weights fit."""
    config = read_json(folder / "config.json")
    kinds = {kind: kind for kind in ("SequenceClassification", "TokenClassification", "ImageClassification", "CausalLM")}
    kinds |= {"LMHeadModel": "CausalLM"}
    architecture = config["architectures"][0]
    kind = next((kind for end, kind in kinds.items() if architecture.endswith(end)), "Seq2SeqLM")
    if config["model_type"] == "gemma2":
        settings["attn_implementation"] = "eager"  # the one of 4.57 that caps scores
    try:
        model, faults = getattr(transformers, f"AutoModelFor{kind}").from_pretrained(
            folder, output_loading_info=True, local_files_only=True, **settings
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise Fault(f"transformers cannot load `{folder}`: {' '.join(str(error).split())[:300]}") from error
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        # transformers makes tables of positions itself, although it calls those of fsmt missing.
        keys = [str(key) for key in faults[kind] if not str(key).endswith("embed_positions.weight")]
        if keys:
            raise Fault(f"`{folder}` has {len(keys)} {kind.replace('_', ' ')}, as {min(keys)}")
    return model.float().eval()


# Heads

def parse_heads(text):
    """The heads of `self:1:3+self:2:5` by attention type and layer, counted from 0."""
    removed = {}
    for name in text.split("+"):
        attention, layer, head = name.split(":")
        removed.setdefault((attention, int(layer) - 1), []).append(int(head) - 1)
    return removed


@contextlib.contextmanager
def masked(model, removed):
    """Masks heads meanwhile."""
    hooks = []
    for name, module in model.named_modules():
        if OUTPUT.search(name):
            attention = attention_of(name, model.config)
            heads = getattr(model.config, HEADS[attention], None) or model.config.num_heads
            gates = torch.ones(heads)
            gates[removed.get((attention, int(re.search(r"\d+", name)[0])), [])] = 0
            hooks.append(module.register_forward_pre_hook(gate_hook(gates)))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def attention_of(name, config):
    if not config.is_encoder_decoder:
        return "self"
    if "encoder_attn" in name or "EncDecAttention" in name:
        return "enc-dec"
    return "enc-enc" if "encoder" in name.split(".") else "dec-dec"


def gate_hook(gates):
    """Multiplies the input of an output projection, `[batch, position, heads * d_head]`, by the gates of its heads."""

    def multiply(_module, arguments):
        context, *others = arguments
        return context * gates.repeat_interleave(context.shape[-1] // len(gates)), *others

    return multiply


# Logits and tokens

@dataclass
class Reference:
    """The original model, and what it makes of made-up tokens while heads are masked."""

    original: torch.nn.Module
    batches: list
    logits: torch.Tensor
    tokens: list
    largest: float
    effect: float
    tolerance: float

    @classmethod
    @functools.cache
    def of(cls, folder, heads, seed, tolerance):
        original, removed = load(folder), parse_heads(heads)
        batches = make_batches(original.config, seed)
        with masked(original, removed):
            logits, tokens = logits_of(original, batches), tokens_of(original, batches)
        largest, effect = logits.abs().max().item(), (logits_of(original, batches) - logits).abs().max().item()
        if not effect > 100 * tolerance * max(1, largest):
            raise Fault(f"masking changes the logits by {effect:.1e}: that is too little to check anything")
        return cls(original, batches, logits, tokens, largest, effect, tolerance * max(1, largest))

    def count(self):
        return sum(map(len, self.tokens))


def compare(reference, folder, with_code):
    """The model of a folder and its gap; raises a fault if it differs, or if it differs when saved and loaded again."""
    settings = {"trust_remote_code": True} if with_code else {}
    model = load(folder, **settings)
    if is_tied(model) != is_tied(reference.original):
        raise Fault(f"`{folder}`: its output layer and its embeddings are tied, and the original's are not, or vice versa")
    gap = compare_outputs(reference, model, folder)
    with tempfile.TemporaryDirectory() as again:
        model.save_pretrained(again)
        compare_outputs(reference, load(Path(again), **settings), f"{folder}, saved again")
    return model, gap


def compare_onnx(reference, folder, with_code):
    """Raises a fault if ONNX Runtime does not give the logits, of batches and lengths of all sizes."""
    onnx = wheel_module("onnx")
    with tempfile.TemporaryDirectory() as place:
        file = onnx.to_onnx(folder, Path(place) / "model.onnx", trust_remote_code=with_code)
        found = flat(lambda batch: torch.from_numpy(onnx.run(file, batch)), reference.batches, is_decoder(reference.original))
    gap = (found - reference.logits).abs().max().item()
    if not gap <= reference.tolerance:
        raise Fault(f"`{folder}`: logits of ONNX Runtime differ by {gap:.1e}, more than {reference.tolerance:.1e}")


def wheel_module(name):
    """A module of the wheel, without its package, which lacks what is put into the wheel."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[2] / f"wheel/python/headcount/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compare_outputs(reference, model, name):
    gap = (logits_of(model, reference.batches) - reference.logits).abs().max().item()
    if not gap <= reference.tolerance:  # not so for NaN either
        raise Fault(f"`{name}`: logits differ by {gap:.1e}, more than {reference.tolerance:.1e}")
    for row, (found, expected) in enumerate(zip(tokens_of(model, reference.batches), reference.tokens, strict=True), 1):
        if found != expected:
            raise Fault(f"`{name}`: row {row} is continued by {found}, that of the masked original by {expected}")
    return gap


def is_tied(model):
    output = model.get_output_embeddings()
    return output is not None and output.weight is model.get_input_embeddings().weight


def padding_of(config):
    """A token to pad with: any will do where the model has none."""
    token = config.pad_token_id
    return 0 if token is None or token < 0 else token


def make_batches(config, seed):
    """Inputs of made-up tokens: rows of several lengths padded to one batch, then each row alone; or made-up images."""
    generator = torch.Generator().manual_seed(seed)
    if hasattr(config, "patch_size"):
        size = (4, config.num_channels, config.image_size, config.image_size)
        return [{"pixel_values": torch.randn(size, generator=generator)}]
    sizes = [getattr(config, name, None) for name in ("vocab_size", "src_vocab_size", "tgt_vocab_size")]
    padding = padding_of(config)
    tokens = torch.tensor([token for token in range(min(size for size in sizes if size)) if token != padding])
    draw = lambda *size: tokens[torch.randint(len(tokens), size, generator=generator)]
    unused = padding + 1 if config.model_type in BEHIND_PADDING else 0
    longest = min(getattr(config, "max_position_embeddings", LONGEST) - unused, LONGEST)
    lengths = sorted({1, 2, 5, longest // 2, longest - 1, longest})
    place, length = torch.arange(longest), torch.tensor(lengths).unsqueeze(1)
    batch = {"attention_mask": (place < length).long()}  # [rows, longest]
    batch["input_ids"] = draw(len(lengths), longest).where(place < length, padding)
    if getattr(config, "type_vocab_size", 0):
        batch["token_type_ids"] = ((length // 2 <= place) & (place < length)).long() % config.type_vocab_size
    if config.is_encoder_decoder:
        batch["decoder_input_ids"] = draw(len(lengths), longest)
        batch["decoder_input_ids"][:, 0] = config.decoder_start_token_id
    alone = lambda row: {name: values[row : row + 1, : lengths[row]] for name, values in batch.items()}
    return [batch, *map(alone, range(len(lengths)))]


def is_decoder(model):
    return model.can_generate() and not model.config.is_encoder_decoder


@torch.inference_mode()
def logits_of(model, batches):
    settings = {"use_cache": False} if model.config.is_encoder_decoder else {}  # fsmt of 4.57 does not run with one
    return flat(lambda batch: model(**batch, **settings).logits, batches, is_decoder(model))


def flat(logits, batches, decoder):
    # What a decoder says at padding, behind the text, means nothing.
    is_read = lambda batch: batch["attention_mask"].bool() if decoder else ...
    return torch.cat([logits(batch)[is_read(batch)].flatten() for batch in batches])


@torch.inference_mode()
def tokens_of(model, batches):
    """What follows rows that leave room, padded to one batch: in front of what a language model goes on with."""
    if not model.can_generate():
        return []
    inputs, decoder = {name: batches[0][name] for name in ("input_ids", "attention_mask")}, is_decoder(model)
    if decoder:
        length = inputs["attention_mask"].sum(1)
        rows, longest = length <= inputs["input_ids"].shape[1] - NEW_TOKENS, inputs["input_ids"].shape[1] - NEW_TOKENS
        places = (torch.arange(longest) + length[rows, None] - longest) % longest  # turned until the padding is in front
        inputs = {name: values[rows][:, :longest].gather(1, places) for name, values in inputs.items()}
    settings = {"do_sample": False, "max_new_tokens": NEW_TOKENS, "pad_token_id": padding_of(model.config)}
    settings["use_cache"] = model.config.model_type not in WITHOUT_CACHE
    given = inputs["input_ids"].shape[1] if decoder else 0
    made = [model.generate(**inputs, **settings, **search)[:, given:].tolist() for search in SEARCHES]
    return [row for rows in made for row in rows]


# Scores

def check_scores(arguments, folders, models, about):
    """Compares scores of the split with those that `iterative-prune` wrote."""
    if "labels" not in about["arguments"]:
        raise Fault("--split is for classifiers")
    settings, labels = read_json(arguments.original / "settings.json"), about["arguments"]["labels"]
    try:
        rows = read_table(arguments.split, settings["format"])[: about["limit"]]
        gold = [labels.index(settings["rename"].get(label, label)) for *_, label in rows]
    except (IndexError, ValueError) as error:
        raise Fault(f"`{arguments.split}` is not a table as settings.json describes it: {error}") from error
    for name, model in models.items():
        folder = arguments.original if name == "original" else folders[name]
        predicted = predictions(folder, model, rows, about["arguments"]["max_length"])
        found = score(gold, predicted, labels, settings["score"])
        expected = about["arguments"]["base_score" if name == "original" else "score"]
        line = f"{about['metric']} of {len(rows)} rows: {name} {found:.4f} here, {expected:.4f} in iterative-prune"
        if not abs(found - expected) < SCORE_TOLERANCE:
            raise Fault(line)
        print(line)


def read_table(path, table):
    """Text, pair or none, and label of each row."""
    if table["kind"] != "tsv" or table.get("quoting"):
        raise Fault(f"`{path}`: only tables with tabs and without quotation marks are read here")
    try:
        lines = path.read_bytes().decode("utf-8-sig").split("\n")
    except OSError as error:
        raise Fault(f"cannot read `{path}`: {error.strerror}") from error
    rows = [line.rstrip("\r").split("\t") for line in lines if line.strip()]
    header = rows.pop(0) if table.get("header", True) else []
    place = lambda column: column - 1 if isinstance(column, int) else header.index(column)
    columns = [place(table[name]) if name in table else None for name in ("text", "pair", "label")]
    cells = [[None if column is None else row[column] for column in columns] for row in rows]
    return [row for row in cells if row[-1] not in table.get("skip_labels", [])]


@torch.inference_mode()
def predictions(folder, model, rows, max_length):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    found = []
    for start in range(0, len(rows), 32):
        texts, pairs, _ = map(list, zip(*rows[start : start + 32]))
        pairs = None if pairs[0] is None else pairs
        inputs = tokenizer(texts, pairs, padding=True, truncation=True, max_length=max_length, return_tensors="pt")
        found += model(**inputs).logits.argmax(-1).tolist()
    return found


def score(gold, predicted, labels, settings):
    """In points: accuracy, F1 of a class, or the Matthews correlation of two classes."""
    if settings["metric"] == "accuracy":
        return 100 * sum(map(int.__eq__, gold, predicted)) / len(gold)
    positive = labels.index(settings["positive"] or labels[1])
    outcomes = [(truth == positive, said == positive) for truth, said in zip(gold, predicted)]
    hits, misses = outcomes.count((True, True)), outcomes.count((True, False))
    alarms, rest = outcomes.count((False, True)), outcomes.count((False, False))
    if settings["metric"] == "f1":
        return 200 * hits / max(1, 2 * hits + misses + alarms)
    spread = math.sqrt((hits + misses) * (hits + alarms) * (rest + misses) * (rest + alarms))
    return 100 * (hits * rest - misses * alarms) / spread if spread else 0.0


if __name__ == "__main__":
    main()
