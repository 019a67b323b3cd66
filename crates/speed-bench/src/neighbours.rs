//! Share of the processor time used by other processes during a measurement.
use std::fs;

/// Processor time since the system started, in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Of all processors, busy or idle.
    total: u64,
    /// Busy time of all processors, including time taken by other virtual machines.
    busy: u64,
    /// Busy time of this process.
    own: u64,
}

impl Usage {
    /// Returns the usage so far; `None` on systems other than Linux.
    pub fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?, &fs::read_to_string("/proc/self/stat").ok()?)
    }

    /// Returns the share of the processor time since `before` that others used, from 0 to 1; `None` if no time has passed.
    pub fn of_others_since(&self, before: &Self) -> Option<f64> {
        let since = |now: u64, before: u64| now.saturating_sub(before);
        let others = since(self.busy, before.busy).saturating_sub(since(self.own, before.own));
        let total = since(self.total, before.total);
        (total > 0).then(|| others as f64 / total as f64)
    }

    /// - `machine`: `/proc/stat`, whose first line has user, nice, system, idle, iowait, irq, softirq and steal
    /// - `process`: `/proc/self/stat`, whose 14th and 15th entries are user and system; its second, a name in brackets, may contain spaces
    fn parse(machine: &str, process: &str) -> Option<Self> {
        let line = machine.lines().find_map(|line| line.strip_prefix("cpu "))?;
        // later columns repeat guest time, which `user` and `nice` include
        let ticks: Vec<u64> =
            line.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        let (total, waiting) = (ticks.iter().sum::<u64>(), ticks.get(3..5)?.iter().sum::<u64>());
        let (_, entries) = process.rsplit_once(") ")?;
        let mut own = entries.split_whitespace().skip(11).map(str::parse::<u64>);
        let own = own.next()?.ok()? + own.next()?.ok()?;
        Some(Self { total, busy: total - waiting, own })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 100 ticks 60 were busy, 45 of these in this process: others used 15.
    #[test]
    fn others_use_the_busy_time_that_is_not_ours() {
        let usage = |machine: &str, own: &str| {
            let process = format!("17 (a (b) c) S 1 17 17 0 -1 4194304 500 0 0 0 {own} 0 0 20 0 1 0 99 1 1");
            Usage::parse(&format!("cpu  {machine}\ncpu0 1 2 3 4 5 6 7 8 9 10\nctxt 5\n"), &process).unwrap()
        };
        let before = usage("1000 10 100 5000 40 3 2 1 700 0", "300 20");
        let now = usage("1041 11 115 5030 50 4 3 2 800 0", "340 25");
        assert_eq!((before.total, before.busy, before.own), (6156, 1116, 320));
        assert_eq!(now.of_others_since(&before), Some(0.15));
        assert_eq!(now.of_others_since(&now), None);
    }
}
