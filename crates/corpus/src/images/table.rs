//! Images stored as rows of a table.
use std::fs;
use std::path::Path;

use image::{ExtendedColorType, ImageFormat};
use serde::Deserialize;

use crate::Error;
use crate::rows::read_text;

/// Greyscale images in a CSV file without header, one per row: pixel levels row by row, then the class.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PixelTable {
    /// Height in pixels.
    pub height: u32,
    /// Width in pixels.
    pub width: u32,
    /// Level of white; 0 is black.
    pub white: u32,
    /// Folders of the splits: row n, counted from 0, goes to the split at n modulo their number.
    pub splits: Vec<String>,
}

impl PixelTable {
    /// Writes each row of `file` to `<folder>/<split>/<class>/<row>.png`, rows counted from 1. Skips splits whose folder exists.
    pub fn unpack(&self, file: &Path, folder: &Path) -> Result<(), Error> {
        let text = read_text(file)?;
        let mut splits: Vec<&String> = self.splits.iter().collect();
        splits.sort();
        splits.dedup();
        splits.retain(|split| !folder.join(split).exists());
        let part = |split: &str| folder.join(format!("{split}.part"));
        for split in &splits {
            let left = part(split); // left by an interrupted run
            if left.exists() {
                fs::remove_dir_all(&left).map_err(Error::writing(&left))?;
            }
        }
        for (row, line) in text.lines().enumerate() {
            let split = &self.splits[row % self.splits.len()];
            if splits.contains(&split) {
                let (levels, class) =
                    self.image(line).map_err(|fault| Error::of_line(file, row + 1, fault))?;
                self.write(&levels, &part(split).join(class), row + 1)?;
            }
        }
        for split in splits {
            let (from, to) = (part(split), folder.join(split));
            if !from.exists() {
                return Err(Error::of(file, format!("it has too few rows for the split `{split}`")));
            }
            fs::rename(&from, &to).map_err(Error::writing(&to))?;
        }
        Ok(())
    }

    /// Parses a row into levels from 0 to 255 and the class.
    fn image<'a>(&self, line: &'a str) -> Result<(Vec<u8>, &'a str), String> {
        let pixels = (self.height * self.width) as usize;
        let expected = || format!("expected {pixels} levels from 0 to {} and a class", self.white);
        let (levels, class) = line.rsplit_once(',').ok_or_else(expected)?;
        let level = |cell: &str| {
            let level = cell.trim().parse().ok().filter(|&level: &u32| level <= self.white)?;
            u8::try_from((255 * level + self.white / 2) / self.white).ok()
        };
        let levels = levels.split(',').map(level).collect::<Option<Vec<u8>>>().ok_or_else(expected)?;
        let is_complete = levels.len() == pixels && crate::names::is_file_name(class.trim());
        if is_complete { Ok((levels, class.trim())) } else { Err(expected()) }
    }

    fn write(&self, levels: &[u8], folder: &Path, row: usize) -> Result<(), Error> {
        fs::create_dir_all(folder).map_err(Error::writing(folder))?;
        let path = folder.join(format!("{row:05}.png"));
        let (width, height) = (self.width, self.height);
        let saved = image::save_buffer_with_format(
            &path,
            levels,
            width,
            height,
            ExtendedColorType::L8,
            ImageFormat::Png,
        );
        saved.map_err(|fault| Error::writing(&path)(std::io::Error::other(fault)))
    }

    /// Checks the description; the error is a message.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let are_sizes = [self.height, self.width].iter().all(|side| (1..=4096).contains(side));
        if !are_sizes || !(1..=1 << 16).contains(&self.white) {
            return Err(
                "`images` needs height and width from 1 to 4096, and white from 1 to 65536".to_owned()
            );
        }
        match self.splits.iter().find(|split| !crate::names::is_file_name(split)) {
            Some(split) => Err(format!("`images`: `{}` is not the name of a folder", words::excerpt(split))),
            None if self.splits.is_empty() => {
                Err("`images` needs `splits`, the folder of each row".to_owned())
            }
            None => Ok(()),
        }
    }
}
