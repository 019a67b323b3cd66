//! Rows of Parquet and Arrow files, read in batches, with the class names that Hugging Face datasets stores in the schema.
use std::io::BufReader;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch, RecordBatchReader};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Map, Value};

use super::{Column, Record, place};
use crate::compressed::Content;
use crate::{Error, foreign, guarded};

const BATCH: usize = 1024;

type Batches = Box<dyn RecordBatchReader>;

/// Reads the rows of a file, or of a folder written by `save_to_disk`, with `columns` or, if empty, all readable columns.
///
/// # Errors
/// If a file is truncated, or lacks a column, or a column has a type other than text, number, boolean, list or structure of these. A fault
/// in the middle of a file is the last item of the iterator.
pub(super) fn rows(
    path: &Path,
    content: Content,
    columns: &[&Column],
) -> Result<impl Iterator<Item = Result<Record, Error>> + use<>, Error> {
    let files = if content == Content::Saved { saved(path)? } else { vec![path.to_owned()] };
    let files = files.iter().map(|file| Table::open(file, columns)).collect::<Result<Vec<_>, _>>()?;
    let records = files.into_iter().flat_map(Table::records);
    let mut is_torn = false;
    let records = records.take_while(move |row| !std::mem::replace(&mut is_torn, row.is_err()));
    Ok(records.zip(1..).map(|(row, number)| Ok(Record { line: number, ..row? })))
}

/// Returns the files of a folder written by `save_to_disk`, in order.
fn saved(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let state = folder.join("state.json");
    if !state.is_file() {
        let reason =
            "it is a folder of several splits, as `save_to_disk` writes it: name one of the folders in it";
        return Err(Error::of(folder, reason));
    }
    let content = foreign::read_text(&state)?;
    let state: Value = foreign::parse_json(&content).map_err(|reason| Error::of(&state, reason))?;
    let files = state["_data_files"].as_array().into_iter().flatten();
    let names: Option<Vec<PathBuf>> =
        files.map(|file| Some(folder.join(file["filename"].as_str()?))).collect();
    let names = names.filter(|names| !names.is_empty());
    names.ok_or_else(|| Error::of(folder, "its `state.json` names no `_data_files`"))
}

/// An open file and the columns to read.
struct Table {
    path: PathBuf,
    batches: Batches,
    /// Each column's name in a record, and its index in a batch.
    places: Vec<(String, usize)>,
    /// Hugging Face's feature descriptions by column name in a record.
    features: Arc<Map<String, Value>>,
}

impl Table {
    fn open(path: &Path, columns: &[&Column]) -> Result<Self, Error> {
        let open = |projection: Option<&[usize]>| {
            let content = Content::of(path)?;
            guarded(|| batches(path, content, projection).map_err(|error| error.to_string()), |reason| reason)
                .map_err(|reason| {
                    let reason = words::excerpt(&reason);
                    Error::of(path, format!("it is not a complete Parquet or Arrow file ({reason})"))
                })
        };
        let (schema, _) = open(None)?;
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let chosen: Vec<(String, usize)> = if columns.is_empty() {
            let is_readable = |(_, place): &(String, usize)| is_readable(schema.field(*place).data_type());
            names.iter().cloned().zip(0..).filter(is_readable).collect()
        } else {
            let chosen = columns.iter().map(|column| chosen(column, &names)).collect::<Result<_, _>>();
            chosen.map_err(|reason| Error::Invalid(format!("`{}` {reason}", path.display())))?
        };
        for (_, place) in &chosen {
            let field = schema.field(*place);
            if !is_readable(field.data_type()) {
                let (name, found) = (field.name(), words::excerpt(&field.data_type().to_string()));
                let allowed = "only texts, numbers, booleans, and lists and structures of them are supported";
                return Err(Error::of(path, format!("column `{name}` is of type {found}, but {allowed}")));
            }
        }
        let mut projection: Vec<usize> = chosen.iter().map(|(_, place)| *place).collect();
        projection.sort_unstable();
        projection.dedup();
        let all = features(&schema);
        let features =
            chosen.iter().filter_map(|(key, place)| Some((key.clone(), all.get(&names[*place])?.clone())));
        let features = Arc::new(features.collect());
        let rank = |place: usize| projection.partition_point(|other| *other < place);
        let places = chosen.into_iter().map(|(key, place)| (key, rank(place))).collect();
        let (_, batches) = open(Some(&projection))?;
        Ok(Self { path: path.to_owned(), batches, places, features })
    }

    /// Returns the rows; all have the number 0, which the caller replaces.
    fn records(mut self) -> impl Iterator<Item = Result<Record, Error>> {
        let (places, features, path) = (self.places, self.features, self.path);
        let batches = iter::from_fn(move || {
            let next = || self.batches.next().transpose().map_err(|error: ArrowError| error.to_string());
            guarded(next, |reason| reason).transpose()
        });
        batches.flat_map(move |batch| -> Box<dyn Iterator<Item = Result<Record, Error>>> {
            let batch = match batch {
                Ok(batch) => batch,
                Err(reason) => {
                    let source = std::io::Error::other(words::excerpt(&reason));
                    return Box::new(iter::once(Err(Error::reading(&path)(source))));
                }
            };
            let (places, features) = (places.clone(), features.clone());
            Box::new((0..batch.num_rows()).map(move |row| Ok(record(&batch, row, &places, &features))))
        })
    }
}

fn record(
    batch: &RecordBatch,
    row: usize,
    places: &[(String, usize)],
    features: &Arc<Map<String, Value>>,
) -> Record {
    let field = |(key, place): &(String, usize)| (key.clone(), value(batch.column(*place), row));
    Record { features: Some(features.clone()), ..Record::numbered(0, places.iter().map(field).collect()) }
}

/// Returns a column's name in records and its index. A name with dots may be a field of a structure.
fn chosen(column: &Column, names: &[String]) -> Result<(String, usize), String> {
    let column = match column {
        Column::Name(name) if !names.contains(name) && name.contains('.') => {
            Column::Name(name.split('.').next().unwrap_or_default().to_owned())
        }
        other => other.clone(),
    };
    Ok((column.key(), place(&column, names)?))
}

/// Opens a file; returns its schema with metadata, and an iterator over batches.
///
/// - `projection`: indices of the columns to decode, in ascending order; `None` decodes all
fn batches(
    path: &Path,
    content: Content,
    projection: Option<&[usize]>,
) -> Result<(SchemaRef, Batches), ArrowError> {
    let file = durable::open_regular(path)?;
    let projected = projection.map(<[usize]>::to_vec);
    let batches: Batches = match content {
        Content::Parquet => {
            let builder = ParquetRecordBatchReaderBuilder::try_new(file)?.with_batch_size(BATCH);
            let columns = builder.parquet_schema();
            let mask =
                projected.map_or(ProjectionMask::all(), |places| ProjectionMask::roots(columns, places));
            // the reader's own schema lacks the metadata
            let schema = builder.schema().clone();
            return Ok((schema, Box::new(builder.with_projection(mask).build()?)));
        }
        Content::Arrow => Box::new(FileReader::try_new(BufReader::new(file), projected)?),
        _ => Box::new(StreamReader::try_new(BufReader::new(file), projected)?),
    };
    Ok((batches.schema(), batches))
}

/// Returns Hugging Face's feature descriptions by column name; empty if the file does not come from datasets.
fn features(schema: &Schema) -> Map<String, Value> {
    let text = schema.metadata().get("huggingface").map_or("", String::as_str);
    let mut json: Value = serde_json::from_str(text).unwrap_or_default();
    match json.pointer_mut("/info/features").map(Value::take) {
        Some(Value::Object(features)) => features,
        _ => Map::new(),
    }
}

/// Returns true if [`value`] can read the type.
fn is_readable(kind: &DataType) -> bool {
    use DataType::{
        Boolean, Dictionary, FixedSizeList, LargeList, LargeUtf8, List, Null, Struct, Utf8, Utf8View,
    };
    match kind {
        Null | Boolean | Utf8 | LargeUtf8 | Utf8View => true,
        Dictionary(_, kind) => is_readable(kind),
        List(field) | LargeList(field) | FixedSizeList(field, _) => is_readable(field.data_type()),
        Struct(fields) => fields.iter().all(|field| is_readable(field.data_type())),
        kind => kind.is_integer() || kind.is_floating(),
    }
}

/// Converts a cell to JSON; missing and non-finite numbers become null.
fn value(array: &dyn Array, row: usize) -> Value {
    macro_rules! number {
        ($kind:ty) => {
            array.as_primitive::<$kind>().value(row).into()
        };
    }
    if array.is_null(row) {
        return Value::Null;
    }
    let list = |members: &dyn Array| (0..members.len()).map(|member| value(members, member)).collect();
    match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).into(),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Float16 => array.as_primitive::<Float16Type>().value(row).to_f64().into(),
        // through its shortest decimal form, so that 0.1 stays 0.1
        DataType::Float32 => array
            .as_primitive::<Float32Type>()
            .value(row)
            .to_string()
            .parse::<f64>()
            .map_or(Value::Null, Value::from),
        DataType::Float64 => number!(Float64Type),
        DataType::Utf8 => array.as_string::<i32>().value(row).into(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).into(),
        DataType::Utf8View => array.as_string_view().value(row).into(),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let key = value(dictionary.keys(), row).as_u64().unwrap_or_default() as usize;
            value(dictionary.values(), key)
        }
        DataType::List(_) => list(&array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => list(&array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => list(&array.as_fixed_size_list().value(row)),
        DataType::Struct(fields) => {
            let columns = fields.iter().zip(array.as_struct().columns());
            columns.map(|(field, column)| (field.name().clone(), value(column, row))).collect()
        }
        _ => Value::Null, // `Null`; others are refused
    }
}
