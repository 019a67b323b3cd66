//! Facts from the signature of a result file: model, data, tests, machine, and whether the run was completed.
use std::fmt::Display;

use records::{Attention, Identity, Order, Testing};
use serde_json::Value;
use words::{count, short};

use crate::findings::source::ResultFile;

/// Words that replace published numbers for language models, for which the paper has none.
pub const OPEN_QUESTION: &str = "who name language models as an open question";

/// Default weight of importance in importance-entropy, which captions do not mention.
const WEIGHT: f64 = 0.5;

impl ResultFile {
    /// Returns the displayed name of its setup.
    pub fn shown_subject(&self) -> String {
        self.kind.shown(&self.subject)
    }

    /// Returns the identity of the run; `None` without a signature.
    pub fn identity(&self) -> Option<&Identity> {
        self.signature.as_ref().map(|signature| &signature.identity)
    }

    /// Returns an argument stored in the signature.
    pub fn argument(&self, name: &str) -> Option<&Value> {
        self.identity()?.arguments.get(name)
    }

    /// Returns a text argument.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.argument(name)?.as_str()
    }

    /// Returns a whole-number argument.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.argument(name)?.as_u64()
    }

    /// Returns the split of the scores, if known.
    pub fn split(&self) -> Option<&str> {
        self.identity().map(|identity| identity.split.as_str()).filter(|split| !split.is_empty())
    }

    /// Returns the number of segments scored; `None` for all.
    pub(crate) fn limit(&self) -> Option<usize> {
        self.identity()?.limit
    }

    /// `true` if the model is a decoder-only language model, whose `self` attention is causal.
    pub fn is_language(&self) -> bool {
        self.text("task") == Some("language-modelling")
    }

    /// Describes in captions what an attention type attends from and to.
    pub fn description(&self, attention: Attention) -> &'static str {
        match attention {
            Attention::EncEnc => "encoder self-attention",
            Attention::EncDec => "cross-attention",
            Attention::DecDec => "decoder self-attention",
            Attention::SelfAttention if self.is_language() => "causal self-attention",
            Attention::SelfAttention => "self-attention",
        }
    }

    /// Returns the sentence that replaces published numbers for language models.
    pub fn open_question(&self) -> Option<String> {
        self.is_language().then(|| format!("not compared with Michel et al. (2019), {OPEN_QUESTION}"))
    }

    /// Returns the number of key-value heads in a layer of `heads` query heads; `None` if each query head has its own.
    pub fn key_value_heads(&self, heads: usize) -> Option<usize> {
        let key_values = usize::try_from(self.number("key_value_heads")?).ok()?;
        (key_values > 0 && key_values < heads && heads.is_multiple_of(key_values)).then_some(key_values)
    }

    /// Returns the named groups of segments with their sizes, in split order; `None` unless all have a name and segments.
    pub fn groups(&self) -> Option<Vec<(String, usize)>> {
        let groups = self.argument("groups")?.as_array()?.iter().map(|group| {
            let segments =
                group.get("segments")?.as_u64()?.try_into().ok().filter(|&segments| segments > 0)?;
            Some((group.get("name")?.as_str()?.to_owned(), segments))
        });
        groups.collect::<Option<Vec<_>>>().filter(|groups| !groups.is_empty())
    }

    /// Returns the test settings of its rows, if stored.
    pub fn testing(&self) -> Option<Testing> {
        self.signature.as_ref()?.testing
    }

    /// Returns setup and split for display: `demo-translation (demo language), test`.
    pub fn title(&self) -> String {
        let state = self.is_unfinished().then(|| "not finished".to_owned());
        let parts = self.data(self.split()).into_iter().chain(state);
        std::iter::once(self.shown_subject()).chain(parts).collect::<Vec<_>>().join(", ")
    }

    /// Returns a name for references that includes the setup: `table1-demo-translation`.
    pub fn label(&self, name: &str) -> String {
        format!("{name}-{}", self.subject.replace('/', "-"))
    }

    /// Returns the title of a drawing: what it shows, and on which data.
    pub fn titled(&self, what: impl Display) -> String {
        let is_one_layer = self.argument("one_layer") == Some(&Value::Bool(true));
        let turns = if is_one_layer { "; layers are repeated passes through one shared layer" } else { "" };
        format!("{what}; {}{turns}", self.title())
    }

    /// Returns the split and the number of segments for display; `None` if the split is unknown.
    pub fn scored(&self) -> Option<String> {
        Some(self.data(Some(self.split()?)).join(", "))
    }

    /// `true` if its segments are windows of texts instead of whole documents.
    pub fn is_of_windows(&self) -> bool {
        self.argument("windows").is_some_and(|windows| windows["segments"] == "windows")
    }

    /// Describes a split, the segments scored, whether kept heads were rescaled, and the kind of ablation.
    pub(crate) fn data(&self, split: Option<&str>) -> Vec<String> {
        let limit = self.limit().map(|limit| match self.number("sample") {
            Some(seed) => format!("{limit} segments at random, seed {seed}"),
            None if self.argument("groups").is_some() => {
                format!("{limit} segments, in proportion from each group")
            }
            None if self.is_of_windows() => format!("windows of the first {limit} documents"),
            None => format!("first {limit} segments"),
        });
        let rescaled =
            (self.argument("rescale") == Some(&Value::Bool(true))).then_some("kept heads rescaled");
        let ablation =
            self.argument("ablation").and_then(Value::as_str).map(|kind| match self.number("draw") {
                Some(draw) => format!("{kind} ablation, draw {draw}"),
                None => format!("{kind} ablation"),
            });
        let split = split.map(str::to_owned);
        split.into_iter().chain(limit).chain(rescaled.map(str::to_owned)).chain(ablation).collect()
    }

    /// `true` if the last run that added rows was interrupted or is still in progress.
    pub(crate) fn is_unfinished(&self) -> bool {
        let Some(signature) = &self.signature else { return false };
        signature.complete.is_none()
            && signature.runs.last().is_some_and(|run| run.duration_seconds.is_none())
    }

    /// Returns the machines of all runs and the number format: `cpu with 2 threads (linux x86_64), f32`.
    pub fn machine(&self) -> Option<String> {
        let signature = self.signature.as_ref()?;
        let mut machines: Vec<String> = Vec::new();
        for run in &signature.runs {
            let machine = format!("{} with {} ({})", run.device, count(run.threads, "thread"), run.platform);
            if !machines.contains(&machine) {
                machines.push(machine);
            }
        }
        let precision = &signature.identity.precision;
        let precision = if precision.is_empty() { String::new() } else { format!(", {precision}") };
        (!machines.is_empty()).then(|| machines.join(" and ") + &precision)
    }

    /// Returns the data that rankings use (Michel et al. 2019, Section 4.1): `2000 segments of train`, or the name of a whole split.
    pub fn estimated_on(&self) -> Option<String> {
        let split = self.text("estimate_on")?;
        let part = |segments| format!("{} of {split}", count(segments as usize, "segment"));
        Some(self.number("estimate_limit").map_or(split.to_owned(), part))
    }

    /// `true` if a ranking was made on the scored split, which makes its curve optimistic.
    pub fn is_made_on_scored(&self, order: Order) -> bool {
        order.is_made_on(self.split(), self.text("estimate_on"))
    }

    /// Returns the settings of importance that differ from the defaults: `importance by token, not normalised`.
    pub fn departures(&self) -> Option<String> {
        let weight =
            self.argument("entropy_weight").and_then(Value::as_f64).filter(|weight| *weight != WEIGHT);
        let parts = [
            (self.text("granularity") == Some("token")).then(|| "by token".to_owned()),
            (self.argument("normalise") == Some(&Value::Bool(false))).then(|| "not normalised".to_owned()),
            weight.map(|weight| format!("weight {} in the sum with entropy", short(weight))),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("importance {}", parts.join(", ")))
    }

    /// Returns sentences on rankings for the captions of curves.
    pub fn of_orders(&self) -> Vec<String> {
        let is_repeated = self.argument("recompute") == Some(&Value::Bool(true));
        let anew = if is_repeated { ", again after each step" } else { "" };
        let data = self.estimated_on().map(|data| format!("rankings estimated on {data}{anew}"));
        data.into_iter().chain(self.departures()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::findings::source::{Source, experiment};

    #[test]
    fn parts_of_a_split_rescaled_heads_and_a_shared_layer_are_named() {
        let source = Source::subject(&crate::findings::tiny(), "tiny-language");
        let mut file = source.one(experiment::SWEEP).unwrap();
        let scored = |arguments: Value| {
            let mut file = file.clone();
            let identity = &mut file.signature.as_mut().unwrap().identity;
            identity.limit = Some(5);
            let Value::Object(arguments) = arguments else { panic!("arguments have names") };
            identity.arguments = arguments.into_iter().collect();
            file.scored().unwrap()
        };
        assert_eq!(scored(json!({})), "test, first 5 segments");
        assert_eq!(scored(json!({ "sample": 1, "groups": [] })), "test, 5 segments at random, seed 1");
        assert_eq!(scored(json!({ "groups": [] })), "test, 5 segments, in proportion from each group");
        let windows = json!({ "windows": { "segments": "windows" }, "rescale": true });
        assert_eq!(scored(windows), "test, windows of the first 5 documents, kept heads rescaled");
        file.signature.as_mut().unwrap().identity.arguments.insert("one_layer".to_owned(), true.into());
        assert!(file.titled("x").ends_with("; layers are repeated passes through one shared layer"));
    }
}
