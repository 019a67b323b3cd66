//! Artefacts: each module reads results, analyses them, and draws a table, a figure, or several that belong together.
pub(crate) mod ablation_kinds;
mod agreement;
mod audit;
pub mod best_heads;
pub mod cross_domain;
pub(crate) mod curves;
mod deciding;
mod dynamics;
mod effects;
mod functions;
mod gates;
mod groups;
pub mod heat_map;
mod llama_cpp;
mod named_heads;
pub mod replicates;
mod single_heads;
mod speed;

use crate::artefact::Artefact;

/// Everything that can be drawn for one setup, in report order.
pub const ARTEFACTS: &[Artefact] = &[
    single_heads::TABLE,
    single_heads::HISTOGRAM,
    effects::ARTEFACT,
    deciding::ARTEFACT,
    heat_map::EFFECTS,
    replicates::ARTEFACT,
    ablation_kinds::ARTEFACT,
    best_heads::SAME_SPLIT,
    best_heads::OTHER_SPLIT,
    curves::figures::FIGURE3,
    curves::figures::FIGURE4,
    curves::ablation_kinds::ARTEFACT,
    curves::retrained::ARTEFACT,
    curves::method_comparison::ARTEFACT,
    cross_domain::ARTEFACT,
    audit::ARTEFACT,
    speed::ARTEFACT,
    llama_cpp::ARTEFACT,
    dynamics::ARTEFACT,
    functions::TABLE,
    functions::CENSUS,
    named_heads::ARTEFACT,
    heat_map::RELEVANCE,
    gates::CURVES,
    gates::FUNCTIONS,
    gates::LAYERS,
    gates::TABLE,
    gates::CONTRASTS,
    agreement::ARTEFACT,
    heat_map::SCORES,
    groups::ARTEFACT,
];
