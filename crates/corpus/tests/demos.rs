//! The demos byte by byte: trained models and committed results depend on their texts and tokens.
use std::fs;

use corpus::checksum::{of_documents, of_examples, of_pairs};
use corpus::classifier_tokenizer::ClassifierTokenizer;
use corpus::grammar::{SplitSizes, Splits, demo_splits, inference_splits, language_splits};
use corpus::language_tokenizer::LanguageTokenizer;
use corpus::parallel::ParallelText;
use corpus::repeats::Repeats;
use corpus::splits::language::Grammar;
use corpus::tokenizer::SubwordTokenizer;
use sha2::{Digest, Sha256};

/// Returns the SHA-256 of the `tokenizer.json` that `save` writes.
fn saved(save: impl Fn(&std::path::Path) -> Result<(), corpus::Error>) -> String {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("tokenizer.json");
    save(&path).expect("the folder can be written");
    format!("{:x}", Sha256::digest(fs::read(path).expect("it was written")))
}

/// Checksums from `results/demo-translation/*.json`.
#[test]
fn the_demo_of_translators_is_that_of_the_committed_results() {
    let sizes = SplitSizes { train: 16_000, dev: 300, test: 400, shifted: 400 };
    let Splits { train, dev, test, shifted } = demo_splits(sizes, 1);
    let [train, dev, test, shifted] = [train, dev, test, shifted].map(|samples| {
        let (source, target) = samples.into_iter().map(|sample| (sample.source, sample.target)).unzip();
        ParallelText { source, target, ..ParallelText::default() }
    });
    for (text, sum) in [
        (&dev, "77e1325e3e93c748de9581778c2fec59fe4ce42911ccde437cdc193c07a29ff9"),
        (&test, "9b3f4168085f86e3cc597c98aacec642c242b00f3d347d5bd0f560dcb10e7320"),
        (&shifted, "4c9ab6cf90917714eabbf346bc6bd73925267ef7e1ee699d1af4f7064e0f9cee"),
        (&train, "833f50013bfee26b4aa28f775c6e9be3662ac688392d87be43378c8acabde807"),
    ] {
        assert_eq!(of_pairs(text), sum);
    }
    let tokenizer = SubwordTokenizer::train(train.source.iter().chain(&train.target), 1_000);
    let sum = saved(|path| tokenizer.as_ref().expect("it is large enough").save(path));
    assert_eq!(sum, "ce23d0b86b4c929291398a9c6f97f0eaf820979899d13e05aa1c9c0c98efaa1c");
}

/// Checksums from `results/demo-inference/*.json`.
#[test]
fn the_demo_of_classifiers_is_that_of_the_committed_results() {
    let sizes = SplitSizes { train: 60_000, dev: 1_000, test: 2_000, shifted: 2_000 };
    let Splits { train, test, shifted, .. } = inference_splits(sizes, 1);
    for (examples, sum) in [
        (&test, "2e4d0b2cbe6daa0839dec9eab9ce6e443b9fda4e35f8b6a9c858c2bc749372b0"),
        (&shifted, "bc06a287451031419ad3378afecf94acc47e12913615118c524159e395d12f77"),
        (&train, "9c7d0dcb40712a35e22e1a5cfd4d94bc997aaf5175953f084abdeb05ea869f2f"),
    ] {
        assert_eq!(of_examples(examples), sum);
    }
    let texts = train.iter().flat_map(|example| example.input.texts());
    let tokenizer = ClassifierTokenizer::train(texts, 800, 64).expect("it is large enough");
    let sum = saved(|path| tokenizer.save(path));
    assert_eq!(sum, "cd46d5e06d13abe87cb68121889d4bd4a52cded50a3d7fc689d9c3ff1df41d74");
}

/// Checksums from `results/demo-language/*.json`.
#[test]
fn the_demo_of_language_models_is_that_of_the_committed_results() {
    let sizes = SplitSizes { train: 16_000, dev: 300, test: 600, shifted: 600 };
    let Splits { train, test, shifted, .. } = language_splits(sizes, 1);
    for (documents, sum) in [
        (&test, "ac518d397d7b99cd44569cb0992486966b87b22faa7398b5d01c9350628282dd"),
        (&shifted, "fdbeb25300af90edd5cb787dba78dbef3168ee45631d7e6a440a3c07bb703cf0"),
        (&train, "af2b6b41c654fcbfd3d29dedc543d3733e2024fe26360133ba3eec5bdeb1c399"),
    ] {
        assert_eq!(of_documents(documents), sum);
    }
    let grammar = Grammar { seed: 1, train: 0, dev: 0, test: 0, shifted: 0, pairs: 1_200 };
    for (split, sum) in [
        ("agreement", "3be77f187f43d0068363e8a52bd2e4075a8b3f4bcade7a4286c3ea0d8157feb1"),
        ("agreement-shifted", "73c29d8916835c7f297ff59e997265f4e41a8bcb4cf88a724188fe9edf87791c"),
    ] {
        assert_eq!(grammar.read(split).expect("a split of the demo").sha256(), sum, "{split}");
    }
    let texts = train.iter().map(|document| document.text.as_str());
    let tokenizer = LanguageTokenizer::train_bytes(texts, 800).expect("it is large enough");
    let sum = saved(|path| tokenizer.save(path));
    assert_eq!(sum, "6fd96922b88006b8dbd237bf119191d0caf3d0acf3b55ed4a8fd2bd6d7293e9c");
}

/// Checksums from `results/demo-induction/*.json`.
#[test]
fn the_demo_of_induction_is_that_of_the_committed_results() {
    let repeats =
        Repeats { seed: 1, symbols: 64, shortest: 4, longest: 24, train: 40_000, dev: 300, test: 500 };
    for (split, sum) in [
        ("train", "7ac5d6cbf549e424b2a63fa344c55845d269e4aef56e8dc7754cffee1756d358"),
        ("dev", "c211afc7d35266adecfa0799566c6fad7cc292eed9e6304455f11b1c48bf455a"),
        ("test", "57ad24fb0f4acebd0bec73dbf4788643380d153965e2e488b81824620394b2f9"),
    ] {
        assert_eq!(of_documents(&repeats.read(split).expect("a split of the demo")), sum, "{split}");
    }
}
