"""What hooks do instead of removing heads: a table of wrong heads, and a table of wrong changes.

A place is `(attention type, layer, head)`, layers and heads counted from 0.
"""
import contextlib
import dataclasses
from typing import Callable

import torch

from .families import Point

ZERO = torch.zeros(())


@dataclasses.dataclass(frozen=True)
class WrongHeads:
    """Heads that a hook takes in the place of those that are meant."""
    name: str
    text: str  # continues "the hook"
    remedy: str  # `{}` is where the right head is
    heads: Callable  # (places, attentions) to places; those that the model lacks are left out


@dataclasses.dataclass(frozen=True)
class WrongChange:
    """A change that is not the removal of heads. `edits` gives pairs of a Point and what to hook there."""
    name: str
    text: str  # `{}` is the hooked module
    remedy: str
    edits: Callable  # (attention, head, replacement) to a list of (Point, change)


def moved(layers, heads):
    return lambda places, _: [(kind, layer + layers, head + heads) for kind, layer, head in places]


def grouped(member):
    """Heads by `member(head, groups, heads of a group)`, where heads share keys and values."""
    def heads(places, attentions):
        found = []
        for kind, layer, head in places:
            attention = attentions[kind, layer]
            share = attention.heads // attention.groups
            members = member(head, attention.groups, share) if share > 1 else [head]
            found += [(kind, layer, member) for member in members]
        return found
    return heads


REPLACE = "replace {}"  # by where the right head is
FROM_1 = "names count heads and layers from 1, tensors and modules from 0: subtract 1"
TWICE = "1 is subtracted twice, or from a number that counts from 0 already"
MEMBER = "takes another head of the layer for a member of a group"
NEIGHBOURS = "heads that share keys and values are neighbours (repeat_interleave), not every n-th head"
WRONG_HEADS = [
    WrongHeads("counted-from-1", "takes the next head", FROM_1, moved(0, 1)),
    WrongHeads("previous-head", "takes the head before", TWICE, moved(0, -1)),
    WrongHeads("neighbouring-layer", "takes the next layer", FROM_1, moved(1, 0)),
    WrongHeads("neighbouring-layer", "takes the layer before", TWICE, moved(-1, 0)),
    WrongHeads("counted-from-1", "takes the next head of the next layer", FROM_1, moved(1, 1)),
    WrongHeads("wrong-group-member", MEMBER, NEIGHBOURS,
               grouped(lambda head, groups, share: [head % share * groups + head // share])),
    WrongHeads("wrong-group-member", MEMBER, NEIGHBOURS,
               grouped(lambda head, groups, share: [head % groups * share + head // groups])),
    WrongHeads("whole-group", "takes all heads that share keys and values", f"{REPLACE}, not the values",
               grouped(lambda head, groups, share: range(head // share * share, (head // share + 1) * share))),
    WrongHeads("whole-group", "takes the number of a head for the number of a group", REPLACE,
               grouped(lambda head, groups, share: range(head * share, (head + 1) * share))),
    WrongHeads("last-head-only", "takes only the last of the heads", "keep every hook, not the last one alone",
               lambda places, _: places[-1:]),
    WrongHeads("last-head-only", "takes the last head's number in every layer",
               "a closure reads its variables when the hook fires: bind them (lambda ..., head=head)",
               lambda places, _: [(kind, layer, places[-1][2]) for kind, layer, _ in places]),
    WrongHeads("every-layer", "takes the heads in every layer", "look at the layer, such as module.layer_idx",
               lambda places, attentions: [(kind, layer, head) for kind, _, head in places for of, layer in attentions if of == kind]),
    WrongHeads("first-head-only", "takes only the first of the heads", "hook every head", lambda places, _: places[:1]),
]


def removing(keep):
    """Replaces a head's output where `keep` returns a part of `[batch, positions, width]`, as a view."""
    def edits(attention, head, replacement):
        def change(values):
            values = copied(values)
            keep(attention.by_head(values)[:, :, head]).copy_(replacement)
            return values
        return [(attention.head_outputs, change)]
    return edits


def sliced(depth):
    """Zeroes the columns that a head has in the projection's input in the output of a module around it."""
    def edits(attention, head, _):
        columns = slice(head * attention.width, (head + 1) * attention.width)
        return [(point, zeroing([columns])) for point in attention.results[depth:depth + 1]]
    return edits


def zeroing(slices):
    def change(values):
        values = copied(values)
        for columns in slices:
            values.flatten(2)[..., columns] = 0
        return values
    return change


def copied(values):
    """A copy whose reshapes are views of it."""
    return values.clone(memory_format=torch.contiguous_format)


def no_scores(attention, head, _):
    """Without a query all scores of a head are 0, but for biases of positions."""
    start = head * attention.width * (3 if attention.fused == "by head" else 1)
    return [(attention.queries, zeroing([slice(start, start + attention.width)]))]


def no_causal_mask(attention, head, replacement):
    """All keys alike, also those of later tokens: at the last position a head without scores attends to every key alike."""
    def change(values):
        values = copied(values)
        outputs = attention.by_head(values)[:, :, head]
        outputs.copy_(outputs[:, -1:].clone())
        return values
    return [*no_scores(attention, head, replacement), (attention.head_outputs, change)]


def other_layout(roles, in_thirds=False):
    """Zeroes a head's queries, keys, values (0, 1, 2) where they were in the other layout of a fused map."""
    def edits(attention, head, _):
        is_other = attention.groups < attention.heads if in_thirds else True  # where groups are as many as heads, thirds are right
        if not (attention.fused and is_other):
            return []
        total = attention.queries.module.weight.numel() // attention.weight.shape[1 - attention.input_axis]
        by_role = attention.fused == "by head" or in_thirds
        starts = [role * total // 3 + head * attention.width if by_role else (3 * head + role) * attention.width for role in roles]
        return [(attention.queries, zeroing([slice(start, start + attention.width) for start in starts]))]
    return edits


WRONG_CHANGES = [
    *(WrongChange("output-sliced", "zeroes columns of the output of {}, where every column mixes all heads", REPLACE, sliced(depth))
      for depth in range(4)),
    WrongChange("prompt-only", "fires in the prompt, but not in cached decoding steps", "let the hook fire on a single token too",
                removing(lambda values: values if values.shape[1] > 1 else values[:, :0])),
    WrongChange("steps-only", "fires in cached decoding steps, but not in the prompt", "let the hook fire on several tokens too",
                removing(lambda values: values if values.shape[1] == 1 else values[:, :0])),
    WrongChange("last-position-only", "changes the last position only", "index all positions", removing(lambda values: values[:, -1:])),
    WrongChange("first-row-only", "changes the first row of the batch only", "index all rows", removing(lambda values: values[:1])),
    WrongChange("before-softmax", "masks before the softmax, so that all visible keys get equal attention",
                f"mask after the softmax, or {REPLACE}", no_scores),
    WrongChange("before-softmax", "masks before the softmax, so that all keys get equal attention, later ones too",
                f"mask after the softmax, or {REPLACE}", no_causal_mask),
    *(WrongChange("fused-layout", "takes {} to be laid out differently than it is",
                  f"see which comes first, heads or queries, keys and values; or {REPLACE}", other_layout(roles, in_thirds))
      for roles in ([2], [0, 1, 2]) for in_thirds in (False, True)),
]
REMOVAL = WrongChange("", "", "", removing(lambda values: values))


@contextlib.contextmanager
def applied(change, places, attentions, replacements):
    """Runs a model with a change at these places; yields the names of the hooked modules.

    `replacements` holds the constants that stand for a head's output, `[width]`; 0 for others.
    """
    handles, names = [], []
    try:
        for kind, layer, head in places:
            for point, edit in change.edits(attentions[kind, layer], head, replacements.get((kind, layer, head), ZERO)):
                handles.append(point.edit(edit))
                names.append(point.name)
        yield names
    finally:
        for handle in handles:
            handle.remove()
