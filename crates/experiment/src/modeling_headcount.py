"""Models of transformers 4.57 and 5 that lack the attention heads that config.json lists, counted from 0.

The Auto classes find this file by `auto_map`, with trust_remote_code=True; after `register()` they need neither.
"""
import functools
import re

import transformers
from torch import nn

# Types of models that can lack heads, by the Auto class that loads them, which is the key of `auto_map` in saved models. DeiT is not
# among them: its Auto class chooses between two models.
AUTO_CLASSES = {auto: model_types.split() for auto, model_types in {
    "AutoModelForCausalLM": "gemma gemma2 gemma3_text gpt2 granite llama mistral opt qwen2 qwen3 qwen3_moe smollm3 starcoder2",
    "AutoModelForSequenceClassification": "bert camembert distilbert electra roberta xlm-roberta",
    "AutoModelForTokenClassification": "bert camembert distilbert electra roberta xlm-roberta",
    "AutoModelForImageClassification": "vit",
    "AutoModelForSeq2SeqLM": "bart m2m_100 marian mbart pegasus",
}.items()}
# Maps of queries, keys, values and outputs in an attention module; GPT-2 has one for the first three.
MAPS = ["q_proj k_proj v_proj o_proj", "q_proj k_proj v_proj out_proj", "q_lin k_lin v_lin out_lin", "c_attn c_proj",
        "self.query self.key self.value output.dense", "attention.query attention.key attention.value output.dense"]

def __getattr__(name):
    """The class of transformers of this name, made to lack heads."""
    if name.startswith("__"):
        raise AttributeError(name)
    return lacking_heads(getattr(transformers, name))

@functools.cache
def lacking_heads(base):
    autos = [auto for auto, model_types in AUTO_CLASSES.items() if base.config_class.model_type in model_types]
    own = [auto for auto in autos if base.__name__.endswith(auto.removeprefix("AutoModel"))]
    return type(base.__name__, (LackingHeads, base), {"__module__": __name__, "_auto_class": next(iter(own + autos), None)})

def register():
    """Lets the Auto classes load folders that lack heads without remote code; other folders load as before."""
    for auto, model_type in [(auto, model_type) for auto, model_types in AUTO_CLASSES.items() for model_type in model_types]:
        auto, config = getattr(transformers, auto), transformers.CONFIG_MAPPING[model_type]
        auto.register(config, lacking_heads(auto._model_mapping[config]), exist_ok=True)

class LackingHeads:
    def __init__(self, config, *arguments, **settings):
        removed, listed = removed_heads(config), getattr(config, "pruned_heads", None)
        if listed:
            config.pruned_heads = {}  # version 4 would cut these itself, and fail where a layer loses all
        super().__init__(config, *arguments, **settings)
        if listed:
            config.pruned_heads = listed
        if not removed:
            self.__class__ = type(self).__bases__[1]  # saved as the plain model that it is
        modules = dict(self.named_modules())
        for name, paths in [(name, paths.split()) for name in modules for paths in MAPS]:
            kind = "enc-dec" if "encoder_attn" in name else "enc-enc" if "encoder" in name.split(".") else "dec-dec"
            place = kind if config.is_encoder_decoder else "self", int(re.search(r"\d+|$", name)[0] or -1)
            maps = [modules.get(f"{name}.{path}") for path in paths]
            if place in removed and None not in maps:
                narrow(modules[f"{name}.{paths[0]}".rpartition(".")[0]], maps, removed[place])

    @classmethod
    def from_pretrained(cls, folder, *arguments, config=None, **settings):
        is_plain = isinstance(config, transformers.PretrainedConfig) and not removed_heads(config)
        return (cls.__bases__[1] if is_plain else super()).from_pretrained(folder, *arguments, config=config, **settings)

def removed_heads(config):
    """The heads that each attention type and layer lacks."""
    of_self = getattr(config, "pruned_query_heads", None) or getattr(config, "pruned_heads", None)
    types = getattr(config, "pruned_attention_heads", None) or {"self": of_self or {}}
    return {(kind, int(layer)): heads for kind, layers in types.items() for layer, heads in layers.items()}

def narrow(sizes, maps, removed):
    """Makes the maps of an attention module smaller, and tells `sizes` how many heads there are.

    Each head of keys needs as many queries. Where they differ, and where a module has no head, heads of zeros stand
    between the maps: caches ask the first layer how long the text is.
    """
    *inputs, output = maps
    fused, makes = len(inputs) == 1, int(not isinstance(output, nn.Linear))  # axis of outputs: GPT-2 has it last
    width = sizes.head_dim if hasattr(sizes, "head_dim") else sizes.attention_head_size
    heads = output.weight.shape[1 - makes] // width
    share = 1 if fused else heads * width // inputs[1].weight.shape[makes]  # heads that share keys
    kept = [head for head in range(heads) if head not in removed]
    groups = [[i for i, head in enumerate(kept) if head // share == g] for g in sorted({head // share for head in kept})]
    most = max(map(len, groups), default=1)
    slots = [i for group in groups or [[]] for i in group + [len(kept)] * (most - len(group))]
    for linear, count in zip(inputs, [3 * len(kept)] if fused else [len(kept), len(groups), len(groups)]):
        linear.nf = linear.out_features = count * width
        linear.weight = nn.Parameter(linear.weight.data.narrow(makes, 0, linear.nf).clone())
        linear.bias = linear.bias if linear.bias is None else nn.Parameter(linear.bias.data[:linear.nf].clone())
        if len(slots) > len(kept) and (linear is inputs[0] or not kept) and (kept or not fused):
            linear.register_forward_hook(functools.partial(pick, slots * (3 if fused else 1), width))
    output.nx = output.in_features = len(kept) * width
    output.weight = nn.Parameter(output.weight.data.narrow(1 - makes, 0, output.nx).clone())
    if len(slots) > len(kept):
        output.register_forward_pre_hook(functools.partial(pick, [*map(slots.index, range(len(kept)))], width))
    if fused and not kept:  # transformers' Conv1D cannot take nothing, nor in ONNX make it
        inputs[0].forward = lambda values: values[..., :1].mul(0).repeat(1, 1, 3 * width)
        output.forward = (lambda conv, values: values @ conv.weight + conv.bias).__get__(output)
    sizes.num_heads = sizes.num_attention_heads = sizes.n_heads = len(slots)
    sizes.all_head_size = sizes.dim = sizes.split_size = len(slots) * width
    sizes.num_key_value_heads, sizes.num_key_value_groups = len(slots) // most, most

def pick(heads, width, _map, inputs, outputs=None):
    """A hook that puts these heads of what a map takes, or makes, side by side; one beyond the last is zeros."""
    values = inputs[0] if outputs is None else outputs  # [..., heads * width]
    return nn.functional.pad(values, (0, width)).unflatten(-1, (-1, width))[..., heads, :].flatten(-2)
