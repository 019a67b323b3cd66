//! Translation and other text-to-text tasks: beam search; BLEU, chrF, ROUGE, exact match.
mod cut;
pub(crate) mod memory;
mod objective;
mod pairs;
mod references;
mod scorer;
mod spec;
mod tokenizer;
mod train;

use std::sync::Arc;

use core_masking::loss::PairBatch;
use core_masking::{
    Attention, AttentionMaps, BeamSearch, GatedModel, Gates, ModelDropout, OutputRules, Relevance,
    TokenBatch, Translator, to_vec,
};
use corpus::parallel::ParallelText;
use corpus::placed::PlacedToken;
use corpus::sentence_tokenizer::{SentenceTokenizer, check_rows};
use corpus::tokenizer::SubwordTokenizer;
use records::{CLUSTERS, Identity};
use serde_json::{Value, json};
use stats::bleu::{Bleu, BleuTokenizer};
use stats::text::TextMetric;
use stats::{Cells, Metric, Segments};
use tch::Kind;
use training::Machine;

use crate::checkpoint::Places;
use crate::error::{Error, quoted};
use crate::evaluation::{Need, Purpose};
use crate::models::Models;
use crate::subject_file::SubjectFile;
use crate::task::{Sizes, Task, Timed};
use crate::text_input::{Input, TextInput, check_length};
use pairs::Pairs;
use references::Script;
use scorer::Sentences;
use spec::{DataSpec, DecodingSpec, ModelSpec, TranslationSpec};
use tokenizer::Published;
pub(crate) use tokenizer::prefixes;

/// Tokeniser and beam search of a translator.
#[derive(Debug, Clone)]
pub(crate) struct Translation {
    search: BeamSearch,
    tokenizer: Arc<dyn SentenceTokenizer>,
    metric: Metric,
    /// BLEU's tokenisation.
    tokenize: BleuTokenizer,
    /// Text to put before each source.
    prefix: String,
    /// Known prefixes of sources, if the model's folder lists any.
    openings: Vec<String>,
    /// Where the prefixes are listed, for messages.
    known_by: &'static str,
    /// Source and target language codes, if the tokeniser has any.
    languages: [Option<String>; 2],
}

/// A split as the model reads it.
pub(crate) struct Prepared {
    text: ParallelText,
    sources: Vec<Vec<u32>>,
}

impl Prepared {
    fn sources(&self, rows: &[usize]) -> Vec<&[u32]> {
        rows.iter().map(|&row| self.sources[row].as_slice()).collect()
    }
}

impl Translation {
    /// Returns the tokens of a source sentence, after checking that the model has an embedding for each.
    fn source(&self, model: &Translator, text: &str) -> Result<Vec<u32>, Error> {
        let ids = self.tokenizer.encode(&format!("{}{text}", self.prefix))?;
        check_rows(&ids, Some(model.config().vocab_size), |_| None)?; // only targets are decoded
        Ok(ids)
    }

    /// Warns if no source begins with a prefix that the model knows.
    fn check_openings(&self, text: &ParallelText, split: &str) {
        let begins = |line: &String| {
            let source = format!("{}{line}", self.prefix);
            self.openings.iter().any(|opening| source.starts_with(opening.as_str()))
        };
        if !self.openings.is_empty() && !text.source.iter().any(begins) {
            let some = quoted(&self.openings[..self.openings.len().min(4)]);
            words::warn(&format!(
                "no source of split `{split}` begins with a prefix that the model knows: {} such as {some}; data.source_prefix \
                 adds a text before each, and \"\" adds none",
                self.known_by
            ));
        }
    }

    /// Warns of references that BLEU cannot split into words, and of references that are not plain text.
    fn check_references(&self, references: &[String], split: &str) {
        let (tokenize, is_bleu) = (self.tokenize, self.metric == Metric::Bleu);
        let separates = |letter| tokenize.separates(letter);
        if let (true, Some(scripts)) = (is_bleu, references::without_spaces(references, separates)) {
            let better =
                if scripts == [Script::Han] { BleuTokenizer::Chinese } else { BleuTokenizer::Characters };
            let names: Vec<_> = scripts.iter().map(ToString::to_string).collect();
            words::warn(&format!(
                "split `{split}`: most letters of the references are {}, written without spaces, so BLEU's tokenizer `{}` makes \
                 one word of many: score.tokenize = \"{}\" separates them, and score.metric = \"chrf\" needs no words",
                names.join(" and "),
                tokenize.name(),
                better.name()
            ));
        }
        let spaces_count = match self.metric {
            Metric::Texts(metric) => metric == TextMetric::ExactMatch,
            _ => !matches!(tokenize, BleuTokenizer::Characters | BleuTokenizer::None),
        };
        let signs = references::not_plain(references, spaces_count);
        if !signs.is_empty() {
            words::warn(&format!(
                "split `{split}`: the references are not plain text: {}; the score compares them \
                 as they are with the output of the model, so join subwords, unescape and detokenize them first",
                signs.join(", ")
            ));
        }
    }

    /// Returns the tokens of a target sentence, after checking that the model has an embedding for each.
    fn target(&self, model: &Translator, text: &str) -> Result<Vec<u32>, Error> {
        let ids = self.tokenizer.encode_target(text)?;
        check_rows(&ids, Some(model.config().target_vocabulary()), |id| Some(self.tokenizer.decode(&[id])))?;
        Ok(ids)
    }
}

impl Task for Translation {
    type Spec = TranslationSpec;
    type Model = Translator;
    type Prepared = Prepared;
    type Encoded = Pairs;
    type Scorer<'a> = Sentences<'a>;

    const FILES: &'static [&'static str] = &[
        "config.json",
        "generation_config.json",
        "merges.txt",
        "source.spm",
        "target.spm",
        "target_vocab.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab-src.json",
        "vocab-tgt.json",
        "vocab.json",
    ];

    fn load(
        file: &SubjectFile<Self>,
        machine: &Machine,
        places: Places<'_>,
        is_given: bool,
    ) -> Result<(Self, Models<Translator>), Error> {
        let (name, spec, folder) = (&file.name, &file.spec, places.tokenizer);
        let (metric, tokenize) = (spec.score.metric.0, spec.score.tokenize.unwrap_or_default());
        let model = Translator::load(places.model, machine.options())?;
        model.check_gates()?;
        let DataSpec { source_prefix: prefix, source_language, target_language, .. } = &spec.data;
        let (prefix, languages) = (prefix.clone(), [source_language, target_language].map(Clone::clone));
        let codes = languages.each_ref().map(Option::as_deref);
        let published = if is_given { tokenizer::of_publisher(folder, model.config(), codes)? } else { None };
        let (search, tokenizer, openings, known_by): (_, Arc<dyn SentenceTokenizer>, _, _) = match published {
            Some(Published { tokenizer, begin }) => {
                tokenizer::check(tokenizer.as_ref(), model.config(), folder, name)?;
                let mut found = BeamSearch::read(folder, model.config())?;
                if let (Some(begin), Some(rules)) = (begin, &mut found.rules) {
                    rules.begin = Some(begin);
                }
                let codes = tokenizer.openings();
                let (known_by, openings) = match (&prefix, codes.is_empty()) {
                    (Some(_), _) => ("", Vec::new()),
                    (None, false) => ("its vocabulary has codes", codes),
                    (None, true) => tokenizer::prefixes(places.model),
                };
                (spec.decoding.over(found), tokenizer.into(), openings, known_by)
            }
            None => {
                let tokenizer = SubwordTokenizer::load(&folder.join("tokenizer.json"))?;
                tokenizer::check(&tokenizer, model.config(), folder, name)?;
                let config = |model: &ModelSpec| model.open_heads.of_config(model.config(&tokenizer));
                if spec.model.as_ref().is_some_and(|described| *model.config() != config(described)) {
                    return Err(tokenizer::other_model(places.model, name));
                }
                (search(spec), Arc::new(tokenizer), Vec::new(), "")
            }
        };
        let prefix = prefix.unwrap_or_default();
        let task = Self { search, tokenizer, metric, tokenize, prefix, openings, known_by, languages };
        Ok((task, Models::alone(model)))
    }

    fn metric(&self, _: &str) -> Metric {
        self.metric
    }

    fn describe(&self, identity: &mut Identity, text: &ParallelText) {
        let signature = match self.metric {
            Metric::Texts(metric) => metric.signature(),
            _ => format!("BLEU|{}", Bleu::of(self.tokenize).signature()),
        };
        identity.metric = signature.replace("nrefs:1|", &format!("nrefs:{}|", text.reference_count()));
        if !text.documents.is_empty() && self.metric == Metric::Bleu {
            identity.arguments.insert(CLUSTERS.to_owned(), json!(text.document_lengths()));
        }
        identity.arguments.insert("decoding".to_owned(), described(&self.search));
        if !self.prefix.is_empty() {
            identity.arguments.insert("source_prefix".to_owned(), self.prefix.clone().into());
        }
        if self.languages.iter().any(Option::is_some) {
            identity.arguments.insert("languages".to_owned(), json!(self.languages));
        }
    }

    fn prepare(&self, model: &Translator, text: ParallelText, split: &str) -> Result<Prepared, Error> {
        self.check_openings(&text, split);
        self.check_references(&text.target, split);
        let source = |line: &String| self.source(model, line);
        let sources: Vec<Vec<u32>> = text.source.iter().map(source).collect::<Result<_, _>>()?;
        let positions = model.config().max_position_embeddings as usize;
        if let Some(index) = sources.iter().position(|source| source.len() > positions) {
            let (line, length) = (index + 1, sources[index].len());
            let fault = format!("{length} tokens, but the model has {positions} positions");
            return Err(Error::Invalid(format!("split `{split}`, sentence {line}: {fault}")));
        }
        Ok(Prepared { text, sources })
    }

    fn sizes(prepared: &Prepared) -> Sizes {
        Sizes::of_texts(prepared.sources.iter().map(Vec::len).collect())
    }

    fn need<'a>(&'a self, models: &'a Models<Translator>, purpose: Purpose<'a>) -> Need<'a> {
        memory::need(&self.search, models.exact.config(), models.sizes(), purpose)
    }

    fn scorer<'a>(&'a self, prepared: &'a Prepared) -> Sentences<'a> {
        Sentences { task: self, prepared, cuts: cut::Cuts::default() }
    }

    fn segments(&self, _: &Prepared, found: Vec<Cells>) -> Result<Segments, Error> {
        Ok(Segments::from_cells(self.metric, &found)?)
    }

    /// Leaves out pairs that exceed the model's positions, as in training.
    fn encode(&self, model: &Translator, text: &ParallelText, split: &str) -> Result<Pairs, Error> {
        self.check_openings(text, split);
        let source = |text: &str| self.source(model, text);
        let target = |text: &str| self.target(model, text);
        Pairs::encode(text, [&source, &target], model.config().max_position_embeddings, split)
    }

    fn encoded_lengths(pairs: &Pairs) -> Vec<usize> {
        (0..pairs.len()).map(|row| pairs.tokens(row)).collect()
    }

    fn encoded_text_lengths(pairs: &Pairs) -> Vec<usize> {
        pairs.lengths().into_iter().map(|(source, _)| source).collect()
    }

    fn examples(model: &Translator, pairs: &Pairs, rows: &[usize]) -> Result<PairBatch, Error> {
        Ok(pairs.batch(model, rows))
    }

    fn relevance(model: &Translator, pair: &PairBatch) -> Result<Relevance, Error> {
        Ok(model.relevance(pair)?)
    }

    /// Returns the loss of each reference per token, in nats.
    fn outputs(
        model: &Translator,
        pairs: &Pairs,
        rows: &[usize],
        gates: &Gates,
    ) -> Result<Vec<Vec<f64>>, Error> {
        let batch = pairs.batch(model, rows);
        let losses = tch::no_grad(|| model.losses(&batch, gates, &ModelDropout::OFF));
        let tokens = batch.real.sum_dim_intlist(1, false, Kind::Double);
        Ok(to_vec(&(losses / tokens)).into_iter().map(|loss| vec![loss]).collect())
    }

    fn pass<'a>(
        &'a self,
        model: &'a Translator,
        prepared: &Prepared,
        rows: &[usize],
    ) -> Result<Timed<'a>, Error> {
        let batch: Vec<Vec<u32>> = prepared.sources(rows).into_iter().map(<[u32]>::to_vec).collect();
        Ok(Box::new(move |open| {
            let sources: Vec<&[u32]> = batch.iter().map(Vec::as_slice).collect();
            let longest = sources.iter().map(|source| source.len()).max().unwrap_or(0) as u64;
            let translations = self.search.translate(model, &sources, open)?;
            let work = |steps| model.multiply_adds(longest, steps, self.search.beam as u64);
            Ok(translations.iter().map(|translation| work(translation.steps as u64)).sum())
        }))
    }

    /// The encoder reads the source. The decoder's inputs have no words with a tree.
    fn text_input(&self, model: &Translator) -> TextInput {
        let config = model.config();
        TextInput {
            attention: Attention::EncEnc,
            sees_future: true,
            ends: vec![config.eos_token_id],
            longest: config.max_position_embeddings as usize,
        }
    }

    fn place(&self, text: &str) -> Result<Option<Vec<PlacedToken>>, Error> {
        let before = self.prefix.len();
        let tokens = self.tokenizer.encode_placed(&format!("{}{text}", self.prefix))?;
        let in_text = |token: PlacedToken| {
            let bytes = token.bytes.filter(|bytes| bytes.end > before);
            PlacedToken {
                bytes: bytes.map(|bytes| bytes.start.saturating_sub(before)..bytes.end - before),
                ..token
            }
        };
        Ok(tokens.map(|tokens| tokens.into_iter().map(in_text).collect()))
    }

    fn read_texts(model: &Translator, texts: &[&[u32]], gates: &Gates) -> Result<(), Error> {
        let rows = Some(model.config().vocab_size);
        texts.iter().try_for_each(|ids| check_rows(ids, rows, |_| None))?;
        let batch = TokenBatch::new(texts, model.config().pad_token_id, GatedModel::options(model));
        drop(model.encode(&batch, gates, &ModelDropout::OFF));
        Ok(())
    }

    /// The decoder reads the given translation, by default its own, as it reads references in training. Queries are labelled with the token
    /// that they predict in encoder-decoder attention, and with the token that they read in decoder self-attention.
    fn read(
        &self,
        model: &Translator,
        Input { text, second }: &Input<'_>,
        [plain, recorded]: [&Gates; 2],
    ) -> Result<(String, Vec<AttentionMaps>), Error> {
        let longest = model.config().max_position_embeddings as usize;
        let source = self.source(model, text)?;
        check_length("the text", source.len(), longest)?;
        let answer = second.map_or_else(|| self.say(model, text, 0, plain), |given| Ok(given.to_owned()))?;
        let target = self.target(model, &answer)?;
        check_length("the translation", target.len(), longest)?;
        let batch = PairBatch::new(model, &[&source], &[&target]);
        drop(model.losses(&batch, recorded, &ModelDropout::OFF));
        let texts = |ids: &[u32], is_source: bool| -> Vec<String> {
            ids.iter().map(|&id| self.tokenizer.token(id, is_source)).collect()
        };
        let start = model.config().decoder_start_token_id;
        let read: Vec<u32> =
            std::iter::once(start).chain(target[..target.len() - 1].iter().copied()).collect();
        let (source, read) = (texts(&source, true), texts(&read, false));
        let maps = |attention, queries: &[String], keys: &[String]| AttentionMaps {
            attention,
            queries: queries.to_vec(),
            keys: keys.to_vec(),
            is_causal: attention == Attention::DecDec,
            layers: Vec::new(),
        };
        let maps = [
            maps(Attention::EncEnc, &source, &source),
            maps(Attention::EncDec, &texts(&target, false), &source),
            maps(Attention::DecDec, &read, &read),
        ];
        Ok((answer, maps.into()))
    }

    /// Ignores the maximum number of tokens.
    fn say(&self, model: &Translator, text: &str, _tokens: usize, gates: &Gates) -> Result<String, Error> {
        let source = self.source(model, text)?;
        let translations = self.search.translate(model, &[&source], gates)?;
        Ok(translations.iter().map(|translation| self.tokenizer.decode(&translation.tokens)).collect())
    }
}

/// Returns the beam search of a model that is trained here.
pub(crate) fn search(spec: &TranslationSpec) -> BeamSearch {
    spec.decoding.over(DecodingSpec::usual())
}

fn described(search: &BeamSearch) -> Value {
    let BeamSearch { beam, length_penalty, stopping, length_limit: (ratio, offset), rules } = search;
    let mut json = json!({
        "beam": beam, "length_penalty": length_penalty, "stopping": stopping,
        "length_ratio": ratio, "length_offset": offset,
    });
    if let Some(OutputRules { banned, renormalised, end_forced, begin, ngram, shortest }) = rules {
        json["banned"] = json!(banned);
        json["renormalised"] = (*renormalised).into();
        json["end_forced"] = (*end_forced).into();
        if let Some(begin) = begin {
            json["begin"] = (*begin).into();
        }
        for (name, number) in [("no_repeat_ngram", *ngram), ("shortest", *shortest)] {
            if number > 0 {
                json[name] = number.into();
            }
        }
    }
    json
}
