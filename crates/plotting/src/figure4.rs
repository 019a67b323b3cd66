//! Figure 4: the score over the share of masked heads of one attention type (Michel et al. 2019, Section 5).
use records::PruningRow;

use crate::Error;
use crate::attention::Attention;
use crate::figure::canvas::Figure;
use crate::figure::legend::Entry;
use crate::figure::lines::{Line, LinePlot, Style};
use crate::figure::mark::{Mark, Shape};
use crate::figure::palette::GREY;
use crate::figure3::{base, floor, head, pieces, turned, worse_than_base};
use crate::metric::Metric;
use crate::pruning::Pruning;
use crate::pruning::curve::Series;
use crate::pruning::order::Scope;
use crate::significance::Criterion;

/// Name of its files, without extension.
pub const FILE_STEM: &str = "figure4";

/// One curve for each attention type, by importance, with its complement and its floor; hollow points are a significant
/// loss.
///
/// # Errors
/// If there are no such curves, or drawing fails.
pub fn figure4(pruning: &Pruning, criterion: Criterion) -> Result<Figure, Error> {
    let types = pruning.types()?;
    let line = |&(attention, series): &(Attention, &Series)| {
        let is_complement = series.curve.is_complement;
        let name = if is_complement {
            attention.to_string()
        } else {
            format!("{attention} ({})", attention.description())
        };
        let (name, style) = turned(name, style(attention), is_complement);
        Line { name: name + pruning.state(series), style, pieces: pieces(series, criterion, !is_complement) }
    };
    let floor = |(scope, row): (&Scope, &PruningRow)| match *scope {
        Scope::One(attention) => Some(floor(pruning, row.score, attention.name(), style(attention).color)),
        Scope::All => None,
    };
    let has_loss = types.iter().any(|(_, series)| !series.curve.is_complement && series.has_loss(criterion));
    let plot = LinePlot {
        title: format!("{}; by attention type", pruning.title()),
        head: head(pruning),
        lines: types.iter().map(line).collect(),
        base: base(pruning),
        floors: pruning.floors().iter().filter_map(floor).collect(),
        cuts: Vec::new(),
        hollow: has_loss.then(|| hollow(&pruning.metric, criterion)),
        labels: ["heads of the type masked (%)".to_owned(), pruning.metric.axis_label()],
    };
    plot.figure()
}

fn hollow(metric: &Metric, criterion: Criterion) -> Entry {
    let style = Style::line(GREY).width(0.0).marked(Shape::Circle, 1.7);
    Entry { style, is_hollow: true, text: format!("hollow: {}", worse_than_base(metric, criterion)) }
}

fn style(attention: Attention) -> Style {
    let Mark { shape, radius, edge, .. } = Mark::of(attention, 1.7);
    Style::line(edge).width(1.0).marked(shape, radius)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::significance::Adjustment;
    use crate::test_rows::{file, pruning_row as row};

    const CRITERION: Criterion = Criterion { alpha: 0.01, adjustment: Adjustment::None };

    #[test]
    fn each_type_has_its_curve_and_other_orders_have_none() {
        let rows = vec![
            row("enc-enc", "importance", None, 0, (0, 10), 30.0),
            row("dec-dec", "importance", None, 0, (0, 10), 30.0),
            row("enc-dec", "random", Some(1), 0, (0, 10), 30.0),
            row("all", "importance", None, 0, (0, 30), 30.0),
        ];
        let pruning = Pruning::from_rows(file(), rows).unwrap();
        let figure = figure4(&pruning, CRITERION).unwrap();
        for name in
            ["enc-enc (encoder self-attention)", "dec-dec (decoder self-attention)", "heads of the type"]
        {
            assert!(figure.svg().contains(name), "`{name}` is missing");
        }
        assert!(!figure.svg().contains("enc-dec") && !figure.svg().contains("hollow"));
    }

    #[test]
    fn a_model_with_one_type_has_no_such_figure() {
        let rows = vec![row("self", "importance", None, 0, (0, 10), 30.0)];
        let pruning = Pruning::from_rows(file(), rows).unwrap();
        let message = figure4(&pruning, CRITERION).unwrap_err().to_string();
        assert!(message.starts_with("no rows for attention type enc-enc, enc-dec or dec-dec"), "{message}");
    }
}
