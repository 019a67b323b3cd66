"""What fsmt translates with every token at its own position: fsmt-output.json.

    python make_golden_fsmt_output.py [FOLDER]

Needs torch and transformers 4.57.1, whose `generate` cuts the decoder's input to its last token before positions are counted, so
that all tokens behind the first get the position of the first: `greedy` and `beam5` of fsmt.json say what comes of that, and
not what the model's own forward pass, or fairseq, gives. Here each step runs over the whole output so far; without `input_ids`
the forward pass would leave out the causal mask.
"""
import json, pathlib, sys
import torch
from transformers import FSMTForConditionalGeneration

FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
model = FSMTForConditionalGeneration.from_pretrained(FOLDER / "fsmt", attn_implementation="eager").eval()
for stack in (model.model.encoder, model.model.decoder):
    table = stack.embed_positions
    table.make_weight(table.num_embeddings, table.embedding_dim, table.padding_idx)


def whole_output(decoder_input_ids, attention_mask=None, encoder_outputs=None, **_):
    beams = decoder_input_ids.shape[0] // source.shape[0]
    return {"input_ids": source.repeat_interleave(beams, 0), "decoder_input_ids": decoder_input_ids, "attention_mask": attention_mask,
            "encoder_outputs": encoder_outputs, "past_key_values": None, "use_cache": False}


model.prepare_inputs_for_generation = whole_output
source = torch.tensor(json.loads((FOLDER / "fsmt.json").read_text())["source"]).long()
common = dict(input_ids=source, attention_mask=(source != 1).long(), max_new_tokens=15, do_sample=False, use_cache=False)
record = {"greedy": model.generate(**common, num_beams=1).tolist(),
          "beam5": model.generate(**common, num_beams=5, early_stopping=True, length_penalty=1.0).tolist()}
(FOLDER / "fsmt-output.json").write_text(json.dumps(record) + "\n")
