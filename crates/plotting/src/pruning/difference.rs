//! In what two runs differ whose curves cannot share a figure.
use records::Identity;

use crate::error::Difference;

/// Arguments that change the score or the heads of a step.
const ARGUMENTS: [&str; 3] = ["rescale", "keep_at_least", "step_percent"];

/// The first entry of two signatures that should be the same and is not: model, test set, and what heads may be masked. What
/// one of the two does not name is not compared.
pub(super) fn between(first: &Identity, second: &Identity) -> Option<Difference> {
    let (first, second) = (entries(first), entries(second));
    first.into_iter().zip(second).find_map(|((entry, expected), (_, found))| {
        let (expected, found) = (expected?, found?);
        (expected != found).then_some(Difference { entry, found, expected })
    })
}

/// Names and values, always the same names in the same order.
fn entries(identity: &Identity) -> Vec<(String, Option<String>)> {
    let split = Some(identity.split.clone()).filter(|split| !split.is_empty());
    let limit = identity.limit.map_or("none".to_owned(), |limit| limit.to_string());
    let data = identity.data.get(&identity.split).cloned();
    let fixed = [
        ("split", split),
        ("limit", Some(limit)),
        ("weights", identity.weights.clone()),
        ("data of the split", data),
    ];
    let argument = |name| (name, identity.arguments.get(name).map(|value| value.to_string()));
    let all = fixed.into_iter().chain(ARGUMENTS.map(argument));
    all.map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity {
            split: "test".to_owned(),
            weights: Some("ab12".to_owned()),
            data: [("test".to_owned(), "cd34".to_owned())].into(),
            arguments: [("step_percent".to_owned(), 10.into()), ("rescale".to_owned(), false.into())].into(),
            ..Identity::new("iterative-prune", "demo-x")
        }
    }

    fn difference(change: impl Fn(&mut Identity)) -> Option<(String, String, String)> {
        let mut other = Identity { experiment: "joint-search".to_owned(), ..identity() };
        change(&mut other);
        let difference = between(&identity(), &other);
        difference.map(|Difference { entry, found, expected }| (entry, found, expected))
    }

    #[test]
    fn model_data_and_steps_must_be_the_same() {
        let expect = |found: Option<(String, String, String)>, expected: [&str; 3]| {
            assert_eq!(found, Some(expected.map(str::to_owned).into()));
        };
        expect(difference(|other| other.weights = Some("ef56".to_owned())), ["weights", "ef56", "ab12"]);
        expect(difference(|other| other.limit = Some(300)), ["limit", "300", "none"]);
        expect(difference(|other| other.split = "dev".to_owned()), ["split", "dev", "test"]);
        let data = difference(|other| drop(other.data.insert("test".to_owned(), "ef56".to_owned())));
        expect(data, ["data of the split", "ef56", "cd34"]);
        let steps = difference(|other| drop(other.arguments.insert("step_percent".to_owned(), 5.into())));
        expect(steps, ["step_percent", "5", "10"]);
    }

    #[test]
    fn what_only_one_of_them_names_is_not_compared() {
        assert_eq!(difference(|_| ()), None);
        assert_eq!(difference(|other| other.arguments.clear()), None);
        assert_eq!(difference(|other| (other.weights, other.seed) = (None, Some(7))), None);
        let searched = difference(|other| {
            drop(other.data.insert("search: dev".to_owned(), "ef56".to_owned()));
            drop(other.arguments.insert("search_on".to_owned(), "dev".into()));
        });
        assert_eq!(searched, None);
    }
}
