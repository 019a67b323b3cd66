use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

const COLUMNS: [&str; 2] = ["gold", "predicted"];

fn cells(predicted: &[u32]) -> Vec<Cells> {
    predicted.iter().map(|&predicted| [1, predicted].map(Cell::Count).to_vec()).collect()
}

fn written(path: &Path, blocks: &[Block]) {
    let mut known = Blocks { columns: COLUMNS.map(str::to_owned).to_vec(), ..Blocks::default() };
    let mut bytes = Vec::new();
    for block in blocks {
        bytes.extend(known.addition(block));
        known.insert(block.clone());
    }
    std::fs::write(path, bytes).unwrap();
}

fn read(path: &Path) -> Result<Option<Blocks>, Error> {
    bytes(path)?.map(|bytes| Blocks::of(path, &bytes)).transpose()
}

fn three_blocks() -> [Block; 3] {
    let (base, variant) = (cells(&[1, 0, 1]), cells(&[1, 1, 1]));
    [
        Block::new("base".to_owned(), &base, None),
        Block::new("self:1:1".to_owned(), &variant, Some(&base)),
        Block::new("self:1:2".to_owned(), &base, Some(&base)),
    ]
}

/// A text of the maximum length is read, any longer one is refused.
#[test]
fn a_member_may_be_as_long_as_what_is_left() {
    for (text, is_read) in [("1234", true), ("12345", true), ("123456", false), ("123456789", false)] {
        let bytes = compressed(text);
        match member(&[bytes.as_slice(), b"more"].concat(), 5) {
            Ok(found) => {
                assert!(is_read, "{text}");
                assert_eq!(found, Some((text.as_bytes().to_vec(), bytes.len())));
            }
            Err(fault) => assert!(!is_read && fault.contains("it holds more than"), "{text}: {fault}"),
        }
    }
}

#[test]
fn only_what_differs_from_the_base_is_stored() {
    let [base, variant, same] = three_blocks();
    let sums = |sums: [u64; 2]| sums.map(Sum::Count).to_vec();
    assert_eq!((base.segments.len(), &base.sums), (3, &sums([3, 2])));
    let changed = [(1, cells(&[1]).remove(0))];
    assert_eq!((variant.segments.as_slice(), &variant.sums), (&changed[..], &sums([3, 3])));
    assert!(same.segments.is_empty());
    assert_eq!(base.text(), "base,0,3,2\n,,1,1\n,,1,0\n,3,1,1\n");
    assert_eq!(variant.text(), "self:1:1,0,3,3\n,2,1,1\n");
    let of_base = base.cells(None).unwrap();
    assert_eq!(variant.cells(Some(&of_base)), Ok(cells(&[1, 1, 1])));
    let other = cells(&[0, 0, 0]);
    assert!(variant.cells(Some(&other)).unwrap_err().contains("do not add up"));
    assert!(variant.cells(None).unwrap_err().contains("does not reach segment 2"));
}

/// Torn after every byte.
#[test]
fn a_torn_file_keeps_its_complete_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.segments.csv.gz");
    let blocks = three_blocks();
    written(&path, &blocks);
    let whole = std::fs::read(&path).unwrap();
    let expected = read(&path).unwrap().unwrap();
    assert_eq!(expected.get("self:1:1"), Some(&blocks[1]));
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        let there = Blocks::read_untorn(&path).unwrap().unwrap_or_default();
        let is_kept = blocks.each_ref().map(|block| there.get(&block.name) == Some(block));
        assert!(
            is_kept.is_sorted_by(|before, after| before >= after),
            "torn after {length} bytes: {is_kept:?}"
        );
        assert!(!is_kept[2], "torn after {length} bytes");
    }
}

#[test]
fn equal_statistics_give_equal_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["a.gz", "b.gz"].map(|name| folder.path().join(name));
    let mut blocks = three_blocks();
    written(&first, &blocks);
    blocks.reverse();
    written(&second, &blocks);
    let [first, second] = [first, second].map(|path| read(&path).unwrap().unwrap());
    assert_eq!(first.bytes(), second.bytes());
    std::fs::write(folder.path().join("c.gz"), first.bytes()).unwrap();
    assert_eq!(read(&folder.path().join("c.gz")).unwrap(), Some(first));
}

/// As in earlier versions: row and segment in every line, or in some lines.
#[test]
fn names_and_numbers_that_a_reader_can_tell_may_stand_there() {
    let text: String = three_blocks().iter().map(Block::text).collect();
    let long = text.replace("\n,,1,1\n,,1,0\n,3,1,1\n", "\nbase,1,1,1\nbase,2,1,0\n,,1,1\n");
    let long = long.replace("\n,2,1,1\n", "\nself:1:1,2,1,1\n");
    assert_eq!(long.lines().filter(|line| line.starts_with(',')).count(), 1, "{long}");
    let read = |text: &str| {
        let text = header(&COLUMNS.map(str::to_owned)) + text;
        Readable::of(Path::new("a.gz"), &compressed(&text)).unwrap().blocks
    };
    assert_eq!(read(&long), read(&text));
}

/// Without its second line, which adds nothing to the sums, the block would have two segments.
#[test]
fn a_missing_line_of_zeros_is_found() {
    let zeros =
        Block::new("base".to_owned(), &[[1, 1], [0, 0], [1, 0]].map(|of| of.map(Cell::Count).to_vec()), None);
    let (text, mut blocks) = (zeros.text().replacen(",,0,0\n", "", 1), Blocks::default());
    assert_eq!(text, "base,0,2,1\n,,1,1\n,3,1,0\n");
    parse(&(header(&COLUMNS.map(str::to_owned)) + &text), &mut blocks).unwrap();
    let fault = blocks.get("base").unwrap().cells(None).unwrap_err();
    assert_eq!(fault, "`base` does not reach segment 3");
}

#[test]
fn other_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gz");
    assert_eq!(read(&path).unwrap(), None);
    for (text, fault) in [
        ("day,note\n", "it begins with `day,note`"),
        ("row,segment\n", "it begins with"),
        ("row,segment,gold\nbase\n", "`base` is not a line of it"),
        ("row,segment,gold\nbase,0,x\n", "lacks a number"),
        ("row,segment,gold\nbase,0,1,2\n", "lacks a number"),
        ("row,segment,gold\nbase,one,1\n", "has no segment"),
        ("row,segment,gold\nbase,1,1\n", "does not follow"),
        ("row,segment,gold\nbase,0,1\nother,1,1\n", "does not follow"),
        ("row,segment,gold\nbase,0,1\nbase,1,1\nbase,1,1\n", "does not follow"),
        ("row,segment,gold\n,,1\n", "has no segment"),
        ("row,segment,gold\n,1,1\n", "does not follow"),
        ("row,segment,gold\n,0,1\n", "`,0,1` has no row"),
        ("row,segment,gold\nbase,0,1\n,,1\n,1,1\n", "does not follow"),
        ("row,segment,gold\nbase,0,9\nbase,1,99999999999\n", "lacks a number"),
        ("row,segment,nats\nbase,0,9.5\nbase,1,NaN\n", "lacks a number"),
        ("row,segment,nats\nbase,0,inf\n", "lacks a number"),
        ("row,segment,nats\nbase,0,9.5\nbase,1,-inf\n", "lacks a number"),
        ("row,segment,gold\nbase,0,9\nbase,9999999,9\n", "does not follow"),
    ] {
        std::fs::write(&path, compressed(text)).unwrap();
        let message = read(&path).unwrap_err().to_string();
        assert!(message.contains(fault) && !message.contains('\n'), "{message}");
    }
    let whole = compressed("row,segment,gold\nbase,0,9\nbase,1,9\n");
    for (bytes, fault) in [
        (b"plain text".to_vec(), "it is not compressed with gzip"),
        ([&whole, &b"plain text"[..]].concat(), "what follows its last gzip member is not gzip"),
        ([&whole, &whole[..1]].concat(), "its end is torn"),
        (whole[..9].to_vec(), "its end is torn"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let message = read(&path).unwrap_err().to_string();
        assert!(message.ends_with(fault), "{fault}: {message}");
    }
}

/// 0.1 and 0.2 in single precision; their sum in double precision has more digits.
#[test]
fn decimal_numbers_are_stored_as_short_as_can_be() {
    let documents = [[Cell::Decimal(0.1), Cell::Count(3)], [Cell::Decimal(0.2), Cell::Count(4)]];
    let cells: Vec<Cells> = documents.map(|document| document.to_vec()).to_vec();
    let block = Block::new("base".to_owned(), &cells, None);
    assert_eq!(block.text(), "base,0,0.30000000447034836,7\n,,0.1,3\n,2,0.2,4\n");
    let mut blocks = Blocks { columns: vec!["nats".to_owned(), "tokens".to_owned()], ..Blocks::default() };
    blocks.insert(block);
    let read = Readable::of(Path::new("a.gz"), &blocks.bytes()).unwrap().blocks;
    assert_eq!(read, blocks);
    assert_eq!(read.get("base").unwrap().cells(None), Ok(cells));
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes: Vec<u8>, text in "[a-z0-9.,\n]*") {
        let _ = Readable::of(Path::new("a.gz"), &bytes);
        let _ = Readable::of(Path::new("a.gz"), &compressed(&text));
    }

    #[test]
    fn blocks_read_back(predicted in vec((0..3_u32, 0..3_u32), 1..20)) {
        let (base, variant): (Vec<u32>, Vec<u32>) = predicted.into_iter().unzip();
        let (base, variant) = (cells(&base), cells(&variant));
        let mut blocks = Blocks { columns: vec!["gold".to_owned(), "predicted".to_owned()], ..Blocks::default() };
        blocks.insert(Block::new("base".to_owned(), &base, None));
        blocks.insert(Block::new("v".to_owned(), &variant, Some(&base)));
        let read = Readable::of(Path::new("a.gz"), &blocks.bytes()).unwrap().blocks;
        prop_assert_eq!(&read, &blocks);
        let of_base = read.get("base").unwrap().cells(None).unwrap();
        prop_assert_eq!(read.get("v").unwrap().cells(Some(&of_base)).unwrap(), variant);
    }
}
