//! The question that Michel et al. (2019) leave open: language models.
use records::{Order, Scope};

use super::claims::{base, floor, share_of};
use super::{Cells, Claim, row};
use crate::data::subject::Subject;
use crate::data::sweep::Sweep;
use crate::judge::{Criterion, Which};
use crate::view::Context;
use crate::words::count;

/// Section 8 of the paper names other models as future work; it has no numbers of them.
pub fn question(all: &[Subject], context: Context<'_>) -> Claim {
    // The first file that there is says of which model it is.
    let is_meant = |subject: &&Subject| subject.files().next().is_some_and(|file| file.is_language());
    Claim {
        name: "M19's question: a language model",
        how_to_read: "How to read it: decoder-only models, of which the paper has no numbers. Single heads: those whose masking alone \
                      changes the score significantly, adjusted for a single false alarm among all. Shares are of the order by \
                      importance, by the two rules above, with the change of the score there and its 95 % interval. Of nats the less \
                      the better, and a change by d multiplies the perplexity with exp(d)."
            .to_owned(),
        columns: "model and test set | base | nats a word | single heads | shown safe | change and interval | no significant loss | change and interval | floor",
        published: Vec::new(),
        measured: all.iter().filter(is_meant).filter_map(|subject| answer(subject, context.criterion)).collect(),
        remarks: Vec::new(),
    }
}

/// The row of a subject; none without a curve by importance or a sweep.
fn answer(subject: &Subject, criterion: Criterion) -> Option<Cells> {
    let alone = subject.sweep.as_ref().map_or(String::new(), |sweep| single_heads(sweep, criterion));
    let words = subject.nats_a_word.map_or(String::new(), |nats| format!("{nats:.3}"));
    let Some(pruning) = &subject.pruning else {
        let sweep = subject.sweep.as_ref()?;
        let base = sweep.metric.described(sweep.base);
        return Some(row([&sweep.file.title(), &base, &words, &alone]));
    };
    let shares = pruning
        .find(Scope::All, Order::Importance)
        .map(|series| Which::BOTH.map(|which| share_of(pruning, series, criterion, which)));
    let [safe, no_loss] = shares.unwrap_or_default();
    let (title, base, floor) = (pruning.file.title(), base(pruning), floor(pruning, Scope::All));
    Some(row([&title, &base, &words, &alone, &safe[0], &safe[1], &no_loss[0], &no_loss[1], &floor]))
}

/// `3 of 96 heads`; empty where none was tested.
fn single_heads(sweep: &Sweep, criterion: Criterion) -> String {
    let tally = criterion.adjusted().tally(&sweep.rows);
    if tally.tested == 0 {
        return String::new();
    }
    format!("{} of {}", tally.significant, count(tally.tested, "head"))
}
