//! Writers: tables for a terminal, as Markdown and as LaTeX; charts as SVG and PNG with a caption in Markdown and LaTeX; films as GIF.
pub mod documents;
mod raster;
mod terminal;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::chart::Chart;
use crate::paint;
use crate::source::ResultFile;
use crate::table::Table;
use documents::{of_figure, of_table, render};

/// A file format for figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Vector graphics, with text that can be selected and edited
    Svg,
    /// Pixels, 450 to the inch; a film as GIF beside it
    Png,
}

/// What belongs together under one name: a chart with its caption, tables, or both.
#[derive(Debug, Clone, PartialEq)]
pub struct Sheet {
    /// Name of its files, which captions print as it is: letters, digits, `-`, `_` and `.` alone.
    pub stem: String,
    pub chart: Option<Chart>,
    /// The frames of a film beside the chart, all of one size.
    pub frames: Vec<Chart>,
    pub tables: Vec<Table>,
    pub is_printed: bool,
}

impl Sheet {
    /// Of what is drawn from a file under a name, each part with what the signature cannot vouch for. Of nothing: what an
    /// earlier run drew is removed.
    pub fn of(
        file: &ResultFile,
        name: &str,
        chart: impl Into<Option<Chart>>,
        tables: impl IntoIterator<Item = Table>,
    ) -> Self {
        let (chart, tables) = (chart.into(), tables.into_iter().collect());
        let stem = plain(&file.stem(name));
        let mut sheet = Self { stem, chart, frames: Vec::new(), tables, is_printed: true };
        if let Some(remark) = file.remark() {
            sheet.chart.iter_mut().for_each(|chart| chart.notes.push(remark.clone()));
            sheet.tables.iter_mut().for_each(|table| table.remarks.push(remark.clone()));
        }
        sheet
    }

    /// Everything in words, as `md` or `tex`: the caption of the figure, then the tables.
    pub fn document(&self, extension: &str) -> Result<String> {
        let caption = self.chart.iter().map(|chart| ("caption", of_figure(chart, &self.stem)));
        let parts = caption.chain(self.tables.iter().map(|table| ("table", of_table(table))));
        let parts: Vec<_> = parts
            .map(|(name, values)| render(&format!("{name}.{extension}"), values))
            .collect::<Result<_, _>>()?;
        Ok(parts.join("\n"))
    }

    /// The tables for a terminal.
    pub fn terminal(&self) -> String {
        self.tables.iter().map(terminal::render).collect::<Vec<_>>().join("\n")
    }

    /// Writes all files into a folder, which is made if needed, and returns their paths.
    pub fn write(&self, folder: &Path, formats: &[Format]) -> Result<Vec<PathBuf>> {
        if self.chart.is_none() && self.tables.is_empty() {
            return self.remove(folder).map(|()| Vec::new());
        }
        let file =
            |extension: &str, bytes: &[u8]| write_file(folder, &format!("{}.{extension}", self.stem), bytes);
        let document = |extension| file(extension, self.document(extension)?.as_bytes());
        let mut paths = vec![document("md")?, document("tex")?];
        let Some(chart) = &self.chart else { return Ok(paths) };
        let svg = paint::svg(chart);
        for format in formats {
            paths.push(match format {
                Format::Svg => file("svg", svg.as_bytes())?,
                Format::Png => file("png", &raster::png(&svg)?)?,
            });
        }
        if !self.frames.is_empty() && formats.contains(&Format::Png) {
            let frames: Vec<_> = self.frames.iter().map(paint::svg).collect();
            paths.push(file("gif", &raster::gif(&frames)?)?);
        }
        Ok(paths)
    }

    fn remove(&self, folder: &Path) -> Result<()> {
        ["md", "tex", "svg", "png", "gif"].into_iter().try_for_each(|extension| {
            let path = folder.join(format!("{}.{extension}", self.stem));
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    Err(error).with_context(|| format!("cannot remove `{}`", path.display()))
                }
                _ => Ok(()),
            }
        })
    }
}

/// A name without what ends a link of Markdown or that `\includegraphics` cannot hold: other characters as their numbers.
fn plain(stem: &str) -> String {
    let kept = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    stem.chars().map(|c| if kept(c) { c.to_string() } else { format!("-{:x}-", u32::from(c)) }).collect()
}

/// Writes a file into a folder that is made if needed, and returns its path.
pub fn write_file(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf> {
    let path = folder.join(name);
    fs::create_dir_all(folder).with_context(|| format!("cannot write `{}`", folder.display()))?;
    fs::write(&path, bytes).with_context(|| format!("cannot write `{}`", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_need_no_escape_in_captions() {
        assert_eq!(plain("figure3-first_500.v2"), "figure3-first_500.v2");
        assert_eq!(plain("table1-a) b%\u{e9}"), "table1-a-29--20-b-25--e9-");
    }
}
