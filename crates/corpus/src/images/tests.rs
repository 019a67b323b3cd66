use super::*;
use serde_json::Value;
use std::fs;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/images")
}

fn processor(settings: &Value, shape: [usize; 3]) -> Result<ImageProcessor, String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(ImageProcessor::file_name()), settings.to_string()).unwrap();
    ImageProcessor::load(folder.path(), shape).map_err(|fault| fault.to_string())
}

/// Reference values from transformers 4.57.1 with Pillow (`make_images.py`). PNG agrees to the last level. JPEG decoders differ by up to
/// two levels, which is 2/255 · 2 after normalisation.
#[test]
fn images_are_prepared_as_by_the_slow_processors_of_transformers() {
    let text = fs::read_to_string(fixtures().join("processed.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(cases.len(), 18);
    for case in cases {
        let expected: Vec<Vec<Vec<f64>>> = serde_json::from_value(case["pixel_values"].clone()).unwrap();
        let shape = [expected.len(), expected[0].len(), expected[0][0].len()];
        let file = case["file"].as_str().unwrap();
        let processor = processor(&case["settings"], shape).unwrap();
        let levels = processor.read(&fixtures().join(file)).unwrap();
        let expected = expected.into_iter().flatten().flatten();
        let gaps =
            processor.values(&levels).zip(expected).map(|(found, wanted)| (f64::from(found) - wanted).abs());
        let gap = gaps.fold(0.0, f64::max);
        let tolerance = if file.ends_with(".jpg") { 4.0 / 255.0 + 2e-6 } else { 2e-6 };
        assert!(gap < tolerance, "{file} by {}: {gap}", case["settings"]);
    }
}

#[test]
fn files_that_are_no_image_of_a_supported_kind_are_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let processor = ImageProcessor::plain([3, 8, 8]);
    let refusal = |path: &Path| {
        let fault = processor.read(path).unwrap_err().to_string();
        assert!(fault.contains(&path.display().to_string()) && !fault.contains('\n'), "{fault}");
        fault
    };
    let [png, jpg] = ["colour.png", "colour.jpg"].map(|name| fs::read(fixtures().join(name)).unwrap());
    // width 0 in the header of a PNG
    let widthless = [&png[..16], &[0; 4], &png[20..]].concat();
    for (name, bytes) in [
        ("head.png", &png[..30]),
        ("half.png", &png[..png.len() / 2]),
        ("half.jpg", &jpg[..jpg.len() / 2]),
        ("widthless.png", &widthless),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let fault = refusal(&path);
        assert!(fault.contains("not a complete PNG or JPEG image"), "{fault}");
    }
    assert!(refusal(&fixtures().join("gif.png")).contains("its content has a different format"));
    assert!(refusal(&fixtures().join("cmyk.jpg")).contains("CMYK colours"));
    assert!(refusal(&fixtures().join("deep.png")).contains("16 bits per channel"));
}

#[test]
fn settings_that_do_not_fit_the_model_are_refused() {
    for (settings, expected) in [
        (r#"{"image_processor_type": "CLIPImageProcessor"}"#, "CLIPImageProcessor is not supported"),
        (r#"{"size": 16}"#, "it makes images of 16 × 16 pixels, but the model reads 8 × 8"),
        (r#"{"size": {"shortest_edge": 8}}"#, "a number of pixels, or {"),
        (r#"{"size": 8, "resample": 9}"#, "resample is 9; it must be from 0 to 5"),
        (r#"{"size": 8, "image_mean": [0.5]}"#, "image_mean has 1 numbers, but the model reads 3 channels"),
        (r#"{"size": 8, "image_std": [1, 0, 1]}"#, "image_std must not contain 0"),
        (r#"{"size": 6, "do_center_crop": true, "crop_size": 8}"#, "crop_size [8, 8] is larger than size"),
        ("[]", "invalid type"),
    ] {
        let refusal = processor(&serde_json::from_str(settings).unwrap(), [3, 8, 8]).unwrap_err();
        assert!(refusal.contains(expected), "{refusal}");
    }
    let folder = tempfile::tempdir().unwrap();
    let refusal = ImageProcessor::load(folder.path(), [3, 8, 8]).unwrap_err().to_string();
    assert!(refusal.contains("preprocessor_config.json`: the file is missing"), "{refusal}");
}

/// Saved settings load again, and null means the default, as in Google's folders.
#[test]
fn settings_go_there_and_back() {
    let own = ImageProcessor::plain([1, 5, 7]);
    let folder = tempfile::tempdir().unwrap();
    own.save(&folder.path().join(ImageProcessor::file_name())).unwrap();
    let back = ImageProcessor::load(folder.path(), [1, 5, 7]).unwrap();
    let levels: Vec<u8> = (0..35).map(|level| level * 7).collect();
    assert_eq!(back.values(&levels).collect::<Vec<_>>(), own.values(&levels).collect::<Vec<_>>());
    assert_eq!(own.values(&[0; 35]).next(), Some(-1.0));
    assert_eq!(own.values(&[255; 35]).next(), Some(1.0));
    // DeiT resizes to 256 and crops to 224 by default; null means the default
    for family in ["ViT", "DeiT"] {
        let mut settings = serde_json::json!({"image_processor_type": format!("{family}ImageProcessor")});
        let values = |settings: &Value| {
            let own = processor(settings, [3, 224, 224]).unwrap();
            own.values(&own.read(&fixtures().join("colour.png")).unwrap()).collect::<Vec<_>>()
        };
        let default = values(&settings);
        // mean and standard deviation 0.5, as transformers 4.57.1 has them for both
        assert!(default.iter().all(|value| (-1.0..=1.0).contains(value)), "{family}");
        for entry in ["size", "resample", "crop_size", "image_mean", "image_std"] {
            settings[entry] = Value::Null;
        }
        assert_eq!(values(&settings), default, "{family}");
    }
}

#[test]
fn classes_are_folders_and_files_come_in_alphabetical_order() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = || read_folder(folder.path()).unwrap_err().to_string();
    assert!(refusal().contains("it contains no class folders"), "{}", refusal());
    for path in ["dog/b.png", "dog/a.JPG", "cat/2.jpeg", "dog/.hidden", "notes.txt"] {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, path.display().to_string()).unwrap();
    }
    let examples = read_folder(folder.path()).unwrap();
    let found = examples.iter().map(|own| (own.label.as_str(), own.input.first().into_owned()));
    let wanted = [("cat", "cat/2.jpeg"), ("dog", "dog/a.JPG"), ("dog", "dog/b.png")];
    assert!(found.eq(wanted.map(|(class, file)| (class, folder.path().join(file).display().to_string()))));
    let sum = checksum::of_examples(&examples);
    fs::write(folder.path().join("dog/b.png"), "other pixels").unwrap();
    assert_ne!(checksum::of_examples(&read_folder(folder.path()).unwrap()), sum);

    fs::write(folder.path().join("loose.png"), "").unwrap();
    assert!(refusal().contains("loose.png`: an image must be in a folder"), "{}", refusal());
    fs::remove_file(folder.path().join("loose.png")).unwrap();
    fs::create_dir(folder.path().join("ant")).unwrap();
    assert!(refusal().contains("ant`: the folder of this class contains no .png"), "{}", refusal());
    fs::write(folder.path().join("ant/list.csv"), "").unwrap();
    assert!(refusal().contains("list.csv`: not an image"), "{}", refusal());
}

/// Rows 1, 2 and 4 go to one split and row 3 to the other; levels 0, 2 and 4 of 4 are 0, 128 and 255 of 255.
#[test]
fn rows_of_pixels_become_files_by_split_and_class() {
    let folder = tempfile::tempdir().unwrap();
    let table = PixelTable {
        height: 1,
        width: 3,
        white: 4,
        splits: ["train", "train", "test"].map(str::to_owned).to_vec(),
    };
    let file = folder.path().join("pixels.csv");
    fs::write(&file, "0,2,4,7\n4,4,4,5\n1,0,0,7\n0,0,0,7\n").unwrap();
    table.unpack(&file, folder.path()).unwrap();
    let found = |split: &str| -> Vec<String> {
        let split = folder.path().join(split);
        let files = list(&split).unwrap();
        files.iter().map(|path| path.strip_prefix(&split).unwrap().display().to_string()).collect()
    };
    assert_eq!(found("train"), ["5/00002.png", "7/00001.png", "7/00004.png"]);
    assert_eq!(found("test"), ["7/00003.png"]);
    let levels = Levels::open(&folder.path().join("train/7/00001.png"), 1).unwrap();
    assert_eq!((levels.height, levels.width, levels.values), (1, 3, vec![0, 128, 255]));

    fs::remove_dir_all(folder.path().join("test")).unwrap();
    for row in ["0,2,5,7", "0,2,7", "0,2,4,../x"] {
        fs::write(&file, format!("0,0,0,1\n0,0,0,1\n{row}\n")).unwrap();
        let fault = table.unpack(&file, folder.path()).unwrap_err().to_string();
        assert!(fault.ends_with("line 3: expected 3 levels from 0 to 4 and a class"), "{fault}");
    }
    let nameless = PixelTable { splits: Vec::new(), ..table };
    assert!(nameless.validate().unwrap_err().contains("needs `splits`"));
}
