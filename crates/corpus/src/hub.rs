//! Models on a hub.
use std::path::PathBuf;
use std::str::FromStr;

use crate::Error;

/// A model on a hub.
#[derive(Debug)]
pub struct HubModel {
    /// `owner/name`.
    pub repository: String,
}

/// A model that was brought.
#[derive(Debug)]
pub struct Fetched {
    /// Where it is.
    pub folder: PathBuf,
    /// Its revision.
    pub commit: String,
}

impl FromStr for HubModel {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Ok(Self { repository: name.to_owned() })
    }
}

impl HubModel {
    /// Not yet there.
    ///
    /// # Errors
    /// Always.
    pub fn fetch(&self, _quiet: bool) -> Result<Fetched, Error> {
        let reason = "hubs are not supported yet".to_owned();
        Err(Error::Network { address: self.repository.clone(), reason })
    }
}
