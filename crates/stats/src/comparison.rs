//! What a comparison of two systems says.

/// Two systems on one test set, in the unit of the metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Score of the base system.
    pub base: f64,
    /// Score of the variant.
    pub variant: f64,
    /// `variant` minus `base`; below 0 the variant is worse.
    pub delta: f64,
    /// p-value of `delta`, 0 to 1: one-sided by [`paired_bootstrap`](crate::bootstrap::paired_bootstrap), two-sided by
    /// [`t_test::paired`](crate::t_test::paired) for accuracies; absent if it was not tested.
    pub p_value: Option<f64>,
    /// 95 % interval of `delta` by the same method; absent if it was not tested.
    pub interval: Option<(f64, f64)>,
    /// Two-sided p-value of [`t_test::unpaired`](crate::t_test::unpaired), for accuracies alone.
    pub p_unpaired_t: Option<f64>,
    /// Two-sided p-value of [`mcnemar::exact`](crate::mcnemar::exact), for accuracies alone.
    pub p_mcnemar: Option<f64>,
}

impl Comparison {
    /// The scores alone: a system is not tested against itself.
    pub fn untested(self) -> Self {
        Self { p_value: None, interval: None, p_unpaired_t: None, p_mcnemar: None, ..self }
    }
}
