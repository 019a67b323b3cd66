//! Table of criteria: numbers by which heads are compared and ranked.
//!
//! Files contain one row per head and criterion, so a new criterion needs only an entry here and its computation; results without it stay
//! readable. Add entries before the oracle: rows, legends and tables follow the order of the table.
use crate::names::named;

/// Criterion: a number that describes the importance or behaviour of a head, averaged over a split unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    /// `|∂L(x)/∂ξ_h|` in nats, mean over segments: Equation 2.
    Example,
    /// [`Self::Example`] divided by the l2 norm of its layer, 0 to 1.
    ExampleNormalised,
    /// [`Self::Example`] at each query position, mean over positions: |head output · its gradient|, in nats.
    ///
    /// Differs from the paper: follows its authors' code. In the last layer of BERT, where only the first position has a gradient, that
    /// code divides by the number of segments, and so does this.
    Token,
    /// [`Self::Token`] divided by the l2 norm of its layer, 0 to 1.
    TokenNormalised,
    /// `Σ |∂L(x)/∂A_h|` over the attention weights of real queries and visible keys, in nats, mean over segments.
    AttentionGradient,
    /// Entropy of the attention weights of a query, in nats, mean over queries.
    Entropy,
    /// Entropy divided by its maximum, the logarithm of the number of visible keys; mean over queries that see more than one.
    NormalisedEntropy,
    /// Maximum attention weight of a query, without the EOS token as a key; mean over queries. For classifiers all keys count, because
    /// `[SEP]` also separates two texts.
    Confidence,
    /// `w I_h + (1 - w) H_h`, 0 to 1: normalised importance, by segment or by token, and normalised entropy.
    ImportanceEntropy,
    /// `(∂L(x)/∂ξ_h)²` in nats², mean over segments: the diagonal of the empirical Fisher information of the gates.
    ///
    /// Differs from Kwon et al. (2022), who square the derivative of the mean loss of each batch.
    Fisher,
    /// Direct contribution of the head to the logit difference between the right and the wrong one of two choices, at the first token in
    /// which they differ, in logits; mean over pairs.
    LogitAttribution,
    /// `Σ_B (∂L_B/∂ξ_h)²` in nats², where L_B is the mean loss of 32 consecutive segments (possibly fewer at the end): Kwon et al. (2022),
    /// Section 4.1.
    ///
    /// Differs from the paper: the segments of a batch are neighbours in the split, not drawn.
    FisherBatches,
    /// The l2 norm over a head's channels of `sqrt(Σ_x a(x)²)`, where a(x) is the mean absolute head output over the positions of segment
    /// x.
    ///
    /// Differs from Minitron: heads are compared across all layers, not within their group of keys and values, and padding is ignored.
    ActivationNorm,
    /// Sum of `|∂L(x)/∂ξ_h|` over the heads of the attention module, in nats, mean over segments or positions, as requested; equal for all
    /// heads of a module.
    ModuleImportance,
    /// Cosine similarity of the residual stream before and after the head's attention module, mean over positions; equal for all heads of a
    /// module: He et al. (2024). Compares x with x + attention(norm(x)) for pre-norm, and x with norm(x + attention(x)) for post-norm.
    ModuleSimilarity,
    /// `-∂L(x)/∂ξ_h` in nats, mean over segments: the first-order estimate of the increase in loss from masking the head. Importance
    /// without absolute values, so segments in which the head helps and hurts cancel.
    FirstOrder,
    /// Loss of score with the head masked, in the unit of the metric; missing if `ablate-one` was not run.
    Oracle,
}

/// Computation that a criterion needs. Loss gradients need labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Forward passes that keep the attention weights.
    AttentionWeights,
    /// Gradients of each segment's loss with respect to the gates.
    GateGradients,
    /// Gradients of each segment's loss with respect to the gates, with a gate for each query.
    QueryGateGradients,
    /// Gradients of each segment's loss with respect to the attention weights, which are kept.
    WeightGradients,
    /// Forward passes of a language model over pairs of choices.
    ChoicesOfTwo,
    /// Forward passes that keep the head outputs.
    Contexts,
    /// Forward passes that compare the residual stream before and after each attention module.
    Residuals,
    /// Other criteria.
    Measures,
    /// Results of `ablate-one`.
    Results,
}

/// End of a criterion's scale at which heads are masked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// Heads with the smallest values are masked first.
    Least,
    /// Heads with the largest values are masked first.
    Greatest,
}

/// Entry of the table of criteria.
#[derive(Debug)]
pub struct Entry {
    /// The criterion.
    pub measure: Measure,
    /// Name in files.
    pub name: &'static str,
    /// Name in figures and tables; `None` for intermediate results, which are not shown.
    pub label: Option<&'static str>,
    /// Unit; empty for shares.
    pub unit: &'static str,
    /// End at which heads are masked first.
    pub first: First,
    /// Computation that it needs.
    pub needs: Needs,
    /// Name on the command line and description, if it alone can rank heads.
    pub order: Option<(&'static str, &'static str)>,
    /// Paper that it is from.
    pub source: &'static str,
}

const MICHEL: &str = "Michel et al. (2019), Section 4.1";
const THEIR_CODE: &str = "the code of Michel et al. (2019)";

const PLAIN: Entry = Entry {
    measure: Measure::Oracle,
    name: "oracle",
    label: None,
    unit: "",
    first: First::Least,
    needs: Needs::Results,
    order: None,
    source: MICHEL,
};

const TABLE: &[Entry; 17] = &[
    Entry { measure: Measure::Example, name: "example", unit: "nats", needs: Needs::GateGradients, ..PLAIN },
    Entry {
        measure: Measure::ExampleNormalised,
        name: "example_normalised",
        label: Some("importance"),
        needs: Needs::Measures,
        ..PLAIN
    },
    Entry {
        measure: Measure::Token,
        name: "token",
        unit: "nats",
        needs: Needs::QueryGateGradients,
        source: THEIR_CODE,
        ..PLAIN
    },
    Entry {
        measure: Measure::TokenNormalised,
        name: "token_normalised",
        label: Some("importance by token"),
        needs: Needs::Measures,
        source: THEIR_CODE,
        ..PLAIN
    },
    Entry {
        measure: Measure::AttentionGradient,
        name: "attention_gradient",
        label: Some("attention gradient"),
        unit: "nats",
        needs: Needs::WeightGradients,
        order: Some((
            "attention-gradient",
            "Mean absolute gradient of the loss with respect to the attention weights",
        )),
        source: "to compare with",
        ..PLAIN
    },
    Entry {
        measure: Measure::Entropy,
        name: "entropy",
        label: Some("entropy"),
        unit: "nats",
        first: First::Greatest,
        needs: Needs::AttentionWeights,
        order: Some(("entropy", "Negative entropy of the attention weights")),
        source: "to compare with",
    },
    Entry {
        measure: Measure::NormalisedEntropy,
        name: "entropy_normalised",
        first: First::Greatest,
        needs: Needs::AttentionWeights,
        source: "an ingredient of HIS+AE",
        ..PLAIN
    },
    Entry {
        measure: Measure::Confidence,
        name: "confidence",
        label: Some("confidence"),
        needs: Needs::AttentionWeights,
        order: Some(("confidence", "Maximum attention weight, averaged over queries")),
        source: "Voita et al. (2019), Section 4",
        ..PLAIN
    },
    Entry {
        measure: Measure::ImportanceEntropy,
        name: "importance_entropy",
        label: Some("importance + entropy"),
        needs: Needs::Measures,
        order: Some(("importance-entropy", "Weighted sum of importance and entropy")),
        source: "HIS+AE",
        ..PLAIN
    },
    Entry {
        measure: Measure::Fisher,
        name: "fisher",
        label: Some("Fisher"),
        unit: "nats\u{b2}",
        needs: Needs::GateGradients,
        order: Some(("fisher", "Mean squared gradient of an example's loss with respect to the head's gate")),
        source: "Kwon et al. (2022), by examples",
        ..PLAIN
    },
    Entry {
        measure: Measure::LogitAttribution,
        name: "logit_attribution",
        label: Some("logit attribution"),
        unit: "logits",
        needs: Needs::ChoicesOfTwo,
        order: Some(("logit-attribution", "Direct contribution to the logit difference of two choices")),
        source: "Wang et al. (2023), Section 3.1",
        ..PLAIN
    },
    Entry {
        measure: Measure::FisherBatches,
        name: "fisher_batches",
        label: Some("Fisher by batches"),
        unit: "nats\u{b2}",
        needs: Needs::GateGradients,
        order: Some((
            "fisher-batches",
            "Squared gradient of the mean loss of 32 examples with respect to the head's gate, summed",
        )),
        source: "Kwon et al. (2022), Section 4.1",
        ..PLAIN
    },
    Entry {
        measure: Measure::ActivationNorm,
        name: "activation_norm",
        label: Some("activation norm"),
        unit: "activation",
        needs: Needs::Contexts,
        order: Some(("activation-norm", "Norm of the head output")),
        source: "Minitron (Muralidharan et al. 2024)",
        ..PLAIN
    },
    Entry {
        measure: Measure::ModuleImportance,
        name: "module_importance",
        label: Some("module importance"),
        unit: "nats",
        needs: Needs::Measures,
        order: Some(("modules", "Sum of the importance of the heads of a module; masks whole modules")),
        source: "to compare with",
        ..PLAIN
    },
    Entry {
        measure: Measure::ModuleSimilarity,
        name: "module_similarity",
        label: Some("module similarity"),
        first: First::Greatest,
        needs: Needs::Residuals,
        order: Some((
            "modules-by-similarity",
            "Cosine of the residual stream before and after a module; masks whole modules",
        )),
        source: "He et al. (2024)",
        ..PLAIN
    },
    Entry {
        measure: Measure::FirstOrder,
        name: "first_order",
        label: Some("first order"),
        unit: "nats",
        needs: Needs::GateGradients,
        order: Some(("first-order", "Negative mean gradient of the loss with respect to the gate")),
        source: "attribution patching (Kram\u{e1}r et al. 2024)",
        ..PLAIN
    },
    Entry { label: Some("oracle"), unit: "score lost", ..PLAIN },
];

impl Measure {
    /// All criteria, in the order of the table.
    pub const ALL: [Self; TABLE.len()] = {
        let mut all = [Self::Oracle; TABLE.len()];
        let mut place = 0;
        while place < TABLE.len() {
            all[place] = TABLE[place].measure;
            place += 1;
        }
        all
    };

    /// Returns its entry in the table.
    pub fn entry(self) -> &'static Entry {
        &TABLE[self as usize]
    }

    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// Returns the criteria measured by passes over the data, from which all others but the oracle are computed; logit attribution needs
    /// pairs of choices.
    pub fn of_passes() -> impl Iterator<Item = Self> {
        Self::ALL
            .into_iter()
            .filter(|measure| !matches!(measure.entry().needs, Needs::Measures | Needs::Results))
    }

    /// Returns a value with the sign that sorts heads to be masked first to the front.
    pub fn ascending(self, value: f64) -> f64 {
        match self.entry().first {
            First::Least => value,
            First::Greatest => -value,
        }
    }

    /// Returns true if it needs attention weights to be kept.
    pub fn is_of_weights(self) -> bool {
        matches!(self.entry().needs, Needs::AttentionWeights | Needs::WeightGradients)
    }

    /// Returns true if it needs a backward pass.
    pub fn is_gradient(self) -> bool {
        use Needs::{GateGradients, QueryGateGradients, WeightGradients};
        matches!(self.entry().needs, GateGradients | QueryGateGradients | WeightGradients)
    }
}

named!(Measure, "criterion", Measure::ALL);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_measure_has_its_own_entry_and_name() {
        for (place, measure) in Measure::ALL.into_iter().enumerate() {
            assert_eq!((measure as usize, measure.entry().measure), (place, measure));
            assert_eq!(measure.name().parse(), Ok(measure));
        }
    }
}
