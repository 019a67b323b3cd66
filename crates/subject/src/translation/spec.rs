//! Setup file of a translator.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use core_masking::families::MARIAN;
use core_masking::{Activation, BeamSearch, HeadLayout, ModelConfig, Stopping, TranslatorConfig};
use corpus::checksum;
use corpus::parallel::ParallelText;
use corpus::sentence_tokenizer::SentenceTokenizer;
use corpus::splits::BadRows;
use corpus::splits::check;
use corpus::splits::translation::{FilePair, Grammar};
use corpus::tokenizer::SubwordTokenizer;
use corpus::trees::Tree;
use records::StandsFor;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use stats::bleu::BleuTokenizer;
use stats::{Metric, MetricName};

use crate::error::Error;
use crate::spec::{check_fetched, check_sizes, check_training, from_scratch, no_split, section};
use crate::task::{Outline, Spec};

section! {
    /// A translator as its TOML file describes it.
    setup TranslationSpec: DataSpec, ModelSpec, TrainingSpec {
        /// Results of the paper to compare with. Not used here, but parsed so that mistakes are found at once.
        #[serde(default, rename = "stands_for")]
        _stands_for: Option<StandsFor>,
        /// Subword tokeniser, trained on the training split.
        pub tokenizer: Option<TokenizerSpec>,
        #[serde(default)]
        pub decoding: DecodingSpec,
        #[serde(default)]
        pub score: TextScoreSpec,
    }
}

/// Metric to report.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TextScoreSpec {
    /// `bleu`, `chrf`, `rouge1`, `rouge2`, `rougeL` (or `rouge` for short) or `exact-match`.
    pub metric: TextScore,
    /// BLEU's tokenisation, by sacreBLEU's name; defaults to `13a`.
    #[serde(deserialize_with = "tokenizer_of_bleu")]
    pub tokenize: Option<BleuTokenizer>,
}

fn tokenizer_of_bleu<'de, D: Deserializer<'de>>(from: D) -> Result<Option<BleuTokenizer>, D::Error> {
    let name = String::deserialize(from)?;
    BleuTokenizer::named(&name).map(Some).ok_or_else(|| {
        let unknown = D::Error::unknown_variant(&name, &BleuTokenizer::NAMES);
        let needs = match name.as_str() {
            "ja-mecab" | "ko-mecab" => "a dictionary of MeCab",
            "spm" | "flores101" | "flores200" | "spBLEU-1K" => "a SentencePiece model",
            _ => return unknown,
        };
        let unknown = unknown.to_string(); // ends with a line break
        let unknown = unknown.trim_end();
        D::Error::custom(format!(
            "{unknown}; sacreBLEU's `{name}` needs {needs}, which is not built in: \"char\" and score.metric = \"chrf\" \
             score texts without spaces too"
        ))
    })
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct TextScore(pub(super) Metric);

impl Default for TextScore {
    fn default() -> Self {
        Self(Metric::Bleu)
    }
}

impl<'de> Deserialize<'de> for TextScore {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        const ROUGE: [&str; 2] = ["rouge", "rougeL"]; // the short name and its full name
        static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| {
            let names = MetricName::ALL.map(MetricName::name).into_iter();
            names.filter(|name| Metric::of_texts(name).is_some()).chain([ROUGE[0]]).collect()
        });
        let name = String::deserialize(from)?;
        let metric = Metric::of_texts(if name == ROUGE[0] { ROUGE[1] } else { &name });
        metric.map(Self).ok_or_else(|| D::Error::unknown_variant(&name, &NAMES))
    }
}

section! {
    /// Source of the sentences: files, or the demo grammar.
    data DataSpec {
        /// Text to put before each source, such as `translate English to German: `. Setting it, even to the empty string, turns off the
        /// warning about prefixes that the model knows.
        pub source_prefix: Option<String>,
        /// Source language code, as the checkpoint's tokeniser writes it.
        pub source_language: Option<String>,
        /// Target language code.
        pub target_language: Option<String>,
        /// Synthetic language pair, generated when needed; the splits are train, dev, test and shifted.
        pub grammar: Option<Grammar>,
        /// Files by split, relative to the data folder.
        #[serde(default)]
        pub splits: BTreeMap<String, FilePair>,
    }
}

/// Byte-level BPE, trained on source and target together.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenizerSpec {
    /// Maximum vocabulary size, special tokens included.
    pub vocabulary: usize,
}

section! {
    /// Size of a Marian model; encoder and decoder are equally deep and wide.
    model ModelSpec {
        /// Activation function of feed-forward blocks.
        pub activation: Activation,
        /// Dropout on embeddings and on the output of each sublayer.
        pub dropout: f64,
        /// Maximum sentence length in tokens.
        pub positions: i64,
    }
}

section! {
    /// Adam with an inverse square root schedule (Vaswani et al. 2017, Section 5.3).
    training TrainingSpec {
        /// Maximum batch size in tokens: rows times the longest sentence of either side.
        pub batch_tokens: usize,
        /// Learning rate at the end of the warm-up.
        pub peak_learning_rate: f64,
        /// Optimiser updates of linear warm-up.
        pub warmup_steps: usize,
        /// ε of label smoothing.
        pub label_smoothing: f64,
        /// Maximum L2 norm of the gradient of all weights together.
        pub clip_norm: f64,
        /// Decoupled weight decay of linear maps and embeddings (Loshchilov and Hutter 2019).
        #[serde(default, skip_serializing_if = "is_zero")]
        pub weight_decay: f64,
        /// Decay rates of Adam's two moments.
        #[serde(default = "adam_betas")]
        pub adam_betas: [f64; 2],
    }
}

/// Omits a weight decay of zero, so that the settings of older models stay equal.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

fn adam_betas() -> [f64; 2] {
    [0.9, 0.98]
}

/// Beam search; defaults to [`DecodingSpec::usual`] or to the checkpoint's settings.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DecodingSpec {
    /// Beam width.
    pub beam: Option<usize>,
    /// Exponent of the length normalisation.
    pub length_penalty: Option<f64>,
    /// Stopping criterion of a sentence's search.
    pub stopping: Option<Stopping>,
    /// Maximum translation length, in tokens per source token ...
    pub length_ratio: Option<f64>,
    /// ... plus this number of tokens.
    pub length_offset: Option<usize>,
}

impl DecodingSpec {
    /// Returns the default beam search of models that are trained here.
    pub(crate) fn usual() -> BeamSearch {
        BeamSearch {
            beam: 5,
            length_penalty: 1.0,
            stopping: Stopping::Exact,
            length_limit: (1.5, 10),
            rules: None,
        }
    }

    /// Overrides settings of `search`.
    pub(crate) fn over(self, search: BeamSearch) -> BeamSearch {
        // If either limit is set, the other one defaults to ours, since mixing it with the checkpoint's would make no sense.
        let ours = self.length_ratio.is_some() || self.length_offset.is_some();
        let (ratio, offset) = if ours { Self::usual().length_limit } else { search.length_limit };
        BeamSearch {
            beam: self.beam.unwrap_or(search.beam),
            length_penalty: self.length_penalty.unwrap_or(search.length_penalty),
            stopping: self.stopping.unwrap_or(search.stopping),
            length_limit: (self.length_ratio.unwrap_or(ratio), self.length_offset.unwrap_or(offset)),
            rules: search.rules,
        }
    }
}

impl Spec for TranslationSpec {
    type Examples = ParallelText;

    fn seed(&mut self) -> Option<&mut u64> {
        self.training.as_mut().map(|training| &mut training.seed)
    }

    fn outline(&self) -> Outline<'_> {
        let splits = match self.data.grammar {
            Some(_) => Grammar::SPLITS.map(str::to_owned).to_vec(),
            None => self.data.splits.keys().cloned().collect(),
        };
        self.common_outline("shifted", splits)
    }

    fn validate(&self) -> Result<(), String> {
        let data = &self.data;
        self.validate_common(data.grammar.is_some())?;
        check_sizes(&data.grammar.map_or([0; 4], |g| [g.train, g.dev, g.test, g.shifted]))?;
        for (name, files) in &data.splits {
            files.validate().map_err(|fault| format!("data.splits.{name}: {fault}"))?;
        }
        self.decoding.validate()?;
        let Self { score: TextScoreSpec { metric, tokenize }, .. } = self;
        check(&[(
            "score.tokenize is for BLEU: leave it out, or score.metric",
            tokenize.is_none() || metric.0 == Metric::Bleu,
        )])?;
        let settings = (self.model.as_ref(), self.tokenizer, self.training);
        let settings = from_scratch(settings, ["translators", "a translator"])?;
        let Some((model, tokenizer, training)) = settings else { return Ok(()) };
        training.validate()?;
        let config = model.marian_config(tokenizer.vocabulary as i64, [0, 2, 2]);
        config.validate()?;
        model.open_heads.validate(&config.layout())
    }

    fn layout(&self) -> Option<HeadLayout> {
        // vocabulary sizes do not matter
        let config = |model: &ModelSpec| model.open_heads.of_config(model.marian_config(3, [0, 2, 2]));
        self.model.as_ref().map(|model| config(model).layout())
    }

    fn read(&self, data: &Path, split: &str, bad: &mut BadRows) -> Result<ParallelText, Error> {
        let no_split = || no_split(split, self.outline().splits);
        if let Some(grammar) = self.data.grammar {
            return grammar.read(split).ok_or_else(no_split);
        }
        let files = self.data.splits.get(split).ok_or_else(no_split)?;
        check_fetched(&files.paths(data), files.fetch.as_ref().or(self.data.fetch.as_ref()))?;
        Ok(files.read(data, bad)?)
    }

    fn files(&self, data: &Path, split: &str) -> Vec<PathBuf> {
        let pair = self.data.splits.get(split).filter(|_| self.data.grammar.is_none());
        pair.map_or(Vec::new(), |pair| pair.paths(data))
    }

    fn trees(&self, split: &str) -> Option<Vec<Tree>> {
        Some(self.data.grammar?.samples(split)?.iter().map(Tree::from).collect())
    }

    fn groups(text: &ParallelText) -> Vec<usize> {
        vec![text.len()]
    }

    fn select(text: &ParallelText, places: &[usize]) -> ParallelText {
        text.select(places)
    }

    fn sentences(text: &ParallelText) -> Vec<String> {
        text.source.clone()
    }

    fn sha256(text: &ParallelText) -> String {
        checksum::of_pairs(text)
    }
}

impl TrainingSpec {
    fn validate(&self) -> Result<(), String> {
        let rate = ("peak_learning_rate", self.peak_learning_rate);
        check_training(self.epochs, rate, self.clip_norm, self.weight_decay, self.adam_betas)?;
        check(&[
            ("training.batch_tokens must be at least 1", self.batch_tokens >= 1),
            ("training.warmup_steps must be at least 1", self.warmup_steps >= 1),
            (
                "training.label_smoothing must be at least 0 and below 1",
                (0.0..1.0).contains(&self.label_smoothing),
            ),
        ])
    }
}

impl DecodingSpec {
    fn validate(self) -> Result<(), String> {
        let within = |value: Option<f64>, most| value.is_none_or(|value| (0.0..=most).contains(&value));
        check(&[
            ("decoding.beam must be from 1 to 64", self.beam.is_none_or(|beam| (1..=64).contains(&beam))),
            ("decoding.length_penalty must be from 0 to 10", within(self.length_penalty, 10.0)),
            ("decoding.length_ratio must be from 0 to 100", within(self.length_ratio, 100.0)),
        ])
    }
}

impl ModelSpec {
    /// Returns the configuration with all heads, for the tokeniser's vocabulary size.
    pub(crate) fn config(&self, tokenizer: &SubwordTokenizer) -> TranslatorConfig {
        let symbols = [tokenizer.end(), tokenizer.pad(), tokenizer.pad()];
        self.marian_config(tokenizer.vocabulary_size() as i64, symbols)
    }

    /// `symbols`: EOS, padding and decoder start token.
    fn marian_config(&self, vocab_size: i64, [end, pad, start]: [u32; 3]) -> TranslatorConfig {
        let model = self;
        TranslatorConfig {
            family: &MARIAN,
            model_type: MARIAN.model_type.to_owned(),
            architectures: vec![MARIAN.architecture.to_owned()],
            vocab_size,
            decoder_vocab_size: None,
            d_model: model.d_model,
            encoder_layers: model.layers,
            encoder_attention_heads: model.heads,
            encoder_ffn_dim: model.d_ff,
            decoder_layers: model.layers,
            decoder_attention_heads: model.heads,
            decoder_ffn_dim: model.d_ff,
            activation_function: model.activation,
            max_position_embeddings: model.positions,
            relative: core_masking::translator::RelativeEntries::default(),
            scale_embedding: true,
            dropout: model.dropout,
            pad_token_id: pad,
            eos_token_id: end,
            decoder_start_token_id: start,
            forced_eos_token_id: Some(end),
            share_encoder_decoder_embeddings: Some(true),
            tie_word_embeddings: Some(true),
            static_position_embeddings: Some(true),
            pruned_attention_heads: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Translation;
    use super::*;
    use crate::subject_file::SubjectFile;
    use crate::test_machine::machine;
    use std::fs;
    use training::Machine;

    #[test]
    fn tokenizers_that_are_not_here_are_refused_with_those_that_are() {
        let read = |line: &str| toml::from_str::<TextScoreSpec>(line);
        assert_eq!(read("metric = 'bleu'").unwrap().tokenize, None);
        assert_eq!(read("tokenize = 'zh'").unwrap().tokenize, Some(BleuTokenizer::Chinese));
        let fault = |name: &str| read(&format!("tokenize = '{name}'")).unwrap_err().message().to_owned();
        let known = "expected one of `13a`, `intl`, `zh`, `char`, `none`";
        assert_eq!(fault("13b"), format!("unknown variant `13b`, {known}"));
        for (name, needs) in [("ja-mecab", "a dictionary of MeCab"), ("flores200", "a SentencePiece model")] {
            let reason = format!("{known}; sacreBLEU's `{name}` needs {needs}, which is not built in");
            assert!(fault(name).contains(&reason), "{}", fault(name));
        }
    }

    #[test]
    fn only_bleu_has_a_tokenizer() {
        let validated = |metric: &str| {
            let text = format!(
                "description = 'a'\ncheckpoint.from = 'a'\ndata.splits.test = {{ source = 'a', target = 'b' }}\n\
                 score = {{ metric = '{metric}', tokenize = 'char' }}"
            );
            toml::from_str::<TranslationSpec>(&text).unwrap().validate()
        };
        assert_eq!(validated("bleu"), Ok(()));
        assert!(validated("chrf").unwrap_err().contains("score.tokenize is for BLEU"));
    }

    const DATA: &str = "
        fetch = 'common'
        [splits]
        files = { source = 'a.en', target = 'a.fr', most_words = 2 }
        table = { pairs = 'b.tsv', source = 2, target = 1, sample = 2, seed = 1, fetch = 'own' }
    ";

    fn read(folder: &Path, split: &str) -> Result<ParallelText, String> {
        let spec = format!("description = ''\n[data]\n{}", DATA.replace("[splits]", "[data.splits]"));
        let (name, spec) = (String::new(), toml::from_str(&spec).unwrap());
        let file = SubjectFile::<Translation> { name, path: PathBuf::new(), spec };
        let machine = Machine { data: folder.to_owned(), ..machine() };
        file.read(&machine, split).map_err(|error| error.to_string())
    }

    #[test]
    fn a_missing_file_is_named_with_what_brings_it() {
        let folder = tempfile::tempdir().unwrap();
        let missing = |file: &str, fetch: &str| {
            Err(format!("`{}` is missing: run `just fetch {fetch}`", folder.path().join(file).display()))
        };
        assert_eq!(read(folder.path(), "files"), missing("a.en", "common"));
        fs::write(folder.path().join("a.en"), "A.\n").unwrap();
        assert_eq!(read(folder.path(), "files"), missing("a.fr", "common"));
        assert_eq!(read(folder.path(), "table"), missing("b.tsv", "own"));
    }

    #[test]
    fn files_and_tables_are_read_as_described() {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in [
            ("a.en", "A dog.\nA big dog.\nDogs.\n"),
            ("a.fr", "Un chien.\nUn gros.\nDes chiens ici.\n"),
            ("b.tsv", "Va !\tGo.\nCours !\tRun!\nCourez !\tRun!\n"),
        ] {
            fs::write(folder.path().join(name), content).unwrap();
        }
        let files = read(folder.path(), "files").unwrap();
        assert_eq!((files.source, files.target), (vec!["A dog.".to_owned()], vec!["Un chien.".to_owned()]));
        let table = read(folder.path(), "table").unwrap();
        let mut pairs: Vec<_> = table.source.iter().zip(&table.target).collect();
        pairs.sort();
        assert_eq!(
            pairs,
            [(&"Go.".to_owned(), &"Va !".to_owned()), (&"Run!".to_owned(), &"Cours !".to_owned())]
        );
    }
}
