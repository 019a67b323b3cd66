//! Greedy decoding with a key-value cache: to time decoding, and to see what a masked model generates.
use tch::{Tensor, no_grad};

use super::LanguageModel;
use crate::attention::{KeyValue, Visible};
use crate::block::Block;
use crate::model::GatedModel;
use crate::{Attention, Error, Gates, ModelDropout, to_vec};

/// When a continuation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Before an EOS token: [`ends`](super::LanguageConfig::ends).
    AtEnd,
    /// After `count` tokens.
    Never,
}

impl LanguageModel {
    /// Continues texts of one length greedily; returns the new tokens of each.
    ///
    /// - `prompts`: tokens of each text
    /// - `count`: maximum number of new tokens
    /// - `gates`: one row, or one for each text
    ///
    /// # Errors
    /// If the texts become longer than the model's positions, a token is unknown, or the model computes NaN.
    ///
    /// # Panics
    /// If a prompt is empty, prompts differ in length, or `gates` has a different number of rows.
    pub fn continue_greedily(
        &self,
        prompts: &[&[u32]],
        count: usize,
        stop: Stop,
        gates: &Gates,
    ) -> Result<Vec<Vec<u32>>, Error> {
        let Some(first) = prompts.first() else { return Ok(Vec::new()) };
        assert!(
            !first.is_empty() && prompts.iter().all(|prompt| prompt.len() == first.len()),
            "of one length"
        );
        assert!(
            [1, prompts.len()].contains(&(gates.rows() as usize)),
            "one row of gates, or one for each text"
        );
        let (length, positions) = (first.len() + count, self.config.max_position_embeddings as usize);
        if length > positions {
            return Err(Error::too_long("text", length, positions));
        }
        let size = self.config.vocab_size;
        if let Some(&id) = prompts.iter().copied().flatten().find(|&&id| i64::from(id) >= size) {
            return Err(Error::out_of_table("token", id, size));
        }
        let ids: Vec<i64> = prompts.iter().copied().flatten().map(|&id| i64::from(id)).collect();
        let ids = Tensor::from_slice(&ids).view([prompts.len() as i64, -1]).to_device(self.options().1);
        let made = no_grad(|| self.extend(&ids, count, stop, gates))?;
        let ends = self.config.ends();
        let cut = |text: Vec<u32>| {
            let is_end = |token: &u32| stop == Stop::AtEnd && ends.contains(token);
            text.iter().copied().take_while(|token| !is_end(token)).collect()
        };
        Ok(made.into_iter().map(cut).collect())
    }

    /// Generates up to `count` tokens after `ids`, `[batch, position]`.
    fn extend(&self, ids: &Tensor, count: usize, stop: Stop, gates: &Gates) -> Result<Vec<Vec<u32>>, Error> {
        let (batch, length) = ids.size2().unwrap_or_default();
        let room = |layer: &Block| layer.attention.room(batch, length + count as i64, self.options());
        let mut cache = Cache { used: 0, layers: self.layers.iter().map(room).collect() };
        let mut made = vec![Vec::with_capacity(count); batch as usize];
        let mut read = ids.shallow_clone();
        for step in 0..count {
            let hidden = self.step(&read, &mut cache, gates); // [batch, d_model]
            let logits = self.logits(&hidden);
            if logits.isnan().any().int64_value(&[]) != 0 {
                return Err(Error::NotANumber);
            }
            let best = logits.argmax(-1, true); // [batch, 1]
            for (text, token) in made.iter_mut().zip(to_vec::<i64>(&best)) {
                text.push(token as u32);
            }
            let ends = self.config.ends();
            if step + 1 == count
                || (stop == Stop::AtEnd && made.iter().all(|text| text.iter().any(|id| ends.contains(id))))
            {
                break;
            }
            read = best;
        }
        Ok(made)
    }

    /// Returns the normalised hidden state at the last of these positions, `[batch, d_model]`.
    ///
    /// `ids`: `[batch, position]`, after the cached positions; they join the cache
    fn step(&self, ids: &Tensor, cache: &mut Cache, gates: &Gates) -> Tensor {
        let (first, count) = (cache.used, ids.size()[1]);
        let (angles, mut x) = (self.angles(first, count), self.embed(ids, first, &ModelDropout::OFF));
        cache.used += count;
        let here = if count == 1 { gates.at(first) } else { None };
        let gates = here.as_ref().unwrap_or(gates);
        for (index, layer) in self.layers.iter().enumerate() {
            let gate = gates.of(Attention::SelfAttention, index);
            let mut attending = layer.attending(&x, count, layer.angles(&angles));
            let all = cache.append(index, first, &attending.memory);
            // In the first pass each position sees earlier ones, later a single one sees all, within the layer's window.
            let bias = layer
                .window
                .filter(|&window| first == 0 && window < count)
                .map(|window| self.bias(count, Some(window)));
            let visible = match &bias {
                Some(bias) => Visible::Under(bias),
                None if first == 0 => Visible::Past,
                None => Visible::All,
            };
            if first > 0 {
                attending.memory = nearest(all, layer.window);
            }
            let context = layer.context(attending, &visible, gate, &ModelDropout::OFF);
            x = layer.finish(&x, &layer.attention.merge(context, gate), &ModelDropout::OFF);
        }
        self.normalised(&x.narrow(1, count - 1, 1)).squeeze_dim(1)
    }

    /// Returns the multiply-adds of [`continue_greedily`](Self::continue_greedily) for one text, prompt included.
    pub fn continuation_multiply_adds(&self, prompt: u64, count: u64) -> u64 {
        let first: u64 = self.layers.iter().map(|layer| layer.causal_multiply_adds(prompt)).sum();
        let later = |place| self.layers.iter().map(|layer| layer.step_multiply_adds(place)).sum::<u64>();
        let steps: u64 = (prompt + 1..prompt + count).map(later).sum();
        first + steps + count * self.output.table.numel() as u64
    }
}

/// Key-value cache with room for later positions: `[batch, key-value heads, positions, d_head]`.
struct Cache {
    used: i64,
    layers: Vec<KeyValue>,
}

impl Cache {
    /// Writes keys and values of positions from `first` on; returns all so far.
    fn append(&self, layer: usize, first: i64, newest: &KeyValue) -> KeyValue {
        let write = |all: &Tensor, new: &Tensor| {
            all.narrow(2, first, new.size()[2]).copy_(new);
            all.narrow(2, 0, self.used)
        };
        let KeyValue { key, value } = &self.layers[layer];
        KeyValue { key: write(key, &newest.key), value: write(value, &newest.value) }
    }
}

/// Returns the last positions, within the layer's window.
fn nearest(KeyValue { key, value }: KeyValue, window: Option<i64>) -> KeyValue {
    let count = key.size()[2];
    let seen = window.map_or(count, |window| window.min(count));
    let last = |all: &Tensor| all.narrow(2, count - seen, seen);
    KeyValue { key: last(&key), value: last(&value) }
}
