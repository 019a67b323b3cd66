"""Does a hook remove the heads that it should? The logits of candidates decide; `hypotheses` lists what hooks do instead."""
import contextlib
import dataclasses
import re

import torch

from .families import AblationError
from .hypotheses import REMOVAL, WRONG_CHANGES, WRONG_HEADS, WrongHeads, applied
from .runs import PROMPT, STEPS, evaluating, runner
from .witness import Witness, footprint


@dataclasses.dataclass(frozen=True)
class AblationCheck:
    """What a hook does: `print` it for a sentence."""
    ok: bool  # the logits are those of the true removal
    faults: tuple  # names of what the hook does instead; several if these tokens cannot tell them apart
    text: str
    remedy: str
    gap: float  # RMS difference of logits between the hook and the true removal
    effect: float  # RMS difference of logits between the full model and the true removal
    tolerance: float  # the largest gap that counts as equal

    def __str__(self):
        verdict = " or ".join(self.faults) or "equal"
        return f"{verdict}: {self.text}" + (f"\nRemedy: {self.remedy}" if self.remedy else "")


def check_ablation(model, context_manager, heads, tokens=None):
    """Compares the logits under a hook with those after the true removal of heads; see `headcount.check_ablation`."""
    run = runner(model)
    places = places_of(heads, run.attentions)
    tokens = check_tokens(run.random_tokens() if tokens is None else tokens)
    with evaluating(run.module):
        return Comparison(run, places, tokens).of(context_manager)


def places_of(heads, attentions):
    """`(attention type, layer, head)`, counted from 0, of names such as `self:2:4` or of pairs, counted from 1."""
    kinds = sorted({kind for kind, _ in attentions})
    places = []
    for given in heads.split("+") if isinstance(heads, str) else list(heads):
        parts = given.split(":") if isinstance(given, str) else [*given] if isinstance(given, (tuple, list)) else []
        kind, layer, head = parts if len(parts) == 3 else (kinds[0], *parts) if len(parts) == 2 and len(kinds) == 1 else (None,) * 3
        if kind not in kinds or not all(re.fullmatch(r"\d+", str(number)) for number in (layer, head)):
            example = f"`{kinds[-1]}:2:4`"
            raise AblationError(f"no head {given!r}: write {example} for head 4 of layer 2, counted from 1; types: {', '.join(kinds)}")
        layer, head = int(layer), int(head)
        layers = max(number for other, number in attentions if other == kind) + 1
        if not 1 <= layer <= layers:
            raise AblationError(f"no layer {layer} in `{kind}`: layers are numbered 1 to {layers}")
        if not 1 <= head <= (most := attentions[kind, layer - 1].heads):
            raise AblationError(f"no head {head} in layer {layer} of `{kind}`: heads are numbered 1 to {most}")
        places.append((kind, layer - 1, head - 1))
    if not places:
        raise AblationError("no heads to check: name at least one, such as `self:2:4`")
    return places


def check_tokens(tokens):
    if not (torch.is_tensor(tokens) and tokens.dim() == 2 and len(tokens) > 1 and tokens.shape[1] > PROMPT):
        raise AblationError(f"tokens must be a tensor of at least 2 rows of at least {PROMPT + 1} token identifiers")
    return tokens[:, :PROMPT + STEPS]


def named(places):
    return ", ".join(f"{kind}:{layer + 1}:{head + 1}" for kind, layer, head in places)


class Comparison:
    """The runs that a hook is compared with."""

    def __init__(self, run, places, tokens):
        self.run, self.places, self.tokens = run, places, tokens.to(next(run.module.parameters()).device)
        self.call, self.attentions, self.replacements = run.module, run.attentions, {}
        self.full = self.logits()
        if not self.full.isfinite().all():
            raise AblationError("the model's own logits are not finite: load it in float32")
        with removed(places, run.attentions):
            self.removed = self.logits()
        self.effect = rms(self.full - self.removed)
        # Two correct removals differ by rounding only, and so much is equal: this one subtracts from the projection's output.
        with subtracted(places, run.attentions):
            noise = rms(self.logits() - self.removed)
        self.tolerance = max(8 * noise, 16 * torch.finfo(self.removed.dtype).eps * rms(self.removed))

    def logits(self, call=None):
        """Logits of all positions as one list of numbers."""
        parts = self.run.logits(call or self.call, self.tokens)
        return torch.cat([part.flatten() for part in parts])

    def of(self, ablation):
        names = named(self.places)
        if self.effect <= 4 * self.tolerance:
            return self.answer(self.removed, "undecidable", f"removing {names} changes the logits no more than rounding does",
                               "pass `tokens` of a text where the heads matter, or load the model in float32")
        before = footprint(self.run.module)
        with self.run.ablated(ablation) as call, Witness(self.run, footprint(self.run.module) - before) as witness:
            given = self.logits(call)
        if not self.is_near(self.logits(), self.full):
            return self.answer(given, "never-undone", "the model still differs after the context manager has ended",
                               "remove hooks and restore weights at the end (try: yield; finally: handle.remove())")
        if not given.isfinite().all():
            return self.answer(given, "before-softmax", "logits are not finite, as after a softmax over scores that are all -inf",
                               "mask after the softmax, or replace {}")
        self.replacements = witness.constants()
        if self.is_near(given, self.removed) or self.is_near(given, self.candidate(REMOVAL, self.places)):
            is_zero = self.is_near(given, self.removed)
            return self.answer(given, "", f"the hook removes {names} ({'zeros' if is_zero else 'constants, such as means,'} in their place)")
        if self.is_near(given, self.full):
            return self.answer(given, *witness.why_nothing_happens())
        if found := self.explained(given):
            firsts = {fault: one for one in reversed(found) for fault in one[:1]}  # one text of each fault
            faults, texts, remedies = zip(*reversed(firsts.values()))
            return self.answer(given, faults, f"instead of removing {names}, the hook {'; or it '.join(texts)}", "; or ".join(remedies))
        return self.answer(given, "unknown", f"logits differ by {rms(given - self.removed):.2g} (RMS) from those without {names}; "
                           f"the removal itself changes them by {self.effect:.2g}", "replace {} and nothing else")

    def answer(self, given, faults, text, remedy=""):
        remedy = remedy.replace("{}", " and ".join(self.attentions[place[:2]].place(place[2]) for place in self.places))
        faults = (faults,) if isinstance(faults, str) and faults else tuple(faults)
        return AblationCheck(not faults, faults, text, remedy, rms(given - self.removed), self.effect, self.tolerance)

    def is_near(self, given, candidate):
        return rms(given - candidate) <= self.tolerance

    def candidate(self, change, places):
        with applied(change, places, self.attentions, self.replacements) as names:
            return self.logits() if names else self.full

    def explained(self, given):
        """Name, text and remedy of each hypothesis with the given logits: one mistake if that is enough, else two."""
        with Witness(self.run, set()) as untouched:
            self.logits()
        measured = sorted(self.replacements.keys() - untouched.constants().keys())
        right = [(None, self.places)]
        wrong = [(one, heads) for one in WRONG_HEADS if set(heads := self.existing(one)) not in (set(), set(self.places))]
        other = [(WrongHeads("other-heads", f"takes {named(measured)}", "compare the numbers of layers and heads", None), measured)]
        rounds = (wrong, [REMOVAL]), (right, WRONG_CHANGES), (other, [REMOVAL]), (wrong, WRONG_CHANGES), (other, WRONG_CHANGES)
        for heads, changes in rounds:
            found = [self.described(one, change, places) for one, places in heads for change in changes
                     if self.explains(self.candidate(change, places), given)]
            if found:
                return found
        return []

    def existing(self, wrong):
        """The wrong heads that this model has, each once."""
        places = dict.fromkeys(wrong.heads(self.places, self.attentions))
        return [place for place in places if place[:2] in self.attentions and 0 <= place[2] < self.attentions[place[:2]].heads]

    def explains(self, candidate, given):
        return self.is_near(given, candidate) and not self.is_near(candidate, self.removed)

    def described(self, wrong, change, places):
        """Name, text and remedy of wrong heads, a wrong change, or both."""
        with applied(change, places[:1], self.attentions, {}) as modules:
            text = change.text.format(*(f"`{module}`" for module in modules))
        parts = [(one.name, words, one.remedy) for one, words in ((wrong, wrong and wrong.text), (change, text)) if one and one.name]
        return tuple(joint.join(words) for joint, words in zip((" and ", " and ", "; "), zip(*parts)))


@contextlib.contextmanager
def removed(places, attentions):
    """The true removal: the columns of the output projection that read these heads are zero."""
    kept = [(columns := attentions[kind, layer].columns(head), columns.clone()) for kind, layer, head in places]
    try:
        for columns, _ in kept:
            columns.zero_()
        yield
    finally:
        for columns, weights in kept:
            columns.copy_(weights)


@contextlib.contextmanager
def subtracted(places, attentions):
    """The true removal in another order: what the heads add to the output of the projection is subtracted from it."""
    handles = []
    try:
        for kind, layer, head in dict.fromkeys(places):
            attention, seen = attentions[kind, layer], {}
            columns = attention.columns(head).clone()
            columns = columns.T if attention.input_axis else columns  # [width, d_model]

            def keep(values, attention=attention, head=head, seen=seen):
                seen["head"] = attention.by_head(values)[:, :, head]

            handles.append(attention.head_outputs.watch(keep))
            handles.append(attention.results[0].edit(lambda values, seen=seen, columns=columns: values - seen["head"] @ columns))
        yield
    finally:
        for handle in handles:
            handle.remove()



def rms(values):
    return values.double().square().mean().sqrt().item()
