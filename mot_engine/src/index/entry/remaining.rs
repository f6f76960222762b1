//! The keys that are left in a row's chain while many versions are removed. Whether an entry is
//! still needed is then one look-up, not a walk along the chain.

use crate::errors::EngineError;
use crate::key::{IndexDefinition, KeyBuffer, encode_row_if_any};
use crate::row::{Head, VersionRef};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The keys in one index of the versions from some place of a chain on to its end.
pub(crate) struct RemainingKeys {
    /// Where they begin.
    top: VersionRef,
    /// Hashes of keys, in order, and the versions that have them.
    versions: Vec<(u64, VersionRef)>,
}

fn hash(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

impl RemainingKeys {
    /// The keys that a chain has now; new versions come on top. The caller is pinned. If it has set
    /// the anchor's CLEANING, nothing else removes one of these versions. Otherwise one that
    /// does has not removed the version's entries yet. `None`: there are none, or process memory
    /// does not suffice, and the caller walks the chain.
    pub(crate) fn of(head: Head, definition: &IndexDefinition) -> Option<RemainingKeys> {
        let chain =
            || std::iter::successors(head.version(), VersionRef::next).filter(VersionRef::has_keys);
        let top = chain().next()?;
        let mut versions = Vec::new();
        let mut key = KeyBuffer::new();
        for version in chain() {
            encode_row_if_any(definition, version.body(), &mut key).ok()?;
            versions.try_reserve(1).ok()?;
            versions.push((hash(key.as_slice()), version));
        }
        versions.sort_unstable_by_key(|(hash, _)| *hash);
        Some(RemainingKeys { top, versions })
    }

    /// Where they begin: from there on the chain need not be walked.
    pub(super) fn top(&self) -> VersionRef {
        self.top
    }

    /// Whether one of them is this key.
    pub(in crate::index) fn have(
        &self,
        definition: &IndexDefinition,
        key: &[u8],
        scratch: &mut KeyBuffer,
    ) -> Result<bool, EngineError> {
        let hash = hash(key);
        let first = self.versions.partition_point(|(other, _)| *other < hash);
        let same = self.versions[first..].iter();
        for (_, version) in same.take_while(|(other, _)| *other == hash) {
            crate::steps::step();
            encode_row_if_any(definition, version.body(), scratch)?;
            if scratch.as_slice() == key {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
