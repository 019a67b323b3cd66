//! Rows as text: one line each, with floats in the shortest form that parses to an equal number.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use csv::{DeserializeErrorKind, ReaderBuilder, StringRecord, Writer};
use words::excerpt;

use crate::segments::{Blocks, check_segments};
use crate::signature::sha256;
use crate::{Error, Row, Signature, file, place};

/// Rows of a file by key, and the end of its last complete line.
#[derive(Debug)]
pub(crate) struct Table<R: Row> {
    pub(crate) rows: BTreeMap<R::Key, R>,
    /// Length of the complete lines, in bytes; the rest was torn by an interruption.
    pub(crate) complete: usize,
}

/// Reads the complete rows of a result file, in the order of their keys. Leaves out a last line without a line break, which was torn by an
/// interruption.
///
/// # Errors
/// If the file cannot be read, has another header, or a line that is not a row.
pub fn read_rows<R: Row>(path: &Path) -> Result<Vec<R>, Error> {
    let bytes = file::read(path)?;
    Ok(parse(path, &bytes, false)?.rows.into_values().collect())
}

/// Reads complete results like [`read_rows`], and checks that neither rows nor statistics were edited.
///
/// # Errors
/// As for [`read_rows`], or if they are not the ones that the signature was completed with.
pub fn read_complete<R: Row>(path: &Path) -> Result<Vec<R>, Error> {
    read_signed(path, Signature::read(&Signature::path_beside(path))?.as_ref())
}

/// Reads complete results like [`read_complete`], with a signature that has been read already.
pub fn read_signed<R: Row>(path: &Path, signature: Option<&Signature>) -> Result<Vec<R>, Error> {
    let bytes = file::read(path)?;
    let rows = parse::<R>(path, &bytes, false)?.rows;
    check_complete(path, &bytes, rows.len(), signature)?;
    if let Some(signature) = signature {
        let segments = Blocks::path_beside(path);
        check_segments(&segments, place::bytes(&segments)?.as_deref(), signature)?;
    }
    Ok(rows.into_values().collect())
}

/// Refuses the content of a CSV file with this number of rows if the signature was completed with another content.
pub(crate) fn check_complete(
    path: &Path,
    bytes: &[u8],
    rows: usize,
    signature: Option<&Signature>,
) -> Result<(), Error> {
    let Some(complete) = signature.and_then(|signature| signature.complete.as_ref()) else { return Ok(()) };
    if sha256(bytes) == complete.sha256 {
        return Ok(());
    }
    let found = if !bytes.ends_with(b"\n") {
        "its last line is torn".to_owned()
    } else if rows != complete.rows {
        format!("it has {rows} rows instead of {}", complete.rows)
    } else {
        "its checksum differs from the signature's".to_owned()
    };
    Err(Error::of(
        path,
        format!("was edited or mixed after it was completed: {found}; --again measures it again"),
    ))
}

/// Parses the content of the file at `path`, which is only used in errors.
///
/// - `is_growing`: if several rows share a key, the last one counts
pub(crate) fn parse<R: Row>(path: &Path, bytes: &[u8], is_growing: bool) -> Result<Table<R>, Error> {
    let complete = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let mut rows = BTreeMap::new();
    let mut lines = bytes[..complete].split_inclusive(|&byte| byte == b'\n');
    let columns = header_columns::<R>(path, lines.next(), bytes)?;
    for (index, line) in lines.enumerate() {
        let fault = |reason: String| {
            let (path, line) = (path.display(), index + 2);
            Error::Invalid(format!("`{path}`, line {line}, is not a row of this file: {reason}"))
        };
        let row: R = parse_row(line, &columns).map_err(fault)?;
        match rows.entry(row.key()) {
            Entry::Vacant(place) => drop(place.insert(row)),
            Entry::Occupied(mut there) if is_growing => drop(there.insert(row)),
            Entry::Occupied(there) => return Err(fault(format!("{} occurs twice", there.get().title()))),
        }
    }
    Ok(Table { rows, complete })
}

/// Columns of several row types that files of earlier versions lack; read as empty.
const LATER: [&str; 5] =
    ["simultaneous_low", "simultaneous_high", "p_bootstrap", "power", "segments_for_power"];

fn is_later<R: Row>(column: &str) -> bool {
    LATER.contains(&column) || R::LATER.contains(&column)
}

/// Returns the columns of the header in the first line; a file without a complete line may contain the start of a header.
fn header_columns<R: Row>(
    path: &Path,
    first: Option<&[u8]>,
    bytes: &[u8],
) -> Result<Vec<&'static str>, Error> {
    let found = String::from_utf8_lossy(first.unwrap_or(bytes));
    let there: Vec<&str> = found.trim_end_matches('\n').split(',').collect();
    let mut expected = columns::<R>().to_vec();
    if first.is_some() {
        expected.retain(|column| there.contains(column) || !is_later::<R>(column));
    }
    let line = expected.join(",") + "\n";
    if first.map_or(line.starts_with(&*found), |_| line == found) {
        return Ok(expected);
    }
    let fault = header_fault::<R>(&found);
    Err(Error::of(path, format!("does not begin with the header of these results: {fault}")))
}

fn header_fault<R: Row>(line: &str) -> String {
    let line = line.strip_suffix('\n').unwrap_or(line);
    if line.ends_with('\r') {
        return "its lines end in CR LF, as on Windows, instead of LF".to_owned();
    }
    if let Some(line) = line.strip_prefix('\u{feff}') {
        return format!("a byte order mark precedes `{}`", excerpt(line));
    }
    if line.is_empty() {
        return "its first line is empty".to_owned();
    }
    let (columns, known): (Vec<&str>, _) = (line.split(',').collect(), columns::<R>());
    if !columns.iter().any(|column| known.contains(column)) {
        return format!("it begins with `{}`", excerpt(line));
    }
    let missing = known.iter().find(|column| !columns.contains(column) && !is_later::<R>(column));
    let unknown = columns.iter().find(|column| !known.contains(column));
    let missing = missing.map(|column| format!("`{column}` is missing"));
    let unknown = unknown.map(|column| format!("`{}` is unknown", excerpt(column)));
    let faults: Vec<String> = missing.into_iter().chain(unknown).collect();
    if faults.is_empty() {
        return "its columns are in another order, or one occurs twice".to_owned();
    }
    format!(
        "{}; measure results of an older version again with the experiment's --again",
        faults.join(" and ")
    )
}

fn parse_row<R: Row>(line: &[u8], columns: &[&str]) -> Result<R, String> {
    let mut record = StringRecord::new();
    let mut reader = ReaderBuilder::new().has_headers(false).from_reader(line);
    reader.read_record(&mut record).map_err(|_| "it is not UTF-8 text".to_owned())?;
    // serde would read missing cells at the end as empty.
    if record.len() != columns.len() {
        return Err(format!("{} cells instead of {}", record.len(), columns.len()));
    }
    record.deserialize(Some(&StringRecord::from(columns))).map_err(|error| match error.into_kind() {
        csv::ErrorKind::Deserialize { err, .. } => in_words(&err, columns),
        other => format!("{other:?}"),
    })
}

fn in_words(error: &csv::DeserializeError, columns: &[&str]) -> String {
    let column = error.field().and_then(|field| columns.get(field as usize));
    match column {
        Some(column) => format!("`{column}`: {}", cell_fault(error.kind())),
        None => cell_fault(error.kind()),
    }
}

fn cell_fault(kind: &DeserializeErrorKind) -> String {
    match kind {
        DeserializeErrorKind::ParseInt(_) => "it must be a whole number".to_owned(),
        DeserializeErrorKind::ParseFloat(_) => "it must be a number".to_owned(),
        DeserializeErrorKind::ParseBool(_) => "it must be `true` or `false`".to_owned(),
        other => other.to_string(),
    }
}

/// Returns the field names of a row in order, which are the columns of its file.
pub fn columns<R: Row>() -> &'static [&'static str] {
    let mut fields = Fields(&[]);
    let _ = R::deserialize(&mut fields); // which reads nothing
    fields.0
}

/// Deserializer that only records which fields a struct requests.
struct Fields(&'static [&'static str]);

impl<'de> serde::Deserializer<'de> for &mut Fields {
    type Error = serde::de::value::Error;

    fn deserialize_struct<V: serde::de::Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.0 = fields;
        self.deserialize_any(visitor)
    }

    fn deserialize_any<V: serde::de::Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Self::Error> {
        Err(serde::de::Error::custom("there is nothing to read"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

pub(crate) fn header<R: Row>() -> String {
    columns::<R>().join(",") + "\n"
}

/// Returns a row as one line.
pub(crate) fn line<R: Row>(row: &R) -> String {
    let mut writer = Writer::from_writer(Vec::new());
    writer.serialize(row).expect("a row is flat");
    let bytes = writer.into_inner().expect("memory takes every byte");
    let text = String::from_utf8(bytes).expect("a row is UTF-8 text");
    let line = text.strip_prefix(&header::<R>()).expect("the header has the names of the fields");
    assert_eq!(line.find('\n'), Some(line.len() - 1), "a row has no line breaks: {line:?}");
    line.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AblationRow, CorrelationRow, CurveRow, MetricName, TrainingRow};
    use proptest::num::f64::{NORMAL, SUBNORMAL, ZERO};
    use proptest::option;
    use proptest::prelude::*;

    fn failure(text: &str) -> String {
        parse::<TrainingRow>(Path::new("log.csv"), text.as_bytes(), false).unwrap_err().to_string()
    }

    #[test]
    fn rows_are_plain_text_and_faulty_lines_are_named() {
        let with = |lines: &str| failure(&(header::<TrainingRow>() + lines));
        let good = line(&TrainingRow {
            epoch: 1,
            step: 20,
            train_loss: 0.1,
            dev_loss: 2.0,
            dev_score: None,
            learning_rate: 5e-4,
            best: false,
        });
        assert_eq!(good, "1,20,0.1,2.0,,0.0005,false\n");
        assert_eq!(
            with(&format!("{good}1,20,0.1,x,,0.5,true\n")),
            "`log.csv`, line 3, is not a row of this file: `dev_loss`: it must be a number"
        );
        let torn_then_continued = format!("{}{good}", &good[..9]);
        for (lines, cells) in [("1,20,0.1\n", 3), ("\n", 0), (&torn_then_continued, 10)] {
            let fault = format!("line 2, is not a row of this file: {cells} cells instead of 7");
            assert!(with(lines).ends_with(&fault));
        }
    }

    #[test]
    fn columns_that_came_later_are_empty_in_older_files() {
        let older = CorrelationRow { pearson: Some(0.5), ..CorrelationRow::default() };
        let row = CorrelationRow { pearson_without: Some(0.25), ..older.clone() };
        let (header, line) = (header::<CorrelationRow>(), line(&row));
        let cells = header.trim().split(',').zip(line.trim().split(','));
        let cells: Vec<_> = cells.filter(|(column, _)| !is_later::<CorrelationRow>(column)).collect();
        let joined = |part: fn(&(&str, &str)) -> String| cells.iter().map(part).collect::<Vec<_>>().join(",");
        let text = format!("{}\n{}\n", joined(|cell| cell.0.to_owned()), joined(|cell| cell.1.to_owned()));
        let back = parse::<CorrelationRow>(Path::new("c.csv"), text.as_bytes(), false).unwrap().rows;
        assert_eq!(back.into_values().collect::<Vec<_>>(), [older]);
    }

    #[test]
    fn other_headers_are_refused() {
        let own = header::<TrainingRow>();
        for (line, fault) in [
            (header::<AblationRow>(), "it begins with `attention,layer,head,"),
            (
                own.replace("dev_loss", "loss"),
                "`dev_loss` is missing and `loss` is unknown; measure results of",
            ),
            ("notes without a line break".to_owned(), "it begins with `notes without a line break`"),
            ("\n".to_owned(), "its first line is empty"),
            (own.replace("epoch,step", "step,epoch"), "its columns are in another order"),
            (own.replace('\n', "\r\n"), "its lines end in CR LF, as on Windows"),
            (format!("\u{feff}{own}"), "a byte order mark precedes `epoch,"),
        ] {
            let expected = format!("`log.csv` does not begin with the header of these results: {fault}");
            assert!(failure(&line).starts_with(&expected), "{expected}: {}", failure(&line));
        }
    }

    /// Rows that are measured on more segments are appended again to a growing file.
    #[test]
    fn the_last_row_of_a_key_counts_in_a_growing_file_and_is_a_fault_in_a_finished_one() {
        let row = |looks: &str| {
            let row = AblationRow::untested("self:1:1".parse().unwrap(), MetricName::Nats, 1.0, 2.0);
            line(&AblationRow { looks: looks.to_owned(), ..row })
        };
        let text = header::<AblationRow>() + &row("48") + &row("48+96");
        let read = |is_growing| parse::<AblationRow>(Path::new("a.csv"), text.as_bytes(), is_growing);
        let rows = read(true).unwrap().rows;
        assert_eq!(rows.into_values().map(|row| row.looks).collect::<Vec<_>>(), ["48+96"]);
        assert!(read(false).unwrap_err().to_string().contains("occurs twice"));
    }

    #[test]
    #[should_panic(expected = "a row has no line breaks")]
    fn line_breaks_in_a_row_panic() {
        line(&CurveRow { masked_heads: "two\nlines".to_owned(), ..CurveRow::default() });
    }

    /// Any text but a byte order mark, which `csv` removes from the start of a line.
    const TEXT: &str = "[^\\n\u{feff}]*";

    proptest! {
        #[test]
        fn rows_read_back_bit_by_bit(
            score in NORMAL | SUBNORMAL | ZERO, search_score in option::of(NORMAL | SUBNORMAL | ZERO),
            order_seed: Option<u64>, step: usize, complement: bool, masked_heads in TEXT,
        ) {
            let row =
                CurveRow { score, search_score, order_seed, step, complement, masked_heads, ..CurveRow::default() };
            let text = line(&row);
            let back: CurveRow = parse_row(text.as_bytes(), columns::<CurveRow>()).unwrap();
            prop_assert_eq!(&back, &row);
            prop_assert_eq!(back.score.to_bits(), row.score.to_bits());
            prop_assert_eq!(line(&back), text);
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = parse::<TrainingRow>(Path::new("log.csv"), &bytes, true);
            let text = [header::<TrainingRow>().as_bytes(), &bytes].concat();
            let _ = parse::<TrainingRow>(Path::new("log.csv"), &text, false);
        }
    }
}
