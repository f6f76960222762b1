//! Collations: from texts to bytes whose order is a collation's.
//!
//! A key of a text has, ahead of the text itself, bytes that a library of the machine makes of it
//! (`README.md`). They are a pure function of the text and the locale. So replay, loading and
//! standbys compute them as they compute all keys, and no code stores or logs them.
//!
//! Contract:
//! - A collation is named by provider and locale, and looked up once in a process. It is never
//!   freed: definitions, and what is decoded of them, refer to it.
//! - A locale that the machine does not have, or that has no such bytes, is *missing*: it gives
//!   none, and texts lie by their own bytes. No scan may ask for an order then
//!   ([`Collation::is_missing`]).
//! - All processes of a server must agree on what a locale gives. They compare
//!   [`Collation::fingerprint`]: the maker of an index notes it there.

mod folding;
mod icu;
mod locale;

pub use folding::{Folder, Folding};
pub use locale::compares_bytes;

use crate::errors::EngineError;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::ffi::CString;
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Bytes of a locale's name: its length is stored in one.
pub const LOCALE_BYTES_MAX: usize = u8::MAX as usize;

/// Whose order of texts it is. The numbers are stored, and never reused.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Provider {
    /// ICU's sort keys: texts with equal ones are equal to the collation.
    Icu = 1,
    /// The C library's first level. Texts with equal bytes lie side by side, in any order.
    LibcFirstLevel = 2,
    /// ICU's sort keys of a nondeterministic collation: texts with equal ones are one key.
    IcuEqual = 3,
}

impl Provider {
    /// The provider with this stored number.
    pub fn from_number(number: u8) -> Option<Provider> {
        [Provider::Icu, Provider::LibcFirstLevel, Provider::IcuEqual]
            .into_iter()
            .find(|provider| *provider as u8 == number)
    }
}

/// Takes pieces of a text.
type Push<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), EngineError>;

/// A collation that orders texts otherwise than by their bytes, or by those of their lower case.
#[derive(Copy, Clone)]
pub struct Collation(&'static Entry);

/// What a process knows of a collation.
struct Entry {
    /// `None`: texts lie by their bytes.
    provider: Option<Provider>,
    locale: String,
    /// What is made of texts before they are ordered.
    folding: Option<Folding>,
    opened: OnceLock<Opened>,
}

/// A locale that was looked for.
struct Opened {
    /// `None`: the machine does not have it, or it gives no keys.
    keys: Option<Box<dyn SortKeys>>,
    fingerprint: u64,
}

/// What a library makes of texts.
trait SortKeys: Send + Sync {
    /// Calls `take` with a text's bytes: none of them is zero, and their order is the collation's.
    /// The text has no zero byte.
    fn of(&self, text: &[u8], take: Push<'_>) -> Result<(), EngineError>;

    /// Compares two texts without zero bytes as the collation does.
    fn compare(&self, left: &[u8], right: &[u8]) -> Result<Ordering, EngineError>;

    /// The library's own name of its version of the locale.
    fn version(&self) -> String;
}

/// A collation's provider, locale and folding.
type Name = (Option<Provider>, String, Option<(Folder, &'static str)>);

/// Every collation of this process.
static KNOWN: Mutex<Option<HashMap<Name, Collation>>> = Mutex::new(None);

impl Collation {
    /// The collation with this name.
    ///
    /// # Errors
    /// `Corrupt` for a name that is empty, too long, or has a zero byte.
    pub fn named(provider: Provider, locale: &str) -> Result<Collation, EngineError> {
        if locale.is_empty() || locale.len() > LOCALE_BYTES_MAX || locale.contains('\0') {
            return Err(EngineError::Corrupt {
                what: "a locale's name is empty, too long, or has a zero byte",
            });
        }
        Ok(Collation::known(Some(provider), locale, None))
    }

    /// The collation that orders what `folding` makes of texts: as `order` does, or by its bytes.
    pub fn folded(folding: Folding, order: Option<Collation>) -> Collation {
        let provider = order.and_then(Collation::provider);
        let locale = order.map_or("", Collation::locale);
        Collation::known(provider, locale, Some(folding))
    }

    fn known(provider: Option<Provider>, locale: &str, folding: Option<Folding>) -> Collation {
        let by = folding.map(|folding| (folding.folder(), folding.locale()));
        let name = (provider, locale.to_owned(), by);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        if let Some(collation) = known.get(&name) {
            return *collation;
        }
        let collation = Collation(Box::leak(Box::new(Entry {
            provider,
            locale: locale.to_owned(),
            folding,
            opened: OnceLock::new(),
        })));
        known.insert(name, collation);
        collation
    }

    /// Whose it is; `None`: texts lie by their bytes.
    pub fn provider(self) -> Option<Provider> {
        self.0.provider
    }

    /// What is made of texts before they are ordered.
    pub fn folding(self) -> Option<Folding> {
        self.0.folding
    }

    /// The name of its locale; empty without a provider.
    pub fn locale(self) -> &'static str {
        &self.0.locale
    }

    /// Whether texts with equal bytes are equal to the collation, but for a last comparison of the
    /// texts themselves.
    pub fn is_exact(self) -> bool {
        match self.0.provider {
            Some(Provider::Icu | Provider::IcuEqual) | None => true,
            Some(Provider::LibcFirstLevel) => false,
        }
    }

    /// Whether texts with equal bytes are equal: keys have nothing but these.
    pub fn equates(self) -> bool {
        self.0.provider == Some(Provider::IcuEqual) && !self.is_missing()
    }

    /// The library's name of its version of the locale; `None` of a missing one.
    pub fn version(self) -> Option<String> {
        let keys = self.opened().keys.as_ref();
        keys.map(|keys| keys.version())
    }

    /// Whether this machine does not have the locale, or it gives no keys.
    pub fn is_missing(self) -> bool {
        let has_no_order = self.0.provider.is_some() && self.opened().keys.is_none();
        has_no_order || self.0.folding.is_some_and(Folding::is_missing)
    }

    /// A number that two processes have in common which make the same bytes of the same texts; 0 of
    /// a missing locale.
    pub fn fingerprint(self) -> u64 {
        let folding = self.0.folding.map_or(0, Folding::fingerprint);
        self.opened().fingerprint ^ folding.rotate_left(32)
    }

    /// Hands over, in pieces, what of a text is ordered: its lower case, or the text itself.
    pub(crate) fn fold(
        self,
        text: &[u8],
        mut push: impl FnMut(&[u8]) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        match self.0.folding {
            Some(folding) => folding.lower(text, &mut push),
            None => push(text),
        }
    }

    /// Calls `take` with the bytes of a folded text without zero bytes; with none, if the locale is
    /// missing.
    pub(crate) fn sort_key(
        self,
        text: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        match &self.opened().keys {
            Some(keys) => keys.of(text, &mut take),
            None => Ok(()),
        }
    }

    /// Compares two folded texts without zero bytes as core does. Those that the collation calls
    /// equal are compared by their bytes, unless it is nondeterministic.
    pub fn compare(self, left: &[u8], right: &[u8]) -> Result<Ordering, EngineError> {
        let by_bytes = left.cmp(right);
        match &self.opened().keys {
            Some(keys) if by_bytes.is_ne() => Ok(match keys.compare(left, right)? {
                Ordering::Equal if !self.equates() => by_bytes,
                order => order,
            }),
            _ => Ok(by_bytes),
        }
    }

    fn opened(self) -> &'static Opened {
        self.0.opened.get_or_init(|| self.0.open())
    }
}

impl Entry {
    #[cold]
    fn open(&self) -> Opened {
        let keys = CString::new(&*self.locale)
            .ok()
            .and_then(|locale| match self.provider? {
                Provider::Icu | Provider::IcuEqual => icu::open(&locale),
                Provider::LibcFirstLevel => locale::open(&locale),
            });
        let fingerprint = keys.as_ref().map_or(0, |keys| fingerprint(&**keys));
        Opened { keys, fingerprint }
    }
}

impl PartialEq for Collation {
    fn eq(&self, other: &Collation) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Collation {}

impl fmt::Debug for Collation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Entry {
            provider,
            locale,
            folding,
            ..
        } = self.0;
        write!(formatter, "{provider:?} {locale} {folding:?}")
    }
}

/// Texts of many scripts in which versions of a library have differed.
const PROBES: [&str; 12] = [
    "co-op",
    "coop 9_Z",
    "a\u{300}\u{e9}\u{df}\u{f1}",
    "\u{c5}ngstr\u{f6}m",
    "cz dz ll ch",
    "\u{10d}\u{142}\u{17e}\u{131}I",
    "\u{3b1}\u{3a9}\u{436}\u{451}",
    "\u{5d0}\u{627}\u{6f1}",
    "\u{915}\u{94d}\u{937}\u{e40}\u{e01}",
    "\u{4e2d}\u{6587}\u{3042}\u{30a2}\u{ac00}",
    "\u{1f600}\u{200d}\u{fe0f}",
    "\u{1e900}\u{10330}\u{2030}\t",
];

/// Letters whose keys are examined one by one: Latin, Greek and Cyrillic ones.
const LETTERS: [std::ops::RangeInclusive<char>; 3] = [
    '!'..='\u{17f}',
    '\u{386}'..='\u{3ce}',
    '\u{400}'..='\u{45f}',
];

/// Of a locale that is there.
fn fingerprint(keys: &dyn SortKeys) -> u64 {
    let mut print = Fingerprint::of(&keys.version());
    for probe in PROBES {
        print.add(|take| keys.of(probe.as_bytes(), take));
    }
    for letter in LETTERS.into_iter().flatten() {
        let letter = letter.encode_utf8(&mut [0; 4]).as_bytes().to_vec();
        print.add(|take| keys.of(&letter, take));
    }
    print.number()
}

/// What a library's version and its answers give.
struct Fingerprint(u32);

impl Fingerprint {
    /// Of a version, without answers.
    fn of(version: &str) -> Fingerprint {
        Fingerprint(crc32c::crc32c(version.as_bytes()))
    }

    /// Adds an answer, which `ask` hands over in pieces. A library without memory for it differs
    /// from all others.
    fn add(&mut self, ask: impl FnOnce(Push<'_>) -> Result<(), EngineError>) {
        let sum = &mut self.0;
        let asked = ask(&mut |piece| {
            *sum = crc32c::crc32c_append(*sum, piece);
            Ok(())
        });
        *sum = match asked {
            Ok(()) => crc32c::crc32c_append(*sum, &[0]),
            Err(_) => !*sum,
        };
    }

    /// Never 0.
    fn number(&self) -> u64 {
        u64::from(self.0) << 1 | 1
    }
}

#[cfg(test)]
mod tests;
