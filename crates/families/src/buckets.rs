//! Buckets of distances between positions: short distances have one bucket each, longer ones share buckets that widen logarithmically.

/// The buckets of Raffel et al. (2020), Section 2.1, <https://arxiv.org/abs/1910.10683>: T5's, and MPNet's with
/// [`MPNET`](Self::MPNET).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct T5Buckets {
    /// Rows of the table, at least 2, or 4 if two-sided.
    pub buckets: i64,
    /// Distances from this one on are in the last bucket; more than `buckets / 2`.
    pub furthest: i64,
    /// True if keys after the query have separate buckets, as in encoders; decoders do not see them.
    pub two_sided: bool,
}

impl T5Buckets {
    /// MPNet's buckets, which its configuration cannot change.
    pub const MPNET: Self = Self { buckets: 32, furthest: 128, two_sided: true };

    /// Returns the bucket of `distance`, key minus query.
    pub fn bucket(self, distance: i64) -> i64 {
        let (side, buckets, distance) = match (self.two_sided, distance > 0) {
            (true, after) => (i64::from(after) * (self.buckets / 2), self.buckets / 2, distance.abs()),
            (false, _) => (0, self.buckets, (-distance).max(0)),
        };
        let exact = buckets / 2;
        if distance < exact {
            return side + distance;
        }
        let [distance, furthest] = [distance, self.furthest].map(|far| far as f64 / exact as f64);
        let share = distance.ln() / furthest.ln();
        side + (exact + (share * (buckets - exact) as f64) as i64).min(buckets - 1)
    }
}

/// The buckets of He et al. (2021), <https://arxiv.org/abs/2111.09543>, as in DeBERTa's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DebertaBuckets {
    /// Buckets on each side, at least 2.
    pub buckets: i64,
    /// The distance that is in the last bucket; more than `buckets / 2 + 1`.
    pub furthest: i64,
}

impl DebertaBuckets {
    /// Returns the signed bucket of `distance`, query minus key; distances up to `buckets / 2` are their own bucket.
    pub fn bucket(self, distance: i64) -> i64 {
        let middle = self.buckets / 2;
        if distance.abs() <= middle {
            return distance;
        }
        let [far, furthest] = [distance.abs(), self.furthest - 1].map(|far| far as f64 / middle as f64);
        let share = far.ln() / furthest.ln();
        ((share * (middle - 1) as f64).ceil() as i64 + middle) * distance.signum()
    }

    /// Returns the row in a table of `2 * buckets` rows.
    pub fn row(self, distance: i64) -> i64 {
        (self.bucket(distance) + self.buckets).clamp(0, 2 * self.buckets - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Compares all distances from -600 to 600 with transformers.
    #[test]
    fn buckets_equal_those_of_transformers() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../test-support/golden/more/buckets.json");
        let expected: BTreeMap<String, Vec<i64>> =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let t5 = |two_sided| move |far| T5Buckets { two_sided, ..T5Buckets::MPNET }.bucket(far);
        let cases: [(&str, &dyn Fn(i64) -> i64); 4] = [
            ("t5_encoder_32_128", &t5(true)),
            ("t5_decoder_32_128", &t5(false)),
            ("mpnet_32_128", &|far| T5Buckets::MPNET.bucket(far)),
            ("deberta_v3_256_512", &|far| DebertaBuckets { buckets: 256, furthest: 512 }.bucket(far)),
        ];
        for (name, bucket) in cases {
            let found: Vec<i64> = expected["distance"].iter().map(|&distance| bucket(distance)).collect();
            assert_eq!(found, expected[name], "{name}");
        }
    }
}
