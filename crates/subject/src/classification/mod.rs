//! Classification of texts and images (accuracy, F1, Matthews correlation), regression to one output (Pearson or Spearman correlation) and
//! classification of words (entity F1 or accuracy).
mod data;
mod encoder;
mod inputs;
pub(crate) mod memory;
mod objective;
mod outputs;
mod reader;
mod scorer;
mod spec;
mod train;

use core_masking::classifier::{Inputs, LabelledBatch};
use core_masking::{
    Attention, AttentionMaps, Classifier, ClassifierConfig, GatedModel, Gates, ModelDropout, Relevance,
    to_vec,
};
use corpus::classifier_tokenizer::{ClassifierTokenizer, Encoded};
use corpus::labelled::Example;
use corpus::placed::PlacedToken;
use records::Identity;
use stats::text::TextMetric;
use stats::{Cell, Cells, Metric, Segments};
use tch::{Kind, no_grad};
use training::Machine;

use crate::checkpoint::Places;
use crate::error::Error;
use crate::evaluation::{Need, Purpose};
use crate::models::Models;
use crate::subject_file::SubjectFile;
use crate::task::{PredictedBy, Sizes, Task, Timed};
use crate::text_input::{Input, TextInput, check_length};
use inputs::{Answer, Texts};
use outputs::{labels, metric};
use reader::Reader;
use spec::ClassificationSpec;

/// Tokeniser or image processor, classes and metric of a classifier.
#[derive(Debug, Clone)]
pub(crate) struct Classification {
    reader: Reader,
    labels: Vec<String>,
    metric: Metric,
    /// The positive class of F1.
    positive: Option<String>,
}

impl Task for Classification {
    type Spec = ClassificationSpec;
    type Model = Classifier;
    type Prepared = Texts;
    type Encoded = Texts;
    type Scorer<'a> = &'a Texts;

    const FILES: &'static [&'static str] = &[
        "config.json",
        "merges.txt",
        "preprocessor_config.json",
        "special_tokens_map.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.json",
        "vocab.txt",
    ];

    /// Refuses labels that are not classes of the model.
    fn check(
        file: &SubjectFile<Self>,
        machine: &Machine,
        split: &str,
        examples: &Vec<Example>,
    ) -> Result<(), Error> {
        let spec = &file.spec;
        let labels = match (&spec.checkpoint, spec.training) {
            (Some(checkpoint), None) => {
                let folder = &checkpoint.find(machine)?.folder;
                labels(spec, &ClassifierConfig::read(&folder.join("config.json"))?, folder)?
            }
            _ => spec.outputs(),
        };
        metric(spec, &labels)?;
        data::answers(examples, (&labels, spec.score.of_tags().is_some()), split).map(drop)
    }

    fn load(
        file: &SubjectFile<Self>,
        machine: &Machine,
        places: Places<'_>,
        _is_given: bool,
    ) -> Result<(Self, Models<Classifier>), Error> {
        let (spec, folder) = (&file.spec, places.tokenizer);
        let config = ClassifierConfig::read(&places.model.join("config.json"))?;
        let reader = Reader::load(folder, &config, spec.data.reads_images(), spec.tokenizer)?; // the weights take longer
        let reader = match reader {
            Reader::Texts(tokenizer) => Reader::Texts(tokenizer.for_rows(config.vocab_size)),
            images => images,
        };
        let model = Classifier::load(places.model, (Kind::Float, machine.device))?;
        model.check_gates()?;
        reader.check(folder, &model)?;
        let labels = labels(spec, model.config(), folder)?;
        let (metric, positive) = (metric(spec, &labels)?, spec.score.positive.clone());
        Ok((Self { reader, labels, metric, positive }, Models::new(model, machine.precision)?))
    }

    fn metric(&self, _: &str) -> Metric {
        self.metric
    }

    fn describe(&self, identity: &mut Identity, _: &Vec<Example>) {
        identity.metric = match &self.positive {
            Some(positive) => format!("{}, positive: {positive}", self.metric.name()),
            None => self.metric.name().to_string(),
        };
        if let Reader::Texts(tokenizer) = &self.reader {
            identity.arguments.insert("max_length".to_owned(), tokenizer.max_length().into());
        }
        if matches!(self.metric, Metric::Classes(_) | Metric::Texts(_)) {
            identity.arguments.insert("labels".to_owned(), self.labels.clone().into());
        }
    }

    fn prepare(&self, model: &Classifier, examples: Vec<Example>, split: &str) -> Result<Texts, Error> {
        let texts = self.encode(model, &examples, split)?;
        if let (Metric::Estimates(_), [first, others @ ..]) = (self.metric, &texts.answers[..])
            && others.iter().all(|other| other == first)
        {
            let label = &examples[0].label;
            return Err(Error::Invalid(format!(
                "split `{split}`: all labels are `{label}`, so the correlation is undefined"
            )));
        }
        if texts.lack_entities() {
            let fault = "no tag marks an entity, so F1 is undefined";
            return Err(Error::Invalid(format!("split `{split}`: {fault}")));
        }
        Ok(texts)
    }

    fn sizes(texts: &Texts) -> Sizes {
        Sizes::of_texts(texts.lengths().collect())
    }

    fn need<'a>(&'a self, models: &'a Models<Classifier>, purpose: Purpose<'a>) -> Need<'a> {
        memory::need(models.exact.config(), models.sizes(), purpose)
    }

    fn scorer<'a>(&'a self, texts: &'a Texts) -> &'a Texts {
        texts
    }

    fn segments(&self, _: &Texts, found: Vec<Cells>) -> Result<Segments, Error> {
        Ok(Segments::from_cells(self.metric, &found)?)
    }

    fn encode(&self, _: &Classifier, examples: &Vec<Example>, split: &str) -> Result<Texts, Error> {
        let texts = encode(&self.reader, (examples, split), (&self.labels, self.of_tags()))?;
        if !texts.read.is_known_to(&self.reader) {
            words::say!(
                "warning: the tokenizer knows no word of split `{split}`: the model may not match these texts"
            );
        }
        Ok(texts)
    }

    fn encoded_lengths(texts: &Texts) -> Vec<usize> {
        texts.lengths().collect()
    }

    fn predicts(&self, _: &Texts) -> Option<PredictedBy<Self>> {
        let scores = |model: &Classifier, texts: &Texts, rows: &[usize]| {
            Self::outputs(model, texts, rows, &model.open())
        };
        matches!(self.metric, Metric::Classes(_)).then_some(PredictedBy::Decisions(scores))
    }

    fn examples(model: &Classifier, texts: &Texts, rows: &[usize]) -> Result<LabelledBatch, Error> {
        texts.labelled_batch(model, rows)
    }

    fn relevance(model: &Classifier, text: &LabelledBatch) -> Result<Relevance, Error> {
        Ok(model.relevance(text)?)
    }

    /// Returns the logits of each text, or of each of its tokens.
    fn outputs(
        model: &Classifier,
        texts: &Texts,
        rows: &[usize],
        gates: &Gates,
    ) -> Result<Vec<Vec<f64>>, Error> {
        let batch = texts.read.batch(model, rows)?;
        let logits = no_grad(|| model.forward(&batch, gates, &ModelDropout::OFF));
        let all = to_vec::<f64>(&logits);
        let (of_text, labels) = (all.len() / rows.len(), *logits.size().last().unwrap_or(&1) as usize);
        let real = |row: usize| if logits.dim() == 3 { texts.tokens(row) * labels } else { labels };
        Ok(rows.iter().zip(all.chunks(of_text)).map(|(&row, own)| own[..real(row)].to_vec()).collect())
    }

    fn pass<'a>(&'a self, model: &'a Classifier, texts: &Texts, rows: &[usize]) -> Result<Timed<'a>, Error> {
        let batch = texts.read.batch(model, rows)?;
        Ok(Box::new(move |open| {
            let logits = no_grad(|| model.forward(&batch, open, &ModelDropout::OFF));
            // waits for a GPU
            if logits.isfinite().all().int64_value(&[]) == 0 {
                return Err(Error::not_finite());
            }
            let size = batch.size();
            Ok(size[0] as u64 * model.multiply_adds(size[1] as u64))
        }))
    }

    fn text_input(&self, model: &Classifier) -> TextInput {
        let (longest, tokenizer) = (model.config().longest_text() as usize, self.reader.tokenizer().ok());
        TextInput {
            attention: Attention::SelfAttention,
            sees_future: true,
            ends: tokenizer.and_then(ClassifierTokenizer::end).into_iter().collect(),
            longest: longest.min(tokenizer.map_or(longest, ClassifierTokenizer::max_length)),
        }
    }

    fn place(&self, text: &str) -> Result<Option<Vec<PlacedToken>>, Error> {
        Ok(Some(self.reader.tokenizer()?.encode_placed(text)?))
    }

    fn length(&self, text: &str) -> Result<usize, Error> {
        match &self.reader {
            Reader::Texts(tokenizer) => Ok(tokenizer.encode_placed(text)?.len()),
            Reader::Images(images) => Ok(images.positions),
        }
    }

    fn read_texts(model: &Classifier, texts: &[&[u32]], gates: &Gates) -> Result<(), Error> {
        let segments: Vec<Vec<u32>> = texts.iter().map(|text| vec![0; text.len()]).collect();
        let rows: Vec<(&[u32], &[u32])> =
            texts.iter().zip(&segments).map(|(&text, segments)| (text, segments.as_slice())).collect();
        drop(model.forward(&model.batch(&rows)?, gates, &ModelDropout::OFF));
        Ok(())
    }

    fn read(
        &self,
        model: &Classifier,
        Input { text, second }: &Input<'_>,
        [_, recorded]: [&Gates; 2],
    ) -> Result<(String, Vec<AttentionMaps>), Error> {
        let tokenizer = self.reader.tokenizer()?;
        let (encoded, left_out) = tokenizer.encode_counting(text, *second)?;
        check_length("the text", encoded.ids.len() + left_out, encoded.ids.len())?;
        let (answer, encoded) = match (self.of_tags(), second) {
            (None, _) => {
                (self.answer(model, &model.batch(&[(&encoded.ids, &encoded.segments)])?, recorded)?, encoded)
            }
            (Some(_), None) => self.tagged(model, text, recorded)?,
            (Some(_), Some(_)) => {
                return Err(Error::Invalid("a model that tags words reads one text, not a pair".to_owned()));
            }
        };
        let tokens: Vec<String> = encoded.ids.iter().map(|&id| tokenizer.token(id)).collect();
        let (attention, keys) = (Attention::SelfAttention, tokens.clone());
        let maps = AttentionMaps { attention, queries: tokens, keys, is_causal: false, layers: Vec::new() };
        Ok((answer, vec![maps]))
    }

    fn say(&self, model: &Classifier, text: &str, _tokens: usize, gates: &Gates) -> Result<String, Error> {
        match self.of_tags() {
            Some(_) => Ok(self.tagged(model, text, gates)?.0),
            None => self.answer(model, &self.reader.batch_of_one(model, text)?, gates),
        }
    }
}

impl Classification {
    /// Returns the metric if words have tags.
    fn of_tags(&self) -> Option<TextMetric> {
        if let Metric::Texts(metric) = self.metric { Some(metric) } else { None }
    }

    /// Returns the words of a text with their tags, such as `Paris/B-LOC`, and its tokens. Words are separated by white space.
    fn tagged(&self, model: &Classifier, text: &str, gates: &Gates) -> Result<(String, Encoded), Error> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let (encoded, first) = self.reader.tokenizer()?.encode_words(&words)?;
        let batch = model.batch(&[(&encoded.ids, &encoded.segments)])?;
        let logits = no_grad(|| model.forward(&batch, gates, &ModelDropout::OFF));
        let Answer::Tags(classes) = &inputs::predictions(&logits)?[0] else {
            unreachable!("a classifier of tokens has a class for each")
        };
        let tag = |token: usize| self.labels[classes[token] as usize].as_str();
        let with_tag = |(word, token): (&String, &Option<usize>)| {
            token.map_or_else(|| word.clone(), |token| format!("{word}/{}", tag(token)))
        };
        Ok((words.iter().zip(&first).map(with_tag).collect::<Vec<_>>().join(" "), encoded))
    }

    /// Returns the predicted class of a text or an image with its probability, or the predicted value.
    fn answer(&self, model: &Classifier, one: &Inputs, gates: &Gates) -> Result<String, Error> {
        let logits = no_grad(|| model.forward(one, gates, &ModelDropout::OFF));
        let class = match inputs::predictions(&logits)?[0].one() {
            Some(Cell::Count(class)) => class as usize,
            Some(Cell::Decimal(value)) => return Ok(format!("{value:.3}")),
            None => unreachable!("a text has one answer"),
        };
        let shares = to_vec::<f64>(&logits.softmax(-1, Kind::Double));
        Ok(format!("{} ({:.1}%)", self.labels[class], 100.0 * shares[class]))
    }
}

/// Converts the examples of a split to token ids.
///
/// - `labels`: the outputs of the model
/// - `of_tags`: the metric; `None` if words have no tags
fn encode(
    reader: &Reader,
    (examples, split): (&[Example], &str),
    (labels, of_tags): (&[String], Option<TextMetric>),
) -> Result<Texts, Error> {
    let answers = data::answers(examples, (labels, of_tags.is_some()), split)?;
    match of_tags {
        Some(metric) => {
            Texts::encode_words(reader.tokenizer()?, (examples, split), answers, (metric, labels))
        }
        None => Ok(Texts::new(reader.read(examples)?, answers)),
    }
}
