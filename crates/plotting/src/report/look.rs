//! The page of one text: the attention of every head on it, and what is known about the head. The papers have no such page.
use std::collections::BTreeMap;
use std::path::Path;

use crate::findings::{Adjustment, Criterion, Folders, LeftOut, Source, SubjectResults};
use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use minijinja::{Value, context};
use records::verdicts::ALPHA;
use records::{Attention, AttentionMaps, HeadId};
use serde_json::json;
use words::{visible, warn};

use crate::report::view::all_heads::Heads;
use crate::report::write;

/// Maximum number of weights on a page, one byte each: browsers cannot handle longer texts.
const MAX_WEIGHTS: usize = 100_000_000;

/// A text with the attention of all heads.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// Name of the setup.
    pub subject: &'a str,
    /// The text.
    pub text: &'a str,
    /// The second text of a pair, or the given translation.
    pub second: Option<&'a str>,
    /// The model's answer.
    pub answer: &'a str,
    /// Masked heads in words; empty if none.
    pub masked: &'a str,
    /// SHA-256 of the model's weights, if known.
    pub weights: Option<&'a str>,
    /// Heads of the model.
    pub heads: &'a [HeadId],
    /// Attention weights of each attention type.
    pub maps: &'a [AttentionMaps],
}

impl Look<'_> {
    /// Writes the page with the known results on each head. Fails if there are more weights than a browser can handle.
    pub fn write(&self, folders: &Folders, path: &Path) -> Result<()> {
        let weights: usize = self.maps.iter().flat_map(|maps| &maps.layers).map(Vec::len).sum();
        ensure!(
            weights <= MAX_WEIGHTS,
            "the page would contain {weights} attention weights, but browsers can show at most {MAX_WEIGHTS}: give a shorter text"
        );
        let known = Known::read(folders, self);
        let data = json!({
            "maps": self.maps.iter().map(packed).collect::<Vec<_>>(),
            "facts": known.facts,
            "nothing": known.nothing,
        });
        // only `</script` and comments could end the script
        let data = data.to_string().replace('<', "\\u003c");
        let maps: Vec<_> = self.maps.iter().map(|maps| self.of_type(maps, &known)).collect();
        let page = context! {
            maps,
            subject => self.subject,
            texts => self.texts(),
            ways => self.ways(),
            notes => known.notes,
            is_judged => !known.verdicts.is_empty(),
            is_broad => self.heads.iter().any(|head| head.head_number() > 16),
            data => Value::from_safe_string(data),
        };
        write::look(page, path)
    }

    fn is_translator(&self) -> bool {
        self.maps.iter().any(|maps| maps.attention == Attention::EncDec)
    }

    /// Returns the text, the second text and the answer with their headings.
    fn texts(&self) -> Vec<(&str, &str)> {
        let (second, answer) =
            match (self.is_translator(), self.second, self.maps.iter().any(|maps| maps.is_causal)) {
                (true, Some(_), _) => ("Given translation", ""),
                (true, None, _) => ("", "Generated translation"),
                (false, _, true) => ("", "Generated continuation"),
                (false, ..) => ("Second text", "Prediction"),
            };
        let texts = [
            ("Text", self.text),
            (second, self.second.unwrap_or_default()),
            (answer, self.answer),
            ("Masked", self.masked),
        ];
        texts.into_iter().filter(|(name, text)| !name.is_empty() && !text.is_empty()).collect()
    }

    /// Explains the rows of the maps.
    fn ways(&self) -> &'static str {
        if self.is_translator() {
            "Rows of enc-dec are the predicted tokens of the translation; rows of dec-dec are the tokens that the decoder reads."
        } else {
            "Rows are attending tokens, columns are attended tokens; each row adds up to 1."
        }
    }

    /// Returns the cells of the small maps of an attention type, layer by layer; removed heads have none.
    fn of_type(&self, maps: &AttentionMaps, known: &Known) -> Value {
        let own = |layer: usize| {
            let of_layer =
                |head: &&HeadId| head.attention() == maps.attention && head.layer_number() == layer;
            let mut cells: Vec<Option<Value>> = Vec::new();
            for head in self.heads.iter().filter(of_layer) {
                cells.resize(head.head_number() - 1, None);
                let (name, verdict) = (head.to_string(), known.verdicts.get(&head.to_string()));
                cells.push(Some(context! { name, verdict, number => head.head_number() }));
            }
            cells
        };
        let layers: Vec<_> = (1..=maps.layers.len()).map(own).collect();
        let numbers: Vec<_> = (1..=layers.iter().map(Vec::len).max().unwrap_or_default()).collect();
        let (attention, description) = (maps.attention.name(), description(maps.attention));
        context! { attention, description, layers, numbers }
    }
}

fn description(attention: Attention) -> &'static str {
    match attention {
        Attention::EncEnc => "the source attends to itself",
        Attention::EncDec => "the translation attends to the source",
        Attention::DecDec => "the translation attends to itself",
        Attention::SelfAttention => "the text attends to itself",
    }
}

/// Encodes maps for the script: a weight w is the byte 255 √w, which keeps small ones distinct; causal queries omit later keys.
fn packed(maps: &AttentionMaps) -> serde_json::Value {
    let [queries, keys] = [&maps.queries, &maps.keys].map(|tokens| tokens.iter().map(|token| label(token)));
    let byte = |&weight: &f32| (weight.clamp(0.0, 1.0).sqrt() * 255.0).round() as u8;
    let layer = |weights: &Vec<f32>| {
        let rows = weights.chunks(maps.keys.len()).enumerate();
        let seen = |query: usize| if maps.is_causal { query + 1 } else { maps.keys.len() };
        let bytes: Vec<u8> =
            rows.flat_map(|(row, keys)| keys[..seen(row % maps.queries.len())].iter().map(byte)).collect();
        BASE64_STANDARD.encode(bytes)
    };
    json!({
        "attention": maps.attention.name(),
        "queries": queries.collect::<Vec<_>>(),
        "keys": keys.collect::<Vec<_>>(),
        "isCausal": maps.is_causal,
        "layers": maps.layers.iter().map(layer).collect::<Vec<_>>(),
    })
}

/// Formats a token for display, without surrounding spaces unless it consists only of spaces.
fn label(token: &str) -> String {
    let inner = token.trim_matches(' ');
    let shown = if inner.is_empty() { token.replace(' ', "\u{2423}") } else { inner.to_owned() };
    visible(&shown.replace('\n', "\u{21b5}"))
}

/// Results on the heads.
#[derive(Debug, Default)]
struct Known {
    /// Names and values of facts on each head.
    facts: BTreeMap<String, Vec<(String, String)>>,
    /// Verdict on each tested head.
    verdicts: BTreeMap<String, String>,
    notes: Vec<String>,
    /// Sentence shown if there are no facts.
    nothing: String,
}

impl Known {
    fn read(folders: &Folders, look: &Look<'_>) -> Self {
        let nothing = |nothing: String| Self { nothing, ..Self::default() };
        let unmeasured = || nothing("This head has no measurements.".to_owned());
        if !folders.results.join(look.subject).is_dir() {
            return unmeasured();
        }
        let mut left_out = LeftOut::default();
        let mut subject = SubjectResults::read(folders, look.subject, &mut left_out);
        subject.read_heads(&Source::subject(folders, look.subject), &mut left_out);
        left_out.faults.iter().for_each(|fault| warn(fault));
        let Some(file) = subject.heads_file() else { return unmeasured() };
        let weights = file.signature.as_ref().and_then(|signature| signature.identity.weights.as_deref());
        if weights.zip(look.weights).is_some_and(|(theirs, own)| theirs != own) {
            return nothing(
                "The results of this setup come from different weights than this model's and are not shown."
                    .to_owned(),
            );
        }
        let criterion = Criterion { alpha: ALPHA, adjustment: Adjustment::None };
        let Some(Heads { table, .. }) = Heads::of(&subject, criterion) else { return unmeasured() };
        let mut known = unmeasured();
        for row in &table.rows {
            let cells = table.columns.iter().zip(&row.cells).filter(|(_, cell)| !cell.text.is_empty());
            let facts = cells.map(|(name, cell)| (name.clone(), words::with_minus(&visible(&cell.text))));
            let facts: Vec<_> = facts.collect();
            let verdict =
                facts.iter().find(|(name, _)| name == "verdict").map(|(_, verdict)| verdict.clone());
            known.verdicts.extend(verdict.map(|verdict| (row.label.text.clone(), verdict)));
            known.facts.insert(row.label.text.clone(), facts);
        }
        Self { notes: table.summary.into_iter().chain(table.remarks).collect(), ..known }
    }
}
