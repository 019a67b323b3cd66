//! Writes tables for a terminal and as Markdown and LaTeX, and charts as SVG and PNG with a caption in Markdown and LaTeX.
pub mod documents;
mod raster;
mod terminal;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use documents::{of_figure, of_table, render};

use crate::chart::Chart;
use crate::error::Error;
use crate::paint;
use crate::sentences::Sentences;
use crate::table::Table;

/// A file format for figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Vector graphics with selectable, editable text.
    Svg,
    /// Pixels, 300 per inch.
    Png,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 2] = [Self::Svg, Self::Png];

    const fn extension(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Png => "png",
        }
    }
}

/// A chart with its caption, tables, or both, under one name.
#[derive(Debug, Clone, PartialEq)]
pub struct Sheet {
    /// File name without extension, which captions print literally: only letters, digits, `-`, `_` and `.`.
    pub stem: String,
    /// The figure.
    pub chart: Option<Chart>,
    /// From top to bottom.
    pub tables: Vec<Table>,
    /// `true` if a command prints the tables; `false` if they are part of another sheet.
    pub is_printed: bool,
}

impl Sheet {
    /// Returns a sheet; characters unfit for file names or captions are replaced. Writing an empty sheet removes files of an earlier run.
    pub fn new(name: &str, chart: impl Into<Option<Chart>>, tables: impl IntoIterator<Item = Table>) -> Self {
        let (chart, tables) = (chart.into(), tables.into_iter().collect());
        Self { stem: plain(name), chart, tables, is_printed: true }
    }

    /// Adds sentences below each part.
    pub fn remark(mut self, sentences: impl Sentences) -> Self {
        let sentences = sentences.all();
        self.chart.iter_mut().for_each(|chart| chart.notes.extend(sentences.clone()));
        self.tables.iter_mut().for_each(|table| table.remarks.extend(sentences.clone()));
        self
    }

    /// `true` if there is neither a chart nor a table.
    pub fn is_empty(&self) -> bool {
        self.chart.is_none() && self.tables.is_empty()
    }

    /// Renders the caption of the figure, then the tables, as `md` or `tex`. Markdown embeds the SVG if it is written, otherwise the PNG.
    pub fn document(&self, extension: &str, formats: &[Format]) -> Result<String, Error> {
        let shown = if formats.contains(&Format::Svg) { Format::Svg } else { Format::Png };
        let caption = self.chart.iter().map(|chart| ("caption", of_figure(chart, &self.stem, shown)));
        let parts = caption.chain(self.tables.iter().map(|table| ("table", of_table(table))));
        let parts = parts.map(|(name, values)| render(&format!("{name}.{extension}"), values));
        Ok(parts.collect::<Result<Vec<_>, _>>()?.join("\n"))
    }

    /// Renders the tables for a terminal.
    pub fn terminal(&self) -> String {
        self.tables.iter().map(terminal::render).collect::<Vec<_>>().join("\n")
    }

    /// Writes all files into a folder, created if needed, and returns their paths. Then removes other files with the same stem: from a
    /// table or figure of an earlier run, and figures in formats that were not requested.
    pub fn write(&self, folder: &Path, formats: &[Format]) -> Result<Vec<PathBuf>, Error> {
        let name = |extension: &str| format!("{}.{extension}", self.stem);
        let files = self.files(formats)?;
        let write = |(extension, bytes): &(&str, Vec<u8>)| write_file(folder, &name(extension), bytes);
        let paths = files.iter().map(write).collect::<Result<_, _>>()?;
        let mut outdated = vec!["png", "svg", "md", "tex"];
        outdated.retain(|extension| files.iter().all(|(written, _)| written != extension));
        for extension in outdated {
            let path = folder.join(name(extension));
            match fs::remove_file(&path) {
                Err(source) if source.kind() != ErrorKind::NotFound => {
                    return Err(durable::Error { path, source }.into());
                }
                _ => {}
            }
        }
        Ok(paths)
    }

    fn files(&self, formats: &[Format]) -> Result<Vec<(&'static str, Vec<u8>)>, Error> {
        let mut files = Vec::new();
        if self.is_empty() {
            return Ok(files);
        }
        for extension in ["md", "tex"] {
            files.push((extension, self.document(extension, formats)?.into_bytes()));
        }
        let Some(chart) = &self.chart else { return Ok(files) };
        let svg = paint::svg(chart);
        if formats.contains(&Format::Png) {
            files.push((Format::Png.extension(), raster::png(&svg)?));
        }
        if formats.contains(&Format::Svg) {
            files.push((Format::Svg.extension(), svg.into_bytes()));
        }
        Ok(files)
    }
}

/// Replaces characters that end a Markdown link, or that `\includegraphics` rejects, with their code points in hexadecimal.
fn plain(stem: &str) -> String {
    let kept = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    stem.chars().map(|c| if kept(c) { c.to_string() } else { format!("-{:x}-", u32::from(c)) }).collect()
}

/// Writes a file into a folder, created if needed, and returns its path.
pub fn write_file(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, Error> {
    let path = folder.join(name);
    durable::write(&path, bytes)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use words::one_line;

    use super::*;
    use crate::chart::Entry;
    use crate::table::Row;

    #[test]
    fn names_of_files_need_no_escape_in_captions() {
        assert_eq!(plain("figure3-first_500.v2"), "figure3-first_500.v2");
        assert_eq!(plain("table1-a) b%\u{e9}"), "table1-a-29--20-b-25--e9-");
    }

    #[test]
    fn texts_are_escaped_in_every_format() {
        let evil = "<b>&amp; 5 % of a_b {x} $y$ [z](u) \u{1b}[2J\nnext";
        let table = Table {
            title: evil.to_owned(),
            columns: vec![evil.to_owned()],
            column_groups: vec![(evil.to_owned(), 1)],
            rows: vec![Row::new(evil, [evil])],
            ..Table::default()
        };
        let table = table.mark(evil.to_owned()).note(evil).remark(evil);
        let chart = Chart::new("", "", evil).entries([Entry::text("<&>\u{1b}")]).note(evil);
        let rows = render("rows.md", of_table(&table)).unwrap();
        let starred = Table::default().rows([Row::new("*a~b", [""])]);
        let [markdown, latex] =
            ["md", "tex"].map(|extension| render(&format!("table.{extension}"), of_table(&starred)).unwrap());
        assert!(
            markdown.contains(r"| \*a\~b |") && latex.contains(r"{}*a\textasciitilde{}b"),
            "{markdown}{latex}"
        );
        let sheet = Sheet::new("x", chart, [table]);
        let svg = paint::svg(sheet.chart.as_ref().unwrap());
        assert!(
            svg.contains("<title>. &lt;b&gt;&amp;amp; 5 %") && svg.contains("&lt;&amp;&gt;\\u{1b}"),
            "{svg}"
        );
        let [markdown, latex] =
            ["md", "tex"].map(|extension| sheet.document(extension, &Format::ALL).unwrap());
        let escaped = r"\<b>&amp;amp; 5 % of a\_b {x} \$y\$ \[z](u) \\u{1b}\[2J next";
        assert_eq!(markdown.matches(escaped).count(), 10, "{markdown}");
        assert_eq!(rows.matches(escaped).count(), 5, "{rows}");
        let escaped = r"$<$b$>$\&amp; 5 \% of a\_b \{x\} \$y\$ [z](u) \textbackslash{}u\{1b\}[2J next";
        assert_eq!(latex.matches(escaped).count(), 9, "{latex}");
        // a comment needs no escapes, but it must end with its line
        assert!(latex.contains(&format!("% {}\n", one_line(evil))), "{latex}");
        assert!([markdown, rows, latex, sheet.terminal(), svg].iter().all(|text| !text.contains('\u{1b}')));
    }
}
