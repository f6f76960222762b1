//! What a session knows of index definitions.
//!
//! A session lives long, and an index does not: TRUNCATE alone makes each one anew, under a new id.
//! What is decoded must neither grow with their number nor go away, since statements keep
//! references to it. So it is kept by what the definition says, without the index's oid and file.
//! The same columns, whatever index they belong to, are decoded once, and what a session keeps is
//! bounded by the different keys that there are.

use crate::errors::EngineError;
use crate::ids::IndexId;
use crate::key::{FixedKey, IndexDefinition, without_names};
use crate::table::IndexRef;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ptr::NonNull;

/// Indexes that are found without looking at their definitions, unless two of them share a place.
const PLACES: usize = 512;

/// A definition, and what follows from it.
pub(crate) struct Decoded {
    /// Without the index's oid and file.
    pub(crate) definition: IndexDefinition,
    /// Most keys are some numbers at fixed places.
    pub(crate) fixed: Option<FixedKey>,
}

/// All that a session has decoded. Nothing is taken out before it ends.
pub(crate) struct Definitions {
    /// Which were asked for last, by id.
    recent: Box<[Cell<Recent>; PLACES]>,
    all: RefCell<All>,
}

type Recent = Option<(IndexId, NonNull<Decoded>)>;

#[derive(Default)]
struct All {
    by_bytes: HashMap<Box<[u8]>, NonNull<Decoded>>,
    /// The bytes that are looked for.
    wanted: Vec<u8>,
}

impl Definitions {
    pub(crate) fn new() -> Definitions {
        Definitions {
            recent: Box::new([const { Cell::new(None) }; PLACES]),
            all: RefCell::default(),
        }
    }

    /// What the definition of this index says. Its keys lie in an order that this process has.
    #[inline]
    pub(crate) fn get(&self, index: IndexRef) -> Result<&Decoded, EngineError> {
        let id = index.id();
        let place = &self.recent[id.0 as usize % PLACES];
        let decoded = match place.get() {
            Some((found, decoded)) if found == id => decoded,
            _ => {
                let decoded = self.all.borrow_mut().find(index)?;
                place.set(Some((id, decoded)));
                decoded
            }
        };
        // SAFETY: no code changes or frees it before `self` is dropped.
        Ok(unsafe { decoded.as_ref() })
    }
}

impl All {
    /// That of an index, decoded if it is the first of its columns.
    #[cold]
    fn find(&mut self, index: IndexRef) -> Result<NonNull<Decoded>, EngineError> {
        without_names(index.definition_bytes(), &mut self.wanted)?;
        if let Some(decoded) = self.by_bytes.get(&self.wanted[..]) {
            // SAFETY: as in `get`.
            index.check_collations(unsafe { &decoded.as_ref().definition })?;
            return Ok(*decoded);
        }
        let definition = IndexDefinition::from_bytes(&self.wanted)?;
        index.check_collations(&definition)?;
        let has_room = self.by_bytes.try_reserve(1);
        has_room.map_err(|_| EngineError::OutOfProcessMemory)?;
        let fixed = FixedKey::of(&definition);
        let decoded = NonNull::from(Box::leak(Box::new(Decoded { definition, fixed })));
        self.by_bytes.insert(self.wanted[..].into(), decoded);
        Ok(decoded)
    }
}

impl Drop for All {
    fn drop(&mut self) {
        for decoded in self.by_bytes.values() {
            // SAFETY: leaked by `find`, named once; references to it ended with the session.
            drop(unsafe { Box::from_raw(decoded.as_ptr()) });
        }
    }
}
