"""Opens what `export-model` writes in transformers, beside the original.

    iterative-prune minilm-cola --step-percent 50
    export-model minilm-cola cut --percent 50
    export-model minilm-cola dense --form zeros --percent 50
    python check_export.py data/models/minilm-cola --cut cut --dense dense --split data/glue/CoLA/dev.tsv

    iterative-prune demo-language --unit group --uniform
    export-model demo-language uniform --form uniform --percent 50
    export-model demo-language dense --form zeros --percent 50
    python check_export.py data/models/demo-language --uniform uniform --dense dense

On made-up tokens each folder must give the logits of ORIGINAL with the removed heads masked, by transformers itself or,
in language models, by hooks before the output projections; a translator or a language model must also give the same
greedy tokens. With --split, a classifier must also get the scores that `iterative-prune` wrote into pruning.json.

Needs torch and transformers, 4 or 5. A cut folder that transformers cannot run is loaded as far as that goes, and
reported as skipped: those of translators, those of language models other than GPT-2, all in version 5, which has dropped
`pruned_heads`, and in version 4 those with a layer without heads. The last line says `passed`; a fault is one line, and
the exit code 1.
"""
import argparse
import contextlib
import hashlib
import inspect
import itertools
import json
import math
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

try:
    import torch
    import transformers
except ImportError as error:
    sys.exit(f"check_export.py: {error}: install torch and transformers")

EXPORTS = ("dense", "uniform", "cut")
LONGEST = 48  # made-up rows, in tokens
SCORE_TOLERANCE = 1e-6  # points; one example more or less is at least a thousand times that


class Fault(Exception):
    """Why an export is not what it should be, or could not be checked."""


@dataclass(frozen=True)
class Attention:
    """What transformers calls an attention type: the mask, its size in config.json, and the modules of a layer.

    Without the name of a mask, hooks do what it is for: language models have none, or ignore it in some versions.
    """

    mask: str | None
    layers: str
    heads: str
    module: str
    output: str


def of_one_stack(module, output, mask):
    return {"self": Attention(mask, "num_hidden_layers", "num_attention_heads", module, output)}


def of_classifier(module, output="output.dense"):
    return of_one_stack(module, output, "head_mask")


def of_language_model(module, output):
    return of_one_stack(module, output, None)


ENCODER, DECODER = "model.encoder.layers.{}.", "model.decoder.layers.{}."
OF_TRANSLATOR = {
    "enc-enc": Attention(
        "head_mask", "encoder_layers", "encoder_attention_heads", f"{ENCODER}self_attn", "out_proj"
    ),
    "enc-dec": Attention(
        "cross_attn_head_mask", "decoder_layers", "decoder_attention_heads", f"{DECODER}encoder_attn", "out_proj"
    ),
    "dec-dec": Attention(
        "decoder_head_mask", "decoder_layers", "decoder_attention_heads", f"{DECODER}self_attn", "out_proj"
    ),
}
OF_ROBERTA = of_classifier("roberta.encoder.layer.{}.attention")
OF_LLAMA = of_language_model("model.layers.{}.self_attn", "o_proj")

# Entries of config.json that name the heads cut out: that of version 4, and that of this project where version 4 has none.
OF_TRANSFORMERS, OF_THIS_PROJECT = "pruned_heads", "pruned_query_heads"


@dataclass(frozen=True)
class Family:
    """The class that transformers loads a family with, its attention types by our names, and what names heads cut out."""

    model: type
    attentions: dict
    entry: str | None


FAMILIES = {
    "bert": Family(
        transformers.BertForSequenceClassification, of_classifier("bert.encoder.layer.{}.attention"), OF_TRANSFORMERS
    ),
    "roberta": Family(transformers.RobertaForSequenceClassification, OF_ROBERTA, OF_TRANSFORMERS),
    "xlm-roberta": Family(transformers.XLMRobertaForSequenceClassification, OF_ROBERTA, OF_TRANSFORMERS),
    "distilbert": Family(
        transformers.DistilBertForSequenceClassification,
        of_classifier("distilbert.transformer.layer.{}.attention", "out_lin"),
        OF_TRANSFORMERS,
    ),
    "marian": Family(transformers.MarianMTModel, OF_TRANSLATOR, None),
    "fsmt": Family(transformers.FSMTForConditionalGeneration, OF_TRANSLATOR, None),
    "gpt2": Family(
        transformers.GPT2LMHeadModel, of_language_model("transformer.h.{}.attn", "c_proj"), OF_TRANSFORMERS
    ),
    "llama": Family(transformers.LlamaForCausalLM, OF_LLAMA, OF_THIS_PROJECT),
    "mistral": Family(transformers.MistralForCausalLM, OF_LLAMA, OF_THIS_PROJECT),
    "qwen2": Family(transformers.Qwen2ForCausalLM, OF_LLAMA, OF_THIS_PROJECT),
    "qwen3": Family(transformers.Qwen3ForCausalLM, OF_LLAMA, OF_THIS_PROJECT),
}


def main():
    arguments = parse_arguments()
    transformers.utils.logging.disable_progress_bar()
    print(f"python {platform.python_version()}, torch {torch.__version__}, transformers {transformers.__version__}")
    try:
        compared = check(arguments)
    except Fault as fault:
        sys.exit(f"check_export.py: {fault}")
    print("passed" if compared else "skipped: no folder that this version can run; export-model --form zeros writes one")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("original", type=Path, metavar="ORIGINAL", help="folder of the model that was pruned")
    add("--cut", type=Path, metavar="DIR", help="what --form cut wrote")
    add("--dense", type=Path, metavar="DIR", help="what --form zeros wrote")
    add("--uniform", type=Path, metavar="DIR", help="what --form uniform wrote")
    add("--split", type=Path, metavar="FILE.tsv", help="table that the scores are of; classifiers only")
    add("--tolerance", type=float, default=1e-5, metavar="GAP",
        help="largest gap of logits, as a part of the largest logit if that is above 1 (default %(default)s)")
    add("--seed", type=int, default=1, metavar="SEED", help="seed of the made-up tokens (default %(default)s)")
    arguments = parser.parse_args()
    if not any(getattr(arguments, name) for name in EXPORTS):
        parser.error(f"nothing to check: give --{', --'.join(EXPORTS[:-1])} or --{EXPORTS[-1]}")
    return arguments


def check(arguments):
    """Whether there was a folder to compare with the original; raises a fault if they are not the same."""
    folders = {name: getattr(arguments, name) for name in EXPORTS if getattr(arguments, name)}
    abouts = {name: read_json(folder / "pruning.json")["identity"] for name, folder in folders.items()}
    for about in abouts.values():
        check_origin(arguments.original, about)
    removed = [about["arguments"]["removed_heads"] for about in abouts.values()]
    if len(set(removed)) > 1:
        raise Fault("the folders lack different heads: export them in one run")
    heads = parse_heads(removed[0])

    original = load_original(arguments.original)
    masks = make_masks(original.config, heads)
    print(describe(masks))
    exports = {}
    for name, folder in folders.items():
        if name == "uniform":
            check_uniform(folder, original.config, masks)
        found = load_cut(folder, masks) if name == "cut" else load(folder)
        if found is not None:
            exports[name] = found
    check_tied(original, exports)
    check_logits(original, exports, masks, arguments)
    if original.can_generate():
        check_tokens(original, exports, masks, arguments.seed)
    if arguments.split:
        check_scores(arguments, folders, {"original": original, **exports}, next(iter(abouts.values())))
    return bool(exports)


# Folders

def read_json(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Fault(f"cannot read `{path}`: {error}") from error


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
    model, faults = load_loosely(folder, **settings)
    for kind, keys in faults.items():
        if keys:
            raise Fault(f"`{folder}` has {len(keys)} {kind.replace('_', ' ')}, as {min(keys)}")
    return model


def load_original(folder):
    """The model that was pruned. Only eager attention takes head masks; the exports have the default, as for their users."""
    family = FAMILIES.get(read_json(folder / "config.json").get("model_type"))
    takes_masks = family and any(attention.mask for attention in family.attentions.values())
    return load(folder, **({"attn_implementation": "eager"} if takes_masks else {}))


def load_loosely(folder, **settings):
    """The model of a folder, and the names of its weights that do not fit, by kind."""
    model_type = read_json(folder / "config.json").get("model_type")
    if model_type not in FAMILIES:
        raise Fault(f"`{folder}` is a model of type {model_type!r}: this checks {', '.join(FAMILIES)}")
    verbosity = transformers.utils.logging.get_verbosity()
    transformers.utils.logging.set_verbosity_error()  # what does not fit is returned
    try:
        model, faults = FAMILIES[model_type].model.from_pretrained(
            folder, output_loading_info=True, local_files_only=True, **settings
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise Fault(f"transformers cannot load `{folder}`: {' '.join(str(error).split())[:300]}") from error
    finally:
        transformers.utils.logging.set_verbosity(verbosity)
    kinds = ("missing_keys", "unexpected_keys", "mismatched_keys")
    # A mismatched key comes with the two shapes.
    names = {kind: {key if isinstance(key, str) else key[0] for key in faults[kind]} for kind in kinds}
    # transformers makes tables of positions itself, although it calls those of fsmt missing.
    names["missing_keys"] = {key for key in names["missing_keys"] if not key.endswith("embed_positions.weight")}
    return model.float().eval(), names


def load_cut(folder, masks):
    """The model of the cut folder; none where transformers cannot run it."""
    config = read_json(folder / "config.json")
    entry = FAMILIES[config["model_type"]].entry
    if entry:
        pruned = {int(layer): heads for layer, heads in config.get(entry, {}).items()}
        check_pruned_heads(folder, entry, pruned, masks["self"])
        if entry == OF_TRANSFORMERS and hasattr(transformers.PreTrainedModel, "prune_heads"):
            model = load(folder)
            empty = [layer + 1 for layer, heads in pruned.items() if len(heads) == model.config.num_attention_heads]
            if not empty:
                return model
            # With torch 2.11, scaled_dot_product_attention kills the process (4.46.3) or `view` raises (4.57.6).
            layers = ", ".join(map(str, empty))
            print(f"skipped: the cut folder: all weights fit, but transformers runs no layer without heads ({layers})")
            return None
    check_unpruned(folder, FAMILIES[config["model_type"]], masks)
    return None


def check_pruned_heads(folder, entry, pruned, mask):
    """The heads of config.json are the removed ones; a layer that loses all may keep one, as zeros."""
    removed = closed(mask)
    for layer in sorted(removed.keys() | pruned.keys()):
        gone, named = set(removed.get(layer, [])), set(pruned.get(layer, []))
        may_keep = 1 if len(gone) == mask.shape[1] else 0
        if named - gone or len(gone - named) > may_keep:
            names = f"{entry} {sorted(named)} in layer {layer}, but {sorted(gone)} are removed, counted from 0"
            raise Fault(f"`{folder / 'config.json'}` has {names}")


def check_unpruned(folder, family, masks):
    """Where transformers knows no pruned heads, all weights outside the layers that lost some must fit."""
    _, faults = load_loosely(folder, ignore_mismatched_sizes=True)
    pruned = [family.attentions[name].module.format(layer) for name, mask in masks.items() for layer in closed(mask)]
    pruned = tuple(f"{module}." for module in pruned)
    beyond = [key for key in faults["mismatched_keys"] if not key.startswith(pruned)]
    for key in [*faults["missing_keys"], *faults["unexpected_keys"], *beyond]:
        raise Fault(f"`{folder}`: {key} does not fit, which has nothing to do with heads")
    why = f"transformers {transformers.__version__} knows no such models with heads cut out"
    if family.entry == OF_THIS_PROJECT:
        why = f"only this project reads `{OF_THIS_PROJECT}`, and builds a model whose layers differ"
    print(
        f"skipped: the cut folder: {why}"
        f" ({len(faults['mismatched_keys'])} weights of pruned layers do not fit, all others do)"
    )


def check_uniform(folder, original, masks):
    """All layers are smaller by as many groups or heads of a group as were removed, and heads as wide as they were."""
    if not hasattr(original, "num_key_value_heads"):
        raise Fault(f"`{folder}`: no {original.model_type} can have the width of its heads in config.json")
    mask, groups = masks["self"], original.num_key_value_heads
    by_group = mask.view(len(mask), groups, -1).sum(-1)  # [layers, groups]
    left = [layer[layer > 0].tolist() for layer in by_group]  # heads of each group that is not gone
    if len(set(map(len, left))) != 1 or len(set(sum(left, []))) != 1:
        raise Fault(f"`{folder}` cannot be uniform: the removed heads leave unequal layers or groups")
    expected = {
        "num_attention_heads": int(sum(left[0])),
        "num_key_value_heads": len(left[0]),
        "head_dim": getattr(original, "head_dim", None) or original.hidden_size // original.num_attention_heads,
    }
    found = read_json(folder / "config.json")
    for name, value in expected.items():
        if found.get(name) != value:
            raise Fault(f"`{folder / 'config.json'}` has {name} {found.get(name)}, not {value}")
    print(f"uniform: {', '.join(f'{name} {value}' for name, value in expected.items())}")


def check_tied(original, exports):
    """The output layer is the table of embeddings in all models or in none."""
    for name, model in exports.items():
        if is_tied(model) != is_tied(original):
            ties = {True: "tied to", False: "apart from"}
            raise Fault(f"the output layer of {name} is {ties[is_tied(model)]} its embeddings, unlike the original's")


def is_tied(model):
    output = model.get_output_embeddings()
    return output is not None and output.weight is model.get_input_embeddings().weight


# Heads

def parse_heads(text):
    """Attention type, layer and head of each of `self:1:3+self:2:5`, the latter counted from 0."""
    names = [name.split(":") for name in text.split("+")]
    return [(attention, int(layer) - 1, int(head) - 1) for attention, layer, head in names]


def make_masks(config, heads):
    """For each attention type of the model `[layers, heads]`: 1, and 0 for removed heads."""
    attentions = FAMILIES[config.model_type].attentions
    size = lambda attention: (getattr(config, attention.layers), getattr(config, attention.heads))
    masks = {name: torch.ones(size(attention)) for name, attention in attentions.items()}
    for name, layer, head in heads:
        masks[name][layer, head] = 0
    return masks


def closed(mask):
    """The masked heads of each layer that has some."""
    layers = {layer: (row == 0).nonzero().flatten().tolist() for layer, row in enumerate(mask)}
    return {layer: heads for layer, heads in layers.items() if heads}


def describe(masks):
    parts = [f"{name} {int((mask == 0).sum())} of {mask.numel()}" for name, mask in masks.items()]
    empty = [f"{name}:{layer + 1}" for name, mask in masks.items() for layer, row in enumerate(mask) if not row.any()]
    return f"removed heads: {', '.join(parts)}; layers that lose all: {', '.join(empty) or 'none'}"


@contextlib.contextmanager
def masked(model, masks):
    """Yields the arguments that mask heads. Where `forward` knows none, as in version 5, hooks mask them meanwhile."""
    attentions = FAMILIES[model.config.model_type].attentions
    arguments = {attentions[name].mask: mask for name, mask in masks.items()}
    if arguments.keys() <= inspect.signature(model.forward).parameters.keys():
        yield arguments
        return
    hooks = []
    for name, mask in masks.items():
        for layer, gates in enumerate(mask):
            output = f"{attentions[name].module.format(layer)}.{attentions[name].output}"
            hooks.append(model.get_submodule(output).register_forward_pre_hook(gate_hook(gates)))
    try:
        yield {}
    finally:
        for hook in hooks:
            hook.remove()


def gate_hook(gates):
    """Multiplies the input of an output projection, `[batch, position, heads * d_head]`, by the gates of its heads."""

    def multiply(_module, arguments):
        context, *others = arguments
        return context * gates.repeat_interleave(context.shape[-1] // len(gates)), *others

    return multiply


# Logits and tokens

def padding_of(config):
    """A token to pad with: any will do where the model has none."""
    token = config.pad_token_id
    return 0 if token is None or token < 0 else token


def longest_input(config):
    """In tokens. The positions of RoBERTa begin behind that of its padding."""
    unused = config.pad_token_id + 1 if "roberta" in config.model_type else 0
    return min(config.max_position_embeddings - unused, LONGEST)


def make_batches(config, seed):
    """Inputs of made-up tokens: rows of several lengths padded to one batch, then each row alone."""
    generator = torch.Generator().manual_seed(seed)
    sizes = [getattr(config, name, None) for name in ("vocab_size", "src_vocab_size", "tgt_vocab_size")]
    vocabulary = min(size for size in sizes if size)
    padding = padding_of(config)
    tokens = torch.tensor([token for token in range(vocabulary) if token != padding])
    draw = lambda *size: tokens[torch.randint(len(tokens), size, generator=generator)]
    longest = longest_input(config)
    lengths = sorted({1, 2, 5, longest // 2, longest - 1, longest} & set(range(1, longest + 1)))
    place, length = torch.arange(longest), torch.tensor(lengths).unsqueeze(1)
    batch = {"attention_mask": (place < length).long()}  # [rows, longest]
    batch["input_ids"] = draw(len(lengths), longest).where(place < length, padding)
    if hasattr(config, "type_vocab_size"):
        batch["token_type_ids"] = ((length // 2 <= place) & (place < length)).long() % config.type_vocab_size
    if config.is_encoder_decoder:
        batch["decoder_input_ids"] = draw(len(lengths), longest)
        batch["decoder_input_ids"][:, 0] = config.decoder_start_token_id
    alone = lambda row: {name: values[row : row + 1, : lengths[row]] for name, values in batch.items()}
    return [batch, *map(alone, range(len(lengths)))]


def is_language_model(model):
    return model.can_generate() and not model.config.is_encoder_decoder


@torch.inference_mode()
def logits_of(model, batches, **arguments):
    if model.config.is_encoder_decoder:
        arguments["use_cache"] = False  # with one, the fsmt of transformers 4.57 does not run
    # What stands at padding, behind the text, means nothing.
    is_read = lambda batch: batch["attention_mask"].bool() if is_language_model(model) else ...
    try:
        return torch.cat([model(**batch, **arguments).logits[is_read(batch)].flatten() for batch in batches])
    except RuntimeError as error:
        raise Fault(f"transformers cannot run `{model.name_or_path}`: {error}") from error


def check_logits(original, exports, masks, arguments):
    batches = make_batches(original.config, arguments.seed)
    with masked(original, masks) as how:
        print(f"masks of the original: {', '.join(how) or 'hooks on the output projections'}")
        found = {"masked original": logits_of(original, batches, **how)}
    found |= {name: logits_of(model, batches) for name, model in exports.items()}
    largest = found["masked original"].abs().max().item()
    tolerance = arguments.tolerance * max(1, largest)
    effect = gap(logits_of(original, batches), found["masked original"])
    if not effect > 100 * tolerance:
        raise Fault(f"masking changes the logits by {effect:.1e}: that is too little to check anything")
    count = found["masked original"].numel()
    print(f"logits: {count} in {len(batches)} batches, up to {largest:.1f}; masking changes them by {effect:.1e}")
    pairs = [(name, "masked original") for name in exports]
    for one, other in [*pairs, *itertools.combinations(exports, 2)]:
        difference = gap(found[one], found[other])
        if not difference <= tolerance:  # not so for NaN either
            raise Fault(f"logits of {one} and {other} differ by {difference:.1e}, more than {tolerance:.1e}")
        print(f"logits: {one} and {other} differ by at most {difference:.1e}")
    for name, model in exports.items():
        print(f"parameters: {model.num_parameters():,} {name}, {original.num_parameters():,} original")


def gap(one, other):
    return (one - other).abs().max().item()


def check_tokens(original, exports, masks, seed):
    prompts = make_prompts(original, seed)
    with masked(original, masks) as how:
        expected = generate(original, prompts, **how)
    unmasked = generate(original, prompts)
    changed = sum(one != other for one, other in zip(expected, unmasked))
    for name, model in exports.items():
        found = generate(model, prompts)
        for row, (one, other) in enumerate(zip(found, expected), 1):
            if one != other:
                raise Fault(f"row {row}: {name} generates {one}, the masked original {other}")
        print(
            f"greedy tokens: {name} and masked original generate the same {sum(map(len, found))} in {len(found)} rows"
            f" (masking changes {changed} rows)"
        )


def make_prompts(model, seed):
    """Batches to begin from. A language model goes on where a row ends, so it has rows alone, and room behind them."""
    padded, *alone = make_batches(model.config, seed)
    if not is_language_model(model):
        return [padded]
    return [row for row in alone if row["input_ids"].shape[1] < longest_input(model.config)]


@torch.inference_mode()
def generate(model, prompts, **arguments):
    """The tokens of each row, without its prompt."""
    settings = {"num_beams": 1, "do_sample": False, "use_cache": False, "pad_token_id": padding_of(model.config)}
    rows = []
    for batch in prompts:
        inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
        given = inputs["input_ids"].shape[1] if is_language_model(model) else 0
        made = model.generate(**inputs, max_length=longest_input(model.config), **settings, **arguments)
        rows += made[:, given:].tolist()
    return [[token for token in row if token != model.config.pad_token_id] for row in rows]


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
