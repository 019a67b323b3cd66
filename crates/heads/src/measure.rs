//! Table of measures: numbers that heads are compared by, and that orders of heads go by.
//!
//! Files hold one row for each head and measure, so that a new measure is an entry here and its computation; results without it
//! stay readable. Add entries before the oracle: rows, legends and tables follow the order of the table.
use crate::names::named;

/// Number that says what a head is worth, or what it does: a mean over a split, unless it says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    /// `|∂L(x)/∂ξ_h|` in nats, mean over examples: Equation 2.
    Example,
    /// The same, divided by the l2 norm of its layer, 0 to 1.
    ExampleNormalised,
    /// The same at each query position, mean over positions: |context · its gradient|, in nats.
    ///
    /// Differs from the paper: this is what its authors' code does. In the last layer of BERT, where only the first position
    /// has a gradient, that code divides by the number of examples, and so does this.
    Token,
    /// The same, divided by the l2 norm of its layer, 0 to 1.
    TokenNormalised,
    /// `Σ |∂L(x)/∂A_h|` over the attention weights of real queries and visible keys, in nats, mean over examples.
    AttentionGradient,
    /// Entropy of the attention weights of a query, in nats, mean over queries.
    Entropy,
    /// Entropy as a share of its greatest value, the logarithm of the number of visible keys; mean over queries that see more
    /// than one.
    NormalisedEntropy,
    /// The greatest attention weight of a query, the end-of-sentence symbol left out as a key; mean over queries. Of
    /// classifiers nothing is left out: `[SEP]` stands between two texts too.
    Confidence,
    /// `w I_h + (1 - w) H_h`, 0 to 1: normalised importance, by example or by token, and normalised entropy.
    ImportanceEntropy,
    /// `(∂L(x)/∂ξ_h)²` in nats², mean over examples: the diagonal of the empirical Fisher information of the gates.
    ///
    /// Differs from Kwon et al. (2022), who square the derivative of the mean loss of each batch.
    Fisher,
    /// The direct part of the head in the logit of the right choice minus that of the other, of choices of two, at the first token in
    /// which they differ, in logits; mean over pairs.
    LogitAttribution,
    /// `Σ_B (∂L_B/∂ξ_h)²` in nats², L_B being the mean loss of 32 consecutive examples (the last ones may be fewer): Kwon et al. (2022),
    /// Section 4.1.
    ///
    /// Differs from the paper: examples of a batch are neighbours in the split, not drawn.
    FisherBatches,
    /// The l2 norm over a head's channels of `sqrt(Σ_x a(x)²)`, a(x) being the mean over the positions of example x of |what W_o reads|.
    ///
    /// Differs from Minitron: heads of all layers are compared as they are, not within their group of keys and values, and padding does
    /// not count.
    ActivationNorm,
    /// The sum of `|∂L(x)/∂ξ_h|` over the heads of the attention module, in nats, mean over examples or over positions, as asked; one
    /// number for all of them.
    ModuleImportance,
    /// The cosine of the residual stream before and behind the head's attention module, mean over positions; one number for all
    /// heads of a module: He et al. (2024). With normalisation before the module it is that of x and x + attention(norm(x)), with
    /// normalisation behind it that of x and norm(x + attention(x)).
    ModuleSimilarity,
    /// `-∂L(x)/∂ξ_h` in nats, mean over examples: the first-order estimate of what masking the head adds to the loss. Importance without
    /// absolute values, so that examples in which the head helps and hurts cancel.
    FirstOrder,
    /// Score that is lost without the head, in the unit of the metric; absent where `ablate-one` was not run.
    Oracle,
}

/// Computation that a measure takes. The loss of a gradient needs labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Forward passes that keep the attention weights.
    AttentionWeights,
    /// Derivatives of each example's loss with respect to the gates.
    GateGradients,
    /// The same, with a gate for each query.
    QueryGateGradients,
    /// Derivatives of each example's loss with respect to the attention weights, which are kept.
    WeightGradients,
    /// Forward passes of a language model over choices of two.
    ChoicesOfTwo,
    /// Forward passes that keep what W_o reads of each head.
    Contexts,
    /// Forward passes that compare the residual stream before and behind each attention module.
    Residuals,
    /// Other measures.
    Measures,
    /// Results of `ablate-one`.
    Results,
}

/// End of a measure at which heads are masked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// Heads with the least value go first.
    Least,
    /// Heads with the greatest value go first.
    Greatest,
}

/// Entry of the table.
#[derive(Debug)]
pub struct Entry {
    /// The measure.
    pub measure: Measure,
    /// Name in files.
    pub name: &'static str,
    /// Name in figures and tables; none for ingredients of others, which they do not show.
    pub label: Option<&'static str>,
    /// Unit; nothing for shares.
    pub unit: &'static str,
    /// End that is masked first.
    pub first: First,
    /// Computation that it takes.
    pub needs: Needs,
    /// Name on the command line and description, where heads can be ordered by it alone.
    pub order: Option<(&'static str, &'static str)>,
    /// Paper that it is from.
    pub source: &'static str,
}

const MICHEL: &str = "Michel et al. (2019), Section 4.1";
const THEIR_CODE: &str = "the code of Michel et al. (2019)";

/// Entry from which others tell their differences.
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
        label: Some("importance of the module"),
        unit: "nats",
        needs: Needs::Measures,
        order: Some(("modules", "Sum of the importance of the heads of a module; masks whole modules")),
        source: "to compare with",
        ..PLAIN
    },
    Entry {
        measure: Measure::ModuleSimilarity,
        name: "module_similarity",
        label: Some("similarity around the module"),
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
        order: Some(("first-order", "Mean signed gradient of the loss with respect to the head's gate")),
        source: "attribution patching (Kram\u{e1}r et al. 2024)",
        ..PLAIN
    },
    Entry { label: Some("oracle"), unit: "score lost", ..PLAIN },
];

impl Measure {
    /// All measures, in the order of the table.
    pub const ALL: [Self; TABLE.len()] = {
        let mut all = [Self::Oracle; TABLE.len()];
        let mut place = 0;
        while place < TABLE.len() {
            all[place] = TABLE[place].measure;
            place += 1;
        }
        all
    };

    /// Its entry in the table.
    pub fn entry(self) -> &'static Entry {
        &TABLE[self as usize]
    }

    /// The name in files.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// Measures that passes over the data give, from which all others but the oracle are made; that of choices of two only where there
    /// are some.
    pub fn of_passes() -> impl Iterator<Item = Self> {
        Self::ALL
            .into_iter()
            .filter(|measure| !matches!(measure.entry().needs, Needs::Measures | Needs::Results))
    }

    /// A value of it as orders have it, those to be masked first least.
    pub fn ascending(self, value: f64) -> f64 {
        match self.entry().first {
            First::Least => value,
            First::Greatest => -value,
        }
    }

    /// Returns true if attention weights are kept for it.
    pub fn is_of_weights(self) -> bool {
        matches!(self.entry().needs, Needs::AttentionWeights | Needs::WeightGradients)
    }

    /// Returns true if it takes a backward pass.
    pub fn is_gradient(self) -> bool {
        use Needs::{GateGradients, QueryGateGradients, WeightGradients};
        matches!(self.entry().needs, GateGradients | QueryGateGradients | WeightGradients)
    }
}

named!(Measure, "measure of heads", Measure::ALL);

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
