//! On what data heads were scored by gradients and attention weights, and how, as a signature says (Michel et al. 2019,
//! Section 4.1).
use records::Identity;

use crate::number::{count, short};

/// Weight of importance in importance-entropy that goes without saying.
const WEIGHT: f64 = 0.5;

/// How the scores of heads were estimated.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Estimate {
    split: Option<String>,
    /// Number of segments that the seed drew from the split; all if absent.
    segments: Option<u64>,
    is_by_token: bool,
    is_not_normalised: bool,
    weight: Option<f64>,
    is_repeated: bool,
}

impl Estimate {
    /// What the arguments in a signature say.
    pub fn of(identity: &Identity) -> Self {
        let argument = |name| identity.arguments.get(name);
        let text = |name| argument(name).and_then(|value| value.as_str());
        let flag = |name| argument(name).and_then(|value| value.as_bool());
        Self {
            split: text("estimate_on").map(str::to_owned),
            segments: argument("estimate_limit").and_then(|value| value.as_u64()),
            is_by_token: text("granularity") == Some("token"),
            is_not_normalised: flag("normalise") == Some(false),
            weight: argument("entropy_weight").and_then(|value| value.as_f64()),
            is_repeated: flag("recompute") == Some(true),
        }
    }

    /// The data: `2000 segments of train`, or the name of a split that was used whole.
    pub fn data(&self) -> Option<String> {
        let split = self.split.as_ref()?;
        let part = |segments| format!("{} of {split}", count(segments as usize, "segment"));
        Some(self.segments.map_or(split.clone(), part))
    }

    /// How importance departs from the defaults, which go without saying: `importance by token, not normalised`.
    pub fn departures(&self) -> Option<String> {
        let weight = self.weight.filter(|weight| *weight != WEIGHT);
        let parts = [
            self.is_by_token.then(|| "by token".to_owned()),
            self.is_not_normalised.then(|| "not normalised".to_owned()),
            weight.map(|weight| format!("weight {} beside entropy", short(weight))),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("importance {}", parts.join(", ")))
    }

    /// Sentences for the caption of curves that follow such orders.
    pub fn of_orders(&self) -> Vec<String> {
        let anew = if self.is_repeated { ", anew after each step" } else { "" };
        let data = self.data().map(|data| format!("orders estimated on {data}{anew}"));
        data.into_iter().chain(self.departures()).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An identity with all that [`Estimate`] reads, on 2000 segments of `train`.
    pub(crate) fn identity(granularity: &str, normalise: bool, weight: f64) -> Identity {
        let arguments = [
            ("estimate_on", "train".into()),
            ("estimate_limit", 2000.into()),
            ("granularity", granularity.into()),
            ("normalise", normalise.into()),
            ("entropy_weight", weight.into()),
        ];
        Identity {
            split: "test".to_owned(),
            arguments: arguments.map(|(name, value)| (name.to_owned(), value)).into(),
            ..Identity::new("any", "demo-x")
        }
    }

    #[test]
    fn only_departures_from_the_defaults_are_said() {
        let usual = Estimate::of(&identity("example", true, 0.5));
        assert_eq!(usual.of_orders(), ["orders estimated on 2000 segments of train"]);
        let mut other = identity("token", false, 0.25);
        other.arguments.insert("recompute".to_owned(), true.into());
        let expected = [
            "orders estimated on 2000 segments of train, anew after each step",
            "importance by token, not normalised, weight 0.25 beside entropy",
        ];
        assert_eq!(Estimate::of(&other).of_orders(), expected);
    }

    #[test]
    fn a_whole_split_has_no_number_and_an_unknown_one_no_name() {
        let mut identity = identity("example", true, 0.5);
        identity.arguments.remove("estimate_limit");
        assert_eq!(Estimate::of(&identity).data().unwrap(), "train");
        identity.arguments.clear();
        assert_eq!(Estimate::of(&identity), Estimate::default());
        assert_eq!(Estimate::default().data(), None);
    }
}
