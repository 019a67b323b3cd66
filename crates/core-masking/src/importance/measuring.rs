//! Criteria for ranking heads, from one forward pass over a batch and, for gradients, one backward pass.
use std::collections::{BTreeMap, BTreeSet};

use heads::{Measure, Needs};
use tch::{Kind, Tensor, no_grad};

use super::{HeadMeans, Measured, Terms};
use crate::gates::RecordedWeights;
use crate::{Attention, AttentionRecord, Gates, HeadId, HeadLayout};

/// Which queries and keys of the attention modules of one type count.
#[derive(Debug)]
pub struct Attended {
    /// `[batch, query]`, true at real positions, false at padding.
    pub queries: Tensor,
    /// True at keys that a query sees, per layer or once for all layers; broadcasts to `[batch, 1, query, key]`.
    pub visible: Vec<Tensor>,
    /// `[batch, key]`, true at keys that confidence ignores.
    pub excluded: Tensor,
    /// True if the last layer's [`Measure::Token`] is divided by the number of examples.
    pub last_by_example: bool,
    /// Example of each row, `[batch]`; `None` if every row is an example.
    pub examples: Option<Tensor>,
}

pub(crate) struct Measuring<'a> {
    /// Gates at which derivatives are taken, one row.
    pub(crate) gates: &'a Gates,
    pub(crate) modules: &'a BTreeMap<Attention, Attended>,
    pub(crate) measures: &'a BTreeSet<Measure>,
    /// Layout of the heads that are measured.
    pub(crate) layout: &'a HeadLayout,
}

impl Measuring<'_> {
    /// Runs the passes; `losses` computes the loss of each example under given gates, `[batch]`.
    pub(crate) fn run(&self, losses: impl Fn(&Gates) -> Tensor) -> Measured {
        let [record, contexts, residuals] = [(); 3].map(|()| AttentionRecord::default());
        let leaves = self.leaves();
        let of_row = self.modules.values().find_map(|module| module.examples.as_ref());
        let gates = Gates::from_stacked(&leaves).replaced_like(self.gates, of_row);
        let is_any = |is_so: &dyn Fn(Measure) -> bool| self.measures.iter().any(|&measure| is_so(measure));
        let needs = |needs| is_any(&|measure| measure.entry().needs == needs);
        let gates = if is_any(&Measure::is_of_weights) { gates.recorded_in(&record) } else { gates };
        let gates = if needs(Needs::Contexts) { gates.contexts_in(&contexts) } else { gates };
        let gates = if needs(Needs::Residuals) { gates.residuals_in(&residuals) } else { gates };
        if self.measures.is_empty() {
            return Measured::new();
        }
        let mut found = Found::default();
        let mut take = || {
            (found.weights, found.contexts, found.residuals) =
                (record.take(), contexts.take(), residuals.take());
        };
        if !is_any(&Measure::is_gradient) {
            no_grad(|| drop(losses(&gates)));
            take();
            return no_grad(|| self.reduce(&found));
        }
        let loss = losses(&gates).sum(None);
        take();
        let mut inputs: Vec<&Tensor> = leaves.values().collect();
        if needs(Needs::WeightGradients) {
            inputs.extend(found.weights.values());
        }
        let mut gradients = Tensor::run_backward(&[&loss], &inputs, false, false).into_iter();
        found.of_gates = leaves.keys().copied().zip(gradients.by_ref()).collect();
        found.of_weights = found.weights.keys().copied().zip(gradients).collect();
        no_grad(|| self.reduce(&found))
    }

    /// Returns gates that require a gradient, by attention type: `[layers, batch, heads]`, or `[layers, batch, heads, query]`.
    fn leaves(&self) -> BTreeMap<Attention, Tensor> {
        let by_query = self.measures.iter().any(|measure| measure.entry().needs == Needs::QueryGateGradients);
        let leaf = |(attention, gates): (Attention, Tensor)| {
            let (shape, queries) = (gates.size(), self.modules[&attention].queries.size());
            let (layers, heads) = (shape[0], shape[2]);
            let wide = if by_query {
                gates.unsqueeze(-1).expand([layers, queries[0], heads, queries[1]], false)
            } else {
                gates.expand([layers, queries[0], heads], false)
            };
            (attention, wide.copy().set_requires_grad(true))
        };
        self.gates.stacked().into_iter().map(leaf).collect()
    }

    fn reduce(&self, found: &Found) -> Measured {
        let sizes: BTreeMap<Attention, usize> = self
            .gates
            .stacked()
            .iter()
            .map(|(&attention, gates)| (attention, gates.size()[0] as usize))
            .collect();
        let mut measured = Measured::new();
        for &measure in self.measures {
            let mut means = HeadMeans::default();
            for (&attention, &layers) in &sizes {
                for layer in 0..layers {
                    let key = (attention, layer);
                    let source = match measure.entry().needs {
                        Needs::GateGradients | Needs::QueryGateGradients => {
                            &found.of_gates[&attention].get(layer as i64)
                        }
                        Needs::WeightGradients => &found.of_weights[&key],
                        Needs::Contexts => &found.contexts[&key],
                        Needs::Residuals => &found.residuals[&key],
                        _ => &found.weights[&key],
                    };
                    let sums = self.modules[&attention].sum(measure, source, (layer, layers));
                    for head in self.layout.kept(attention, layer) {
                        let head = head as usize;
                        means.add(HeadId::from_index(attention, layer, head), sums.of(head));
                    }
                }
            }
            measured.insert(measure, means);
        }
        measured
    }
}

/// Tensors that criteria are computed from, by attention type and layer.
#[derive(Debug, Default)]
struct Found {
    /// Gradients with respect to the gates of all layers.
    of_gates: BTreeMap<Attention, Tensor>,
    weights: RecordedWeights,
    /// Gradients with respect to attention weights.
    of_weights: RecordedWeights,
    contexts: RecordedWeights,
    residuals: RecordedWeights,
}

#[derive(Debug)]
pub(crate) struct Sums {
    values: Vec<f64>,
    squares: Option<Vec<f64>>,
    /// Derivatives that are needed one by one, by head.
    derivatives: Option<Vec<Vec<f64>>>,
    count: f64,
}

impl Sums {
    fn new(values: &Tensor, count: f64) -> Self {
        Self { values: crate::to_vec(values), squares: None, derivatives: None, count }
    }

    /// Sums one term per segment and head, `[segments, heads]`.
    pub(crate) fn of_segments(terms: &Tensor) -> Self {
        let sum = |terms: &Tensor| terms.sum_dim_intlist(0, false, Kind::Double);
        let squares = Some(crate::to_vec(&sum(&terms.square())));
        Self { squares, ..Self::new(&sum(terms), terms.size()[0] as f64) }
    }

    pub(crate) fn of(&self, head: usize) -> Terms {
        let squares = self.squares.as_ref().map(|squares| squares[head]);
        let derivatives = self.derivatives.as_ref().map_or_else(Vec::new, |all| all[head].clone());
        Terms { sum: self.values[head], squares, count: self.count, derivatives }
    }
}

impl Attended {
    /// Sums a criterion's terms for the heads of a layer, which is counted from 0.
    ///
    /// `source`: the tensor that [`Needs`] names, for this layer
    fn sum(&self, measure: Measure, source: &Tensor, (layer, layers): (usize, usize)) -> Sums {
        let examples = self.examples() as f64;
        let queries = || self.queries.sum(Kind::Double).double_value(&[]);
        let wide = source.to_kind(Kind::Double);
        match measure {
            Measure::Example => Sums::of_segments(&self.by_example(wide).abs()),
            Measure::Fisher => Sums::of_segments(&self.by_example(wide).square()),
            Measure::FisherBatches | Measure::FirstOrder => {
                let own = self.by_example(wide); // [examples, heads]
                let by_head = own.unbind(1).iter().map(crate::to_vec).collect();
                let terms = if measure == Measure::FirstOrder { -own } else { own.square() };
                Sums { derivatives: Some(by_head), ..Sums::of_segments(&terms) }
            }
            Measure::ActivationNorm => {
                let real = self.queries.unsqueeze(1).unsqueeze(-1).to_kind(Kind::Double); // [batch, 1, query, 1]
                let sums = (wide.abs() * real).sum_dim_intlist(2, false, None); // [batch, heads, d_head]
                let sums = self.by_example(sums.flatten(1, 2)); // [examples, heads * d_head]
                let positions = self.by_example(self.queries.sum_dim_intlist(1, true, Kind::Double));
                let squares = (sums / positions).square().unflatten(1, [wide.size()[1], -1]);
                Sums::new(&squares.sum_dim_intlist([0_i64, 2].as_slice(), false, None), examples)
            }
            Measure::ModuleSimilarity => Sums::new(&self.over_queries(wide), queries()),
            Measure::Token => {
                let terms = if self.last_by_example && layer + 1 == layers { examples } else { queries() };
                Sums::new(&self.over_queries(wide.abs()), terms)
            }
            Measure::AttentionGradient => {
                let visible = wide.abs() * self.visible(layer).to_kind(Kind::Double); // [batch, heads, query, key]
                Sums::new(&self.over_queries(visible.sum_dim_intlist(3, false, None)), examples)
            }
            Measure::Entropy => Sums::new(&self.over_queries(entropy(&wide)), queries()),
            Measure::NormalisedEntropy => self.normalised_entropy(&wide, layer),
            Measure::Confidence => {
                let excluded = self.excluded.unsqueeze(1).unsqueeze(1); // [batch, 1, 1, key]
                let greatest = wide.masked_fill(&excluded, 0.0).amax([3], false); // [batch, heads, query]
                Sums::new(&self.over_queries(greatest), queries())
            }
            _ => panic!("no pass over the data measures {measure}"),
        }
    }

    /// Sums `[batch, heads, query]` over real queries; returns `[heads]`.
    fn over_queries(&self, values: Tensor) -> Tensor {
        let real = self.queries.unsqueeze(1).to_kind(Kind::Double); // [batch, 1, query]
        (values * real).sum_dim_intlist([0_i64, 2].as_slice(), false, None)
    }

    /// Returns the first row of each example, `[examples]`.
    pub(crate) fn first_rows(&self) -> Tensor {
        let rows = self.queries.size()[0];
        let example_of: Vec<i64> = self.examples.as_ref().map_or_else(|| (0..rows).collect(), crate::to_vec);
        let is_first = |&row: &usize| row == 0 || example_of[row] != example_of[row - 1];
        let first: Vec<i64> = (0..example_of.len()).filter(is_first).map(|row| row as i64).collect();
        Tensor::from_slice(&first).to_device(self.queries.device())
    }

    fn examples(&self) -> i64 {
        let rows = self.queries.size()[0];
        self.examples.as_ref().map_or(rows, |of_rows| of_rows.max().int64_value(&[]) + 1)
    }

    /// Sums derivatives of rows, `[batch, heads]` or `[batch, heads, query]`, by example: `[examples, heads]`.
    fn by_example(&self, wide: Tensor) -> Tensor {
        let by_row = if wide.dim() == 3 { wide.sum_dim_intlist(2, false, None) } else { wide }; // [batch, heads]
        match &self.examples {
            None => by_row,
            Some(of_rows) => {
                let size = [self.examples(), by_row.size()[1]];
                by_row.new_zeros(size, (by_row.kind(), by_row.device())).index_add(0, of_rows, &by_row)
            }
        }
    }

    fn visible(&self, layer: usize) -> &Tensor {
        &self.visible[layer.min(self.visible.len() - 1)]
    }

    /// Sums the normalised entropy of `weights`, `[batch, heads, query, key]`.
    fn normalised_entropy(&self, weights: &Tensor, layer: usize) -> Sums {
        let visible = self.visible(layer).sum_dim_intlist(3, false, Kind::Double); // [batch or 1, 1, query or 1]
        let most = visible.log(); // entropy of uniform attention
        let share = entropy(weights) / most.clamp_min(f64::MIN_POSITIVE); // [batch, heads, query]
        let spreads = self.queries.unsqueeze(1).logical_and(&visible.gt(1.0)); // [batch, 1, query]
        let sums =
            (share * spreads.to_kind(Kind::Double)).sum_dim_intlist([0_i64, 2].as_slice(), false, None);
        Sums::new(&sums, spreads.sum(Kind::Double).double_value(&[]))
    }
}

/// Returns the entropy of each row in nats: `[batch, heads, query, key]` to `[batch, heads, query]`.
fn entropy(weights: &Tensor) -> Tensor {
    -weights.xlogy(weights).sum_dim_intlist(3, false, None)
}
