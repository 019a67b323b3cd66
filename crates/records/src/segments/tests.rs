use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn of_classes() -> Blocks {
    Blocks { columns: ["gold", "predicted"].map(str::to_owned).to_vec(), ..Blocks::default() }
}

fn cells(predicted: &[u32]) -> Vec<Cells> {
    predicted.iter().map(|&predicted| [1, predicted].map(Cell::Count).to_vec()).collect()
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
fn a_member_may_be_as_long_as_the_limit() {
    for (text, is_read) in [("1234", true), ("12345", true), ("123456", false), ("123456789", false)] {
        let bytes = compressed(text);
        match member(&[bytes.as_slice(), b"more"].concat(), 5) {
            Ok(found) => {
                assert!(is_read, "{text}");
                assert_eq!(found, Some((text.as_bytes().to_vec(), bytes.len())));
            }
            Err(fault) => assert!(!is_read && fault.contains("contains more than"), "{text}: {fault}"),
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
    assert!(variant.cells(None).unwrap_err().contains("skips segments before segment 2"));
}

/// Torn after every byte.
#[test]
fn a_torn_file_keeps_its_complete_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.segments.csv.gz");
    let blocks = three_blocks();
    let mut known = of_classes();
    let mut whole = Vec::new();
    for block in &blocks {
        whole.extend(known.addition(block));
        known.insert(block.clone());
    }
    assert_eq!(Blocks::of(&path, &whole).unwrap(), known);
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        let there = Blocks::read_untorn(&path).unwrap().unwrap_or_default();
        let is_kept = blocks.each_ref().map(|block| there.get(&block.name) == Some(block));
        let is_start = is_kept.is_sorted_by(|before, after| before >= after);
        assert!(is_start && !is_kept[2], "torn after {length} bytes: {is_kept:?}");
    }
}

#[test]
fn other_files_are_refused() {
    // without the second of three lines, `,,0,0`, which adds nothing to the sums, the block would have two segments
    let (text, mut blocks) = ("row,segment,gold,predicted\nbase,0,2,1\n,,1,1\n,3,1,0\n", Blocks::default());
    parse(text, &mut blocks).unwrap();
    let fault = blocks.get("base").unwrap().cells(None).unwrap_err();
    assert_eq!(fault, "`base` skips segments before segment 3");
    let refusal = |bytes: &[u8]| Blocks::of(Path::new("a.gz"), bytes).unwrap_err().to_string();
    for (lines, fault) in [
        ("base", "`base` is not a valid line"),
        ("base,0,1e999", "lacks a number"),
        ("base,0,1,2", "lacks a number"),
        ("base,0,9\nbase,1,99999999999", "lacks a number"),
        ("base,0,9.5\nbase,1,NaN", "lacks a number"),
        ("base,one,1", "has no segment"),
        (",,1", "has no segment"),
        (",0,1", "`,0,1` has no row"),
        ("base,1,1", "does not follow"),
        ("base,0,1\nother,1,1", "does not follow"),
        ("base,0,1\nbase,1,1\nbase,1,1", "does not follow"),
        ("base,0,9\nbase,9999999,9", "does not follow"),
    ] {
        let message = refusal(&compressed(&format!("row,segment,gold\n{lines}\n")));
        assert!(message.contains(fault) && !message.contains('\n'), "{message}");
    }
    let whole = compressed("row,segment,gold\nbase,0,9\nbase,1,9\n");
    for (bytes, fault) in [
        (compressed("day,note\n"), "it begins with `day,note`: expected `row,segment,`"),
        (compressed("row,segment\n"), "it begins with `row,segment`: expected `row,segment,`"),
        (b"plain text".to_vec(), "it is not compressed with gzip"),
        ([&whole, &b"plain text"[..]].concat(), "the data after its last gzip member is not gzip"),
        ([&whole, &whole[..1]].concat(), "its end is torn"),
        (whole[..9].to_vec(), "its end is torn"),
    ] {
        let message = refusal(&bytes);
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
        let mut blocks = of_classes();
        blocks.insert(Block::new("base".to_owned(), &base, None));
        blocks.insert(Block::new("v".to_owned(), &variant, Some(&base)));
        let read = Readable::of(Path::new("a.gz"), &blocks.bytes()).unwrap().blocks;
        prop_assert_eq!(&read, &blocks);
        let of_base = read.get("base").unwrap().cells(None).unwrap();
        prop_assert_eq!(read.get("v").unwrap().cells(Some(&of_base)).unwrap(), variant);
    }
}
