"""What happens in a model while a user's hook is in place: which modules run, and what each head gives."""
import inspect
import sys

import torch

EAGER = "eager_attention_forward"  # transformers' attention that is not fused, a function beside each model
MASKS = {"head_mask", "decoder_head_mask", "cross_attn_head_mask"}


def footprint(model):
    """What a context manager leaves in a model: names of modules with the numbers of their hooks, and patched functions."""
    hooks = {(name, number) for name, module in model.named_modules()
             for number in (*module._forward_pre_hooks, *module._forward_hooks)}
    return hooks | {(EAGER, id(getattr(sys.modules[type(model).__module__], EAGER, None)))}


class Witness:
    """Records a run; `added` is the part of the footprint that the user's context manager left."""

    def __init__(self, run, added):
        self.run, self.added = run, sorted({name for name, _ in added})
        self.called, self.masked = set(), []
        self.outputs = {place: [] for place in run.attentions}  # tensors [batch, positions, heads, width]
        self.handles = []

    def __enter__(self):
        for name, module in self.run.module.named_modules():
            self.handles.append(module.register_forward_pre_hook(self.noting(name), with_kwargs=True))
        for place, attention in self.run.attentions.items():
            def keep(values, place=place, attention=attention):
                self.outputs[place].append(attention.by_head(values).clone())
            self.handles.append(attention.head_outputs.watch(keep))
        return self

    def __exit__(self, *_):
        for handle in self.handles:
            handle.remove()

    def noting(self, name):
        def note(_module, _inputs, keywords):
            self.called.add(name)
            self.masked += [(mask, name) for mask in MASKS & keywords.keys() if torch.is_tensor(keywords[mask])]  # not [None, ...]
        return note

    def constants(self):
        """The heads that give the same everywhere, in the prompt or in the steps, with what they give: `[width]`."""
        found = {}
        for (kind, layer), chunks in self.outputs.items():
            parts = [chunks] + ([chunks[:1], chunks[1:]] if chunks and len(chunks[0]) > 1 else [])  # one row may well be constant
            for part in filter(None, parts):
                rows = torch.cat([chunk.flatten(0, 1) for chunk in part])  # [tokens, heads, width]
                spread = (rows.amax(0) - rows.amin(0)).amax(-1)
                for head in (spread <= 4 * torch.finfo(rows.dtype).eps * rows.abs().amax((0, 2))).nonzero().flatten().tolist():
                    found.setdefault((kind, layer, head), rows[0, head])
        return found

    def why_nothing_happens(self):
        """Name, text and remedy of a hook that leaves all logits as they are."""
        attention = getattr(getattr(self.run.module, "config", None), "_attn_implementation", None)
        remedy = "load the model with attn_implementation=\"eager\", or replace {}"
        modules = tuple(f"{attention.name}." for attention in self.run.attentions.values())
        silent = [name for name in self.added if name != EAGER and name not in self.called]
        inside = [name for name in silent if attention and name.startswith(modules)]
        if self.masked:
            mask, name = self.masked[-1]
            remedy = remedy if MASKS & inspect.signature(self.run.module.forward).parameters.keys() else (
                "this version of transformers does not support head masks: replace {}")
            return "mask-ignored", f"`{mask}` reaches {f'`{name}`' if name else 'the model'}, but `{attention}` attention ignores it", remedy
        if inside or EAGER in self.added and attention != "eager":
            return "mask-ignored", f"`{attention}` attention never calls `{(inside or [EAGER])[0]}`", remedy
        if silent:
            return "never-fires", f"the hook never fires: `{silent[0]}` is not called", "hook a module that is called, or replace {}"
        if self.added:
            return "changes-nothing", f"the hook on `{self.added[0]}` fires and changes nothing", (
                "return the changed tensor; heads are counted from 0 in tensors")
        return "never-fires", "no hook of this model fires", "set hooks on this very model, when the context manager is entered"
