//! `config.json` of a classifier, which determines its tensors and their shapes.
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use heads::{Attention, HeadId, HeadLayout, HeadSet, LayerShape};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use words::excerpt;

use super::{ImageShape, ImageSize};
use crate::buckets::DebertaBuckets;
use crate::config::ModelConfig;
use crate::language_model::{LanguageConfig, SLIDING};
use crate::limits::{EPSILONS, check_counts, check_divides, check_inventory, check_range, check_rates};
use crate::parts::{self, Activation, Inventory, Projections};
use crate::pruned_heads::{PrunedHeads, joined, named};
use crate::rotary::normalise_rotary_keys;
use crate::storage::Storage;
use crate::tables::{BERT, CLASSIFIERS};
use crate::tables::{Classified, ClassifierFamily, ClassifierHead, DistanceNames, PositionStart};
use crate::{DropoutRates, Error, checkpoint};

/// Configuration of a classifier, under the names that Hugging Face transformers uses for BERT.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassifierConfig {
    /// The model's family.
    #[serde(skip, default = "bert")]
    pub family: &'static ClassifierFamily,
    /// The family's name.
    pub model_type: String,
    /// The class that transformers loads the folder into.
    #[serde(default)]
    pub architectures: Vec<String>,
    /// Size of the vocabulary.
    pub vocab_size: i64,
    /// Width of the residual stream.
    pub hidden_size: i64,
    /// Width of embeddings, if the family projects them to the residual stream; defaults to `hidden_size`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding_size: Option<i64>,
    /// Number of layers.
    pub num_hidden_layers: usize,
    /// Heads per layer.
    pub num_attention_heads: usize,
    /// Width of the feed-forward layers.
    pub intermediate_size: i64,
    /// Activation of the feed-forward layers.
    pub hidden_act: Activation,
    /// Rows of the position table.
    pub max_position_embeddings: i64,
    /// Number of segment types; 2 for text pairs.
    pub type_vocab_size: i64,
    /// Added to the variance in layer norms.
    #[serde(default = "epsilon")]
    pub layer_norm_eps: f64,
    /// Standard deviation of initial weights.
    #[serde(default = "initializer_range")]
    pub initializer_range: f64,
    /// DeBERTa's buckets of distances on each side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position_buckets: Option<i64>,
    /// The distance in DeBERTa's last bucket; below 1, `max_position_embeddings` is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_relative_positions: Option<i64>,
    /// Additional keys, of families with language model layers and of image models.
    #[serde(flatten)]
    pub options: ClassifierOptions,
    /// Dropout on embeddings and on the output of each sublayer, in training.
    #[serde(default = "dropout")]
    pub hidden_dropout_prob: f64,
    /// Dropout on attention weights, in training.
    #[serde(default = "dropout")]
    pub attention_probs_dropout_prob: f64,
    /// Dropout before the classification head, in training; defaults to the dropout of hidden states.
    #[serde(default)]
    pub classifier_dropout: Option<f64>,
    /// Padding token.
    #[serde(default)]
    pub pad_token_id: u32,
    /// `absolute`: learned positions; nothing else is supported.
    #[serde(default = "absolute")]
    pub position_embedding_type: String,
    /// `single_label_classification`, or `regression` for one output; by default the number of outputs decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem_type: Option<String>,
    /// Names of the classes by number; by default two unnamed classes, as in transformers.
    #[serde(default = "two_classes", deserialize_with = "class_names")]
    pub id2label: BTreeMap<usize, String>,
    /// Numbers of the classes by name, derived from `id2label`.
    #[serde(skip_deserializing)]
    pub label2id: BTreeMap<String, usize>,
    /// Heads that were removed from the weights, by layer, both counted from 0, as in transformers 4.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pruned_heads: PrunedHeads,
}

/// Keys that only some families have: families with language model layers, mostly under the names of these, and image models.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClassifierOptions {
    /// Base of the rotary frequencies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rope_theta: Option<f64>,
    /// Base of the rotary frequencies in layers with a sliding window; defaults to `rope_theta`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rope_local_base_freq: Option<f64>,
    /// Width of the sliding window, half of it on each side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sliding_window: Option<i64>,
    /// Every N-th layer, starting with the first, sees all tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sliding_window_pattern: Option<usize>,
    /// `sliding_attention` or `full_attention` for each layer, if not periodic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer_types: Option<Vec<String>>,
    /// True if the attention projections have biases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attention_bias: Option<bool>,
    /// True if the feed-forward layers have biases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mlp_bias: Option<bool>,
    /// Input of the classification head.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classifier_pooling: Option<Pooling>,
    /// Size of an image, in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_size: Option<ImageSize>,
    /// Side of a patch, in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch_size: Option<i64>,
    /// Channels of an image: 3 for RGB, 1 for greyscale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_channels: Option<i64>,
}

/// Input of the classification head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pooling {
    /// The first position.
    Cls,
    /// The mean of all positions.
    Mean,
}

const REGRESSION: &str = "regression";

const MAX_CLASSES: usize = 1 << 16;

fn bert() -> &'static ClassifierFamily {
    &BERT
}

fn epsilon() -> f64 {
    1e-12
}

fn initializer_range() -> f64 {
    0.02
}

fn dropout() -> f64 {
    0.1
}

fn absolute() -> String {
    "absolute".to_owned()
}

fn two_classes() -> BTreeMap<usize, String> {
    (0..2).map(|class| (class, generic_label(class))).collect()
}

/// Reads class names, which may be numbers.
fn class_names<'de, D: Deserializer<'de>>(names: D) -> Result<BTreeMap<usize, String>, D::Error> {
    let text = |(class, name)| match name {
        Value::String(name) => Ok((class, name)),
        Value::Number(name) => Ok((class, name.to_string())),
        _ => Err(D::Error::custom(format!("the name of class {class} is not text"))),
    };
    BTreeMap::<usize, Value>::deserialize(names)?.into_iter().map(text).collect()
}

/// Returns transformers' default name of a class.
fn generic_label(class: usize) -> String {
    format!("LABEL_{class}")
}

/// Names the classes if only `num_labels` is given, as transformers does.
fn name_classes(json: &mut Map<String, Value>) -> Result<(), String> {
    let counted = json.get("num_labels").filter(|count| !count.is_null());
    let (Some(count), false) = (counted, json.contains_key("id2label")) else { return Ok(()) };
    let count = count.as_u64().filter(|count| *count <= MAX_CLASSES as u64);
    let count = count.ok_or_else(|| format!("num_labels must be a number up to {MAX_CLASSES}"))?;
    let classes = (0..count as usize).map(|class| (class.to_string(), generic_label(class).into()));
    json.insert("id2label".to_owned(), Value::Object(classes.collect()));
    Ok(())
}

/// Converts `pos_att_type`, the terms of DeBERTa's scores, from a string with bars to a list, and sorts it, as the order is irrelevant.
fn list_terms(json: &mut Map<String, Value>) {
    let Some(terms) = json.get_mut("pos_att_type") else { return };
    if let Value::String(text) = terms {
        *terms = text.to_lowercase().split('|').map(str::trim).collect();
    }
    if let Value::Array(terms) = terms {
        terms.sort_by_key(|term| std::cmp::Reverse(term.to_string()));
    }
}

/// Returns true if two values are equal, numbers by value.
fn is_same(left: &Value, right: &Value) -> bool {
    left == right || left.is_number() && left.as_f64() == right.as_f64()
}

impl ClassifierConfig {
    /// Reads and validates the `config.json` of a known family. Fails if the model type is unknown or the model impossible.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let config = Self::read_pretrained(path)?;
        config.validate_labels().map_err(|fault| Error::file(path, fault))?;
        Ok(config)
    }

    /// Like [`read`](Self::read), for an encoder whose classes are not validated, since they will be replaced.
    pub fn read_pretrained(path: &Path) -> Result<Self, Error> {
        let names = |family: &ClassifierFamily| [family.model_type, family.architecture];
        let of_family = |json, family| Self::of_family(path, json, family);
        let inventory = |config: &Self| config.family.storage.inventory(&config.inventory());
        checkpoint::read_config(path, CLASSIFIERS, names, of_family, inventory)
    }

    fn of_family(
        path: &Path,
        mut json: Map<String, Value>,
        family: &'static ClassifierFamily,
    ) -> Result<Self, Error> {
        let refusal = |fault: String| Error::file(path, fault);
        if json.get("is_decoder").and_then(Value::as_bool) == Some(true) {
            return Err(refusal("is_decoder is true, but only encoders are supported".to_owned()));
        }
        let class = json.get("architectures").and_then(|classes| classes.get(0)?.as_str());
        if let Some(class) = class.filter(|class| class.ends_with("WithTeacher")) {
            let (found, wanted) = (excerpt(class), family.architecture);
            return Err(refusal(format!(
                "architectures is `{found}`, whose logits are the mean of two classification heads; only `{wanted}` is supported"
            )));
        }
        name_classes(&mut json).map_err(refusal)?;
        list_terms(&mut json);
        let mut json = family.keys.to_common(json);
        if let Some(stack) = family.stack {
            normalise_rotary_keys(&mut json, |name| stack.has(name)).map_err(refusal)?;
        }
        let supported = family.supported();
        if let Some((name, found)) = json
            .iter()
            .find(|(name, found)| supported.get(*name).is_some_and(|wanted| !is_same(found, wanted)))
        {
            let (found, wanted) = (found.to_string(), &supported[name]);
            return Err(refusal(format!("{name} is {}; only {wanted} is supported", excerpt(&found))));
        }
        let config: Self = checkpoint::parse(path, Value::Object(json))?;
        let label2id = config.id2label.iter().map(|(&class, name)| (name.clone(), class)).collect();
        let mut config = Self { family, label2id, ..config };
        if let (Some(shape), Some(names)) = (config.image(), family.names.patches) {
            shape.validate().map_err(refusal)?;
            config.max_position_embeddings = names.first.len() as i64 + shape.patches();
        }
        config.validate_sizes().map_err(refusal)?;
        Ok(config.with_period())
    }

    /// Refuses an impossible model and returns why: a number is out of range, heads do not divide the width, no head would remain, class
    /// names are not unique, or a variant is unsupported.
    pub fn validate(&self) -> Result<(), String> {
        self.validate_sizes()?;
        self.validate_labels()
    }

    fn validate_sizes(&self) -> Result<(), String> {
        if let Some(stack) = self.stack() {
            stack.validate()?;
        }
        let entry = |name| self.family.keys.own(name);
        let heads = (entry("num_attention_heads"), self.num_attention_heads);
        check_counts([(entry("num_hidden_layers"), self.num_hidden_layers), heads])?;
        check_divides(heads, (entry("hidden_size"), self.hidden_size))?;
        if let Some(DistanceNames::Embeddings { .. }) = self.family.names.distances {
            self.validate_buckets()?;
        }
        // the classes are validated separately, if at all
        let (pruned_heads, id2label) = (PrunedHeads::new(), two_classes());
        check_inventory(&Self { pruned_heads, id2label, ..self.clone() }.inventory())?;
        if i64::from(self.pad_token_id) >= self.vocab_size {
            return Err(format!("pad_token_id is not below vocab_size ({})", self.vocab_size));
        }
        if self.longest_text() < 1 {
            let (rows, pad) = (self.max_position_embeddings, self.pad_token_id);
            return Err(format!("max_position_embeddings ({rows}) is too small for pad_token_id ({pad})"));
        }
        check_rates([
            (entry("hidden_dropout_prob"), self.hidden_dropout_prob),
            (entry("attention_probs_dropout_prob"), self.attention_probs_dropout_prob),
            ("classifier_dropout", self.classifier_dropout()),
        ])?;
        check_range(EPSILONS, [(entry("layer_norm_eps"), self.layer_norm_eps)])?;
        let removed = self.layout().removed().clone();
        self.unpruned_layout().without(&removed).map_err(|fault| format!("pruned_heads: {fault}"))?;
        if self.position_embedding_type != "absolute" {
            let found = excerpt(&self.position_embedding_type);
            return Err(format!("position_embedding_type is `{found}`; only `absolute` is supported"));
        }
        Ok(())
    }

    fn validate_buckets(&self) -> Result<(), String> {
        let DebertaBuckets { buckets, furthest } = self.deberta_buckets();
        if !(2..=4096).contains(&buckets) {
            return Err(format!(
                "position_buckets is {buckets}; only distances in 2 to 4096 buckets are supported"
            ));
        }
        if furthest <= buckets / 2 + 1 {
            let least = buckets / 2 + 2;
            return Err(format!("max_relative_positions ({furthest}) must be at least {least}"));
        }
        if self.max_position_embeddings > 1 << 16 {
            let found = self.max_position_embeddings;
            return Err(format!("max_position_embeddings ({found}) must be at most 65536"));
        }
        Ok(())
    }

    fn validate_labels(&self) -> Result<(), String> {
        let classes = self.id2label.len();
        if !(1..=MAX_CLASSES).contains(&classes) {
            return Err(format!("id2label names {classes} outputs; expected 1 to {MAX_CLASSES}"));
        }
        if (self.classified(), classes) == (Classified::Tokens, 1) {
            return Err("id2label names one class, but a classifier of tokens needs at least two".to_owned());
        }
        let supported = if classes == 1 { REGRESSION } else { "single_label_classification" };
        if let Some(other) = self.problem_type.as_deref().filter(|kind| *kind != supported) {
            let found = excerpt(other);
            return Err(format!(
                "problem_type is `{found}`; only `{supported}` is supported for {classes} outputs"
            ));
        }
        if !self.id2label.keys().copied().eq(0..classes) {
            return Err(format!("id2label must number its {classes} classes from 0 to {}", classes - 1));
        }
        let distinct: BTreeSet<&String> = self.id2label.values().collect();
        if distinct.len() < classes {
            return Err("id2label gives two classes the same name".to_owned());
        }
        if let Some(label) = self.id2label.values().find(|label| label.chars().any(char::is_control)) {
            return Err(format!("id2label: `{}` contains a control character", excerpt(label)));
        }
        Ok(())
    }

    /// Returns the names of the classes, by number.
    pub fn labels(&self) -> Vec<String> {
        self.id2label.values().cloned().collect()
    }

    /// Returns true if any class has a name other than `LABEL_0`, `LABEL_1`, …
    pub fn has_label_names(&self) -> bool {
        self.id2label.iter().any(|(&class, label)| *label != generic_label(class))
    }

    /// Returns the name of the single output of a model.
    pub fn one_output() -> String {
        generic_label(0)
    }

    /// Returns true if the model predicts a number, not a class.
    pub fn has_one_output(&self) -> bool {
        self.id2label.len() == 1
    }

    /// Returns what the model classifies, from the first of `architectures`.
    pub fn classified(&self) -> Classified {
        let class = self.architectures.first();
        match self.family.names.patches {
            Some(_) => Classified::Images,
            None if class.is_some_and(|class| class.ends_with(Classified::Tokens.suffix())) => {
                Classified::Tokens
            }
            None => Classified::Texts,
        }
    }

    /// Returns the configuration for classifying texts or tokens.
    pub fn classifying(self, classified: Classified) -> Self {
        Self { architectures: vec![self.family.architecture_of(classified)], ..self }
    }

    /// Returns the classification head.
    pub fn head(&self) -> &'static ClassifierHead {
        self.family.head_of(self.classified())
    }

    /// Returns the configuration with these classes, or with one output.
    pub fn with_labels(self, labels: &[String]) -> Self {
        Self {
            architectures: vec![self.family.architecture_of(self.classified())],
            problem_type: (labels.len() == 1).then(|| REGRESSION.to_owned()),
            id2label: labels.iter().cloned().enumerate().collect(),
            label2id: labels.iter().cloned().zip(0..).collect(),
            ..self
        }
    }

    /// Returns the dropout before the classification head.
    pub fn classifier_dropout(&self) -> f64 {
        self.classifier_dropout.unwrap_or(self.hidden_dropout_prob)
    }

    /// Returns the row of the position table for the first token.
    fn first_position(&self) -> i64 {
        self.uncounted().map_or(0, |padding| padding + 1)
    }

    /// Returns the token that has no position, wherever it occurs; its row precedes the first token's.
    pub fn uncounted(&self) -> Option<i64> {
        match self.family.positions {
            PositionStart::Zero => None,
            PositionStart::AfterPadding => Some(i64::from(self.pad_token_id)),
            PositionStart::AfterOne => Some(1),
        }
    }

    /// Returns the shape of images; `None` for text models.
    pub fn image(&self) -> Option<ImageShape> {
        self.family.names.patches?;
        ImageShape::of(&self.options)
    }

    /// Returns the maximum text length in tokens, or the number of positions of an image.
    pub fn longest_text(&self) -> i64 {
        self.max_position_embeddings - self.first_position()
    }

    /// Returns DeBERTa's buckets of distances.
    pub fn deberta_buckets(&self) -> DebertaBuckets {
        let furthest = self.max_relative_positions.filter(|&furthest| furthest > 0);
        DebertaBuckets {
            buckets: self.position_buckets.unwrap_or(-1),
            furthest: furthest.unwrap_or(self.max_position_embeddings),
        }
    }

    /// Returns the width of embeddings, and whether they are projected to the residual stream.
    pub fn embedding_width(&self) -> (i64, bool) {
        let (own, width) = (self.embedding_size.unwrap_or(self.hidden_size), self.hidden_size);
        match self.family.names.embedding_map {
            // a family with shared layers always has the projection
            Some(_) => (own, own != width || self.family.shares_layers),
            None => (width, false),
        }
    }

    /// Returns the configuration of the layers as a language model, which has the same keys.
    pub fn stack(&self) -> Option<LanguageConfig> {
        let family = self.family.stack?;
        let mut json = serde_json::to_value(self).expect("a configuration is JSON");
        json["rms_norm_eps"] = self.layer_norm_eps.into();
        json["tie_word_embeddings"] = true.into();
        let stack: LanguageConfig = serde_json::from_value(json).expect("all entries are there");
        Some(LanguageConfig { family, ..stack })
    }

    /// Replaces `layer_types` with a period, as in transformers 4, if the layers are periodic.
    fn with_period(mut self) -> Self {
        let options = &mut self.options;
        let Some(types) = options.layer_types.take() else { return self };
        let is_one = |period: &usize| {
            types.iter().enumerate().all(|(layer, name)| (name == SLIDING) != layer.is_multiple_of(*period))
        };
        match options.sliding_window_pattern.into_iter().chain(1..=types.len()).find(is_one) {
            Some(period) => options.sliding_window_pattern = Some(period),
            None => options.layer_types = Some(types),
        }
        self
    }

    /// Returns the number of a layer, counted from 0, in tensor names.
    pub fn stored_layer(&self, layer: usize) -> usize {
        if self.family.shares_layers { 0 } else { layer }
    }

    fn unpruned_layout(&self) -> HeadLayout {
        let (layers, heads) = (self.num_hidden_layers, self.num_attention_heads);
        let shape = LayerShape::plain(layers, heads, self.hidden_size);
        let layout = HeadLayout::new([(Attention::SelfAttention, shape)]);
        if self.family.shares_layers { layout.of_one_layer() } else { layout }
    }
}

impl ModelConfig for ClassifierConfig {
    fn inventory(&self) -> Inventory {
        parts::inventory(|tensors| self.parts(tensors))
    }

    fn storage(&self) -> &'static Storage {
        &self.family.storage
    }

    fn read_layout(path: &Path) -> Result<HeadLayout, Error> {
        Ok(Self::read_pretrained(path)?.layout())
    }

    fn write(&self, path: &Path) -> Result<(), Error> {
        let supported = self.family.supported();
        if supported.is_empty() {
            return self.family.keys.write(path, self);
        }
        let mut json = serde_json::to_value(self).map_err(|fault| Error::json(path, &fault))?;
        let entries = json.as_object_mut().into_iter();
        entries.for_each(|entries| {
            entries.extend(supported.clone().into_iter().filter(|(_, value)| !value.is_null()))
        });
        self.family.keys.write(path, &json)
    }

    fn layout(&self) -> HeadLayout {
        // if layers share weights, transformers lists the heads of the first layer only
        let turns = if self.family.shares_layers { self.num_hidden_layers } else { 1 };
        let of_turns = |id: HeadId| {
            let further =
                (1..turns).map(move |turn| HeadId::from_index(id.attention(), turn, id.head_index()));
            std::iter::once(id).chain(further)
        };
        let pruned = named(Attention::SelfAttention, &self.pruned_heads);
        self.unpruned_layout().with_removed(pruned.flat_map(of_turns).collect())
    }

    fn dropout(&self) -> DropoutRates {
        DropoutRates {
            hidden: self.hidden_dropout_prob,
            attention: self.attention_probs_dropout_prob,
            classifier: self.classifier_dropout(),
        }
    }

    fn projections(&self, _: Attention, layer: usize) -> Projections {
        let family = self.family;
        match family.stack {
            Some(stack) => stack.names.layer(layer).projections,
            None => family.names.layer(self.stored_layer(layer)).projections,
        }
    }

    fn without_heads(&self, heads: &HeadSet) -> Self {
        let mut pruned_heads = joined(Attention::SelfAttention, &self.pruned_heads, heads);
        pruned_heads.retain(|&layer, _| self.stored_layer(layer) == layer);
        Self { pruned_heads, ..self.clone() }
    }
}
