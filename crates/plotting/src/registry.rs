//! What can be drawn: for each artefact its name, the results that it is made of, and its view. `all` and the commands of
//! single artefacts go through this list.
use std::path::Path;

use records::{Attention, BASE, Blocks};

use crate::Error;
use crate::data::best_heads::BestHeads;
use crate::data::dynamics::{self, Dynamics};
use crate::data::groups::Groups;
use crate::data::pair::{self, Pair};
use crate::data::pruning::{self, Pruning};
use crate::data::sweep::{self, Sweep};
use crate::error::LeftOut;
use crate::source::{ResultFile, Source};
use crate::view::agreement::{self, Importance};
use crate::view::summary::Subject;
use crate::view::{
    Context, best_heads, cross_domain, dynamics as training, groups, heat_map, histogram, pruning_curves,
    pruning_table, single_heads, speed,
};
use crate::write::Sheet;

/// What a command asks for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// What views need.
    pub context: Context<'a>,
    /// The folder with the results of all subjects.
    pub results: &'a Path,
    /// The attention types to show.
    pub attention: Selection,
    /// The second split of a comparison; any if absent.
    pub against: Option<&'a str>,
    /// Whether everything is drawn, so that an artefact that does not apply is left out and not an error.
    pub is_all: bool,
}

/// Which attention types a table or figure shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Selection {
    /// `enc-enc` as in the paper if it is present, else all types.
    #[default]
    Paper,
    /// This type alone.
    One(Attention),
    /// Every type present.
    All,
}

impl Selection {
    /// The types to show of those `present`.
    fn of(self, present: &[Attention]) -> Vec<Attention> {
        match self {
            Self::Paper if present.contains(&Attention::EncEnc) => vec![Attention::EncEnc],
            Self::One(attention) => vec![attention],
            Self::Paper | Self::All => present.to_vec(),
        }
    }
}

/// Arguments that only some artefacts take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// `--attention`.
    Attention,
    /// `--against`.
    Against,
    /// `--with-figure`.
    WithFigure,
}

type Files = Result<Vec<ResultFile>, Error>;

/// One table or figure, or some that belong together.
pub struct Artefact {
    /// The command that draws it.
    pub name: &'static str,
    /// Another name of the command.
    pub alias: Option<&'static str>,
    /// What it shows.
    pub about: &'static str,
    /// Further arguments of the command.
    pub options: &'static [Argument],
    /// All results that it can be made of; there may be none.
    pub all: fn(&Source) -> Files,
    /// Those that a command without further arguments draws.
    pub one: fn(&Source, &Asked<'_>) -> Files,
    /// Reads one of them and draws it.
    pub draw: fn(ResultFile, &Asked<'_>, &mut LeftOut) -> Result<Vec<Sheet>, Error>,
}

/// Everything that can be drawn of one subject.
pub const ARTEFACTS: &[Artefact] = &[
    Artefact {
        name: "table1",
        alias: None,
        about: "Score change for each masked head, layer x head, with the significant ones marked; for BERT in the same layout",
        options: &[Argument::Attention, Argument::WithFigure],
        all: |source| source.all(sweep::EXPERIMENT, sweep::EXPERIMENT),
        one: |source, _| Ok(vec![source.one(sweep::EXPERIMENT)?]),
        draw: |file, asked, _| table1(&Sweep::read(file, sweep::EXPERIMENT)?, asked),
    },
    Artefact {
        name: "figure1",
        alias: None,
        about: "Histogram of the scores with one head masked, beside the score of the intact model; for BERT, Figure 1b",
        options: &[Argument::Attention],
        all: |source| source.all(sweep::EXPERIMENT, sweep::EXPERIMENT),
        one: |source, _| Ok(vec![source.one(sweep::EXPERIMENT)?]),
        draw: |file, asked, _| figure1(&Sweep::read(file, sweep::EXPERIMENT)?, asked),
    },
    Artefact {
        name: "heads",
        alias: None,
        about: "Heat map of what masking each head does to the score, layer x head",
        options: &[],
        all: |source| source.all(sweep::EXPERIMENT, sweep::EXPERIMENT),
        one: |source, _| Ok(vec![source.one(sweep::EXPERIMENT)?]),
        draw: |file, asked, _| {
            let sweep = Sweep::read(file, sweep::EXPERIMENT)?;
            let chart = heat_map::effects(&sweep, asked.context);
            Ok(vec![Sheet::chart(sweep.file.stem(heat_map::EFFECTS), chart)])
        },
    },
    Artefact {
        name: "table2",
        alias: Some("table3"),
        about: "Best single head of each layer, chosen and reported on one split; for BERT, Table 3",
        options: &[],
        all: BestHeads::same_split,
        one: |source, _| Ok(vec![source.one(crate::data::best_heads::EXPERIMENT)?]),
        draw: |file, asked, _| Ok(vec![best(file, asked)?]),
    },
    Artefact {
        name: "table5",
        alias: Some("table6"),
        about: "Best single head of each layer, chosen on another split than reported; for BERT, Table 6",
        options: &[],
        all: BestHeads::other_split,
        one: |source, _| BestHeads::largest_files(source),
        draw: |file, asked, _| Ok(vec![best(file, asked)?]),
    },
    Artefact {
        name: "figure3",
        alias: Some("figure6"),
        about: "Score over the share of masked heads, and how many heads can go; for classifiers other than MNLI, Figure 6",
        options: &[],
        all: |source| source.all(pruning::EXPERIMENT, pruning::EXPERIMENT),
        one: |source, _| Ok(vec![source.one(pruning::EXPERIMENT)?]),
        draw: |file, asked, left_out| figure3(&Pruning::read(file, left_out)?, asked),
    },
    Artefact {
        name: "figure4",
        alias: None,
        about: "Score over the share of masked heads of each attention type",
        options: &[],
        all: |source| source.all(pruning::EXPERIMENT, pruning::EXPERIMENT),
        one: |source, _| Ok(vec![source.one(pruning::EXPERIMENT)?]),
        draw: |file, asked, left_out| figure4(&Pruning::read(file, left_out)?, asked),
    },
    Artefact {
        name: "figure2",
        alias: None,
        about: "Scores with one head masked on two splits, after `cross-domain`, and how far noise lets them agree",
        options: &[Argument::Against],
        all: |source| source.all(pair::EXPERIMENT, pair::EXPERIMENT),
        one: |source, asked| Pair::files(source, asked.against),
        draw: |file, asked, _| Ok(vec![figure2(&Pair::read(file, asked.results)?, asked)?]),
    },
    Artefact {
        name: "table4",
        alias: None,
        about: "Segments a second with all heads and without some, and what else is saved",
        options: &[],
        all: |source| source.all(speed::EXPERIMENT, speed::EXPERIMENT),
        one: |source, _| Ok(vec![source.one(speed::EXPERIMENT)?]),
        draw: |file, asked, _| {
            let found = speed::Speed::read(file)?;
            Ok(vec![Sheet::tables(found.file.stem(speed::STEM), speed::tables(&found, asked.context))])
        },
    },
    Artefact {
        name: "figure5",
        alias: None,
        about: "Scores with more and more heads masked while the model is trained, in percent of the unpruned ones",
        options: &[],
        all: |source| source.all(dynamics::EXPERIMENT, dynamics::EXPERIMENT),
        one: |source, _| Ok(vec![source.one(dynamics::EXPERIMENT)?]),
        draw: |file, asked, left_out| {
            let found = Dynamics::read(file)?;
            // A training without a score so far has tables alone.
            let chart = left_out.keep(training::figure5(&found))?;
            let tables = training::tables(&found, asked.context);
            Ok(vec![Sheet { chart, ..Sheet::tables(found.file.stem(training::STEM), tables) }])
        },
    },
    Artefact {
        name: "agreement",
        alias: None,
        about: "Rank correlations of what heads can be ordered by, as a matrix and a table; where heads share keys and values, also the \
                sums over such groups",
        options: &[],
        all: |source| source.all(agreement::EXPERIMENT, agreement::EXPERIMENT),
        one: |source, _| Ok(vec![source.one(agreement::EXPERIMENT)?]),
        draw: |file, _, _| {
            let found = Importance::read(file)?;
            let chart = Some(agreement::figure(&found)?);
            let sheet = Sheet::tables(found.file.stem(agreement::STEM), agreement::tables(&found)?);
            Ok(vec![Sheet { chart, ..sheet }])
        },
    },
    Artefact {
        name: "scores",
        alias: None,
        about: "Heat maps of what heads can be ordered by, layer x head",
        options: &[],
        all: |source| source.all(agreement::EXPERIMENT, agreement::EXPERIMENT),
        one: |source, _| Ok(vec![source.one(agreement::EXPERIMENT)?]),
        draw: |file, _, _| {
            let found = Importance::read(file)?;
            Ok(vec![Sheet::chart(found.file.stem(heat_map::SCORES), heat_map::scores(&found))])
        },
    },
    Artefact {
        name: "groups",
        alias: None,
        about: "Accuracy by group of segments, such as the paradigms of BLiMP, and the heads that each group needs",
        options: &[],
        all: |source| {
            let files = source.all(sweep::EXPERIMENT, sweep::EXPERIMENT)?;
            Ok(files.into_iter().filter(|file| file.groups().is_some()).collect())
        },
        one: |source, _| Ok(vec![source.one(sweep::EXPERIMENT)?]),
        draw: |file, asked, _| {
            let (found, alpha) = (Groups::read(Sweep::read(file, sweep::EXPERIMENT)?)?, asked.context.criterion.alpha);
            let sheet = Sheet::tables(found.sweep.file.stem(groups::STEM), groups::tables(&found, alpha));
            Ok(vec![Sheet { chart: Some(groups::figure(&found, alpha)), ..sheet }])
        },
    },
];

/// The selections that are drawn, each with the end of its file names: of everything the paper's types, and all of them
/// where there are more.
fn selections(sweep: &Sweep, asked: &Asked<'_>, names: [&'static str; 3]) -> Result<Vec<(Vec<Attention>, String)>, Error> {
    let present = sweep.attentions();
    let is_paper_all = Selection::Paper.of(&present) == present;
    let chosen = if !asked.is_all {
        vec![asked.attention]
    } else if is_paper_all {
        vec![Selection::Paper]
    } else {
        vec![Selection::Paper, Selection::All]
    };
    let named = |selection: Selection| {
        let types = selection.of(&present);
        if let Some(missing) = types.iter().find(|attention| !present.contains(attention)) {
            let (path, list) = (sweep.file.path.display(), present.iter().map(Attention::to_string).collect::<Vec<_>>());
            return Err(Error::Asked(format!("no rows for attention type {missing}: `{path}` has {}", list.join(", "))));
        }
        let stem = match selection {
            _ if types == [Attention::SelfAttention] => sweep.stem(names).to_owned(),
            Selection::Paper => names[0].to_owned(),
            Selection::One(attention) => format!("{}-{attention}", names[0]),
            Selection::All => format!("{}-all", names[0]),
        };
        Ok((types, sweep.file.stem(&stem)))
    };
    chosen.into_iter().map(named).collect()
}

/// What an earlier run drew of attention types that are no longer among the rows.
fn outdated(sweep: &Sweep, asked: &Asked<'_>, name: &str, drawn: usize) -> Option<Sheet> {
    (asked.is_all && drawn == 1).then(|| Sheet::removed(sweep.file.stem(&format!("{name}-all"))))
}

fn table1(sweep: &Sweep, asked: &Asked<'_>) -> Result<Vec<Sheet>, Error> {
    let selections = selections(sweep, asked, single_heads::STEMS)?;
    let last = selections.len();
    let sheet = |(place, (types, stem)): (usize, (Vec<Attention>, String))| {
        let tables = types.iter().map(|&attention| single_heads::table1(sweep, attention, asked.context));
        // The last has all that the first has.
        Sheet { is_printed: place + 1 == last, ..Sheet::tables(stem, tables.collect()) }
    };
    let sheets = selections.into_iter().enumerate().map(sheet);
    Ok(sheets.chain(outdated(sweep, asked, "table1", last)).collect())
}

fn figure1(sweep: &Sweep, asked: &Asked<'_>) -> Result<Vec<Sheet>, Error> {
    let selections = selections(sweep, asked, histogram::STEMS)?;
    let outdated = outdated(sweep, asked, "figure1", selections.len());
    let sheet = |(types, stem): (Vec<Attention>, String)| {
        Sheet::chart(stem, histogram::figure1(sweep, &types, asked.context))
    };
    Ok(selections.into_iter().map(sheet).chain(outdated).collect())
}

/// One file for those of one name, which are the same table with heads chosen on several splits.
fn best(file: ResultFile, asked: &Asked<'_>) -> Result<Sheet, Error> {
    let best = BestHeads::read(file)?;
    let table = best_heads::table(&best, asked.context);
    Ok(Sheet::tables(best.sweep.file.stem(best.stem()), vec![table]))
}

fn figure3(pruning: &Pruning, asked: &Asked<'_>) -> Result<Vec<Sheet>, Error> {
    let table = pruning_table::table(pruning, asked.context);
    let mut sheets = vec![Sheet::tables(pruning.file.stem(pruning_table::STEM), vec![table])];
    match pruning_curves::figure3(pruning, asked.context) {
        Err(Error::Asked(_)) if asked.is_all => {}
        chart => sheets.push(Sheet::chart(pruning.file.stem(pruning_curves::stem(pruning)), chart?)),
    }
    Ok(sheets)
}

fn figure4(pruning: &Pruning, asked: &Asked<'_>) -> Result<Vec<Sheet>, Error> {
    match pruning_curves::figure4(pruning, asked.context) {
        Err(Error::Asked(_)) if asked.is_all => Ok(Vec::new()),
        chart => Ok(vec![Sheet::chart(pruning.file.stem("figure4"), chart?)]),
    }
}

/// Named after the second split, and after both if another comparison beside it has the same second one.
fn figure2(pair: &Pair, asked: &Asked<'_>) -> Result<Sheet, Error> {
    let source = Source::subject(asked.results, &pair.file.subject);
    let others = source.all(pair::EXPERIMENT, pair::EXPERIMENT).unwrap_or_default();
    let [first, second] = &pair.splits;
    let is_other = |file: &ResultFile| {
        file.text("against") == Some(second.as_str()) && file.split() != Some(first.as_str())
    };
    let name =
        if others.iter().any(is_other) { format!("figure2-{first}-{second}") } else { format!("figure2-{second}") };
    let sheet = Sheet::tables(pair.file.stem(&name), vec![cross_domain::table(pair)]);
    Ok(Sheet { chart: Some(cross_domain::figure2(pair, asked.context)), ..sheet })
}

/// All that was measured on a subject: the standard files or, where there is none, those of the run over most segments.
///
/// # Errors
/// If a file is damaged; what cannot be shown yet is left out.
pub fn subject(results: &Path, name: &str, left_out: &mut LeftOut) -> Result<Subject, Error> {
    let source = Source::subject(results, name);
    let sweep = source.one(sweep::EXPERIMENT).and_then(|file| Sweep::read(file, sweep::EXPERIMENT));
    let sweep = left_out.keep_if_there(sweep)?;
    let same = source.one(crate::data::best_heads::EXPERIMENT).and_then(BestHeads::read);
    let mut best: Vec<_> = left_out.keep_if_there(same)?.into_iter().collect();
    for file in left_out.keep_if_there(BestHeads::largest_files(&source))?.unwrap_or_default() {
        best.extend(left_out.keep(BestHeads::read(file))?);
    }
    let mut pairs = Vec::new();
    for file in Pair::largest(&source.all(pair::EXPERIMENT, pair::EXPERIMENT)?) {
        pairs.extend(left_out.keep(Pair::read(file, results))?);
    }
    let curves = source.one(pruning::EXPERIMENT).and_then(|file| Pruning::read(file, left_out));
    let pruning = left_out.keep_if_there(curves)?;
    let dynamics = left_out.keep_if_there(source.one(dynamics::EXPERIMENT).and_then(Dynamics::read))?;
    let measured = pruning.as_ref().map(|pruning| &pruning.file).or(sweep.as_ref().map(|sweep| &sweep.file));
    let nats_a_word = match measured.filter(|file| file.model() == crate::origin::Model::Language) {
        Some(file) => left_out.keep(nats_a_word(file))?.flatten(),
        None => None,
    };
    Ok(Subject { sweep, best, pairs, pruning, dynamics, nats_a_word })
}

/// The nats of the intact model for each word of the text; none where words were not counted.
fn nats_a_word(file: &ResultFile) -> Result<Option<f64>, Error> {
    let Some(blocks) = Blocks::read(&Blocks::path_beside(&file.path))? else { return Ok(None) };
    let sum = |column: &str| {
        let place = blocks.columns.iter().position(|name| name == column)?;
        Some(blocks.get(BASE)?.sums.get(place)?.value())
    };
    Ok(sum("nats").zip(sum("words")).filter(|(_, words)| *words > 0.0).map(|(nats, words)| nats / words))
}
