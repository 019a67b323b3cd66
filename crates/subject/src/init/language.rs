//! Setups of language models, scored on texts or minimal pairs.
use corpus::tables::{self, Table};

use super::files::{DataFile, Splits};
use super::model::InitialModel;
use super::toml_text::{self, Because, TomlText, kind, path, quoted};
use super::{Known, ask, roles};
use crate::error::Error;

/// Maximum window of a new setup, in tokens: longer windows are slow on a CPU.
const LONGEST_WINDOW: u64 = 1024;

/// Mean bytes per text above which texts are scored in blocks.
const LONG_TEXT: usize = 1024;

/// Column names of minimal pairs, the acceptable sentence first.
const MINIMAL_PAIRS: &[[&str; 2]] = &[["sentence_good", "sentence_bad"], ["good", "bad"]];

pub(super) fn describe(
    toml: &mut TomlText,
    model: &InitialModel,
    known: &Known,
    splits: &Splits,
) -> Result<(), Error> {
    let [file, ..] = splits.test() else { return Err(Error::Invalid("no test set".to_owned())) };
    toml.model("language-modelling", model, file);
    let positions =
        ["max_position_embeddings", "n_positions"].iter().find_map(|key| model.entry(key).as_u64());
    if let Some(positions) = positions.filter(|&positions| positions > LONGEST_WINDOW) {
        toml.section("windows");
        let why = format!("longer documents are split into windows; the model has {positions} positions");
        toml.entry("length", LONGEST_WINDOW as i64, Because::Assumed(why));
    }
    if !splits.has_train() {
        toml.section("data");
        toml.estimate_on_test();
    }
    for (split, files) in &splits.files {
        toml.section(&format!("data.splits.{split}"));
        let list: Vec<String> = files.iter().map(|file| path(&file.shown)).collect();
        toml.raw("files", &format!("[{}]", list.join(", ")), splits.because(split));
        let kinds = files.iter().map(|file| tables::kind_of(&file.path)).collect::<Vec<_>>();
        if kinds.windows(2).any(|pair| pair[0] != pair[1]) {
            let names: Vec<String> = files.iter().map(|file| file.path.display().to_string()).collect();
            let what = format!("{} are files of several kinds for one split", crate::error::quoted(&names));
            return Err(ask(what, &format!("name files of one kind with --{split}")));
        }
        let (key, format, because) = format(&files[0], known)?;
        toml.raw(key, &format, because);
    }
    Ok(())
}

/// Returns the entry that describes the texts in a file.
fn format(file: &DataFile, known: &Known) -> Result<(&'static str, String, Because), Error> {
    let Some(rows) = tables::kind_of(&file.path) else {
        let text = corpus::tables::read_text(&file.path)?;
        let (kind, why) = if text.trim().contains("\n\n") {
            ("paragraphs", "blank lines between the texts")
        } else {
            ("lines", "a text in each line")
        };
        let texts = text.trim().split(if kind == "paragraphs" { "\n\n" } else { "\n" }).count();
        let is_long = text.len() / texts > LONG_TEXT;
        let (predict, blocks) = if is_long {
            (", predict = \"blocks\"", "; long texts are scored in blocks, which decide more heads")
        } else {
            ("", "")
        };
        let format = format!("{{ kind = \"{kind}\"{predict} }}");
        return Ok(("documents", format, Because::Found(format!("{why}{blocks}"))));
    };
    let table = known.table(&file.path, rows)?;
    let rows = kind(rows);
    if let (Some([good, bad]), None) = (roles::pair_by_name(&table, MINIMAL_PAIRS), &known.text) {
        let (good, bad) = (quoted(&good.name()), quoted(&bad.name()));
        let format = format!("{{ kind = {rows}, choices = [{good}, {bad}], answer = {{ always = 1 }} }}");
        return Ok(("choices", format, Because::Found("minimal pairs, by the header".to_owned())));
    }
    let (column, because) = text_column(&table, file, known)?;
    let header = if table.has_header { "" } else { ", header = false" };
    Ok(("documents", format!("{{ kind = {rows}{header}, text = {column} }}"), because))
}

fn text_column(table: &Table, file: &DataFile, known: &Known) -> Result<(String, Because), Error> {
    let (column, because) = match (&known.text, roles::by_name(table, roles::TEXTS)) {
        (Some(name), _) => (roles::told(table, &file.path, name)?, Because::Told),
        (None, Some(column)) => (column, Because::Found("the header".to_owned())),
        (None, None) => match roles::texts(table, &[])[..] {
            [column] => (column, Because::Found("the only column of texts".to_owned())),
            _ => {
                let what = "it is not clear which is the text";
                return Err(roles::which(table, &file.path, what, "--text COLUMN names it"));
            }
        },
    };
    Ok((toml_text::column(&column.column), because))
}
