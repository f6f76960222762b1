//! Folding: texts in lower case, as the server's own `lower` makes them.
//!
//! A type such as `citext` compares what `lower` makes of its texts under the database's default
//! collation. So its keys have the folded texts. Which library makes them, and by which locale, is
//! a part of the collation ([`super::Collation::folded`]).

use super::icu;
use super::locale;
use super::{Fingerprint, LOCALE_BYTES_MAX, Push};
use crate::errors::EngineError;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Mutex, OnceLock, PoisonError};

/// What makes lower case. The numbers are stored beside those of [`super::Provider`], and never
/// reused.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Folder {
    /// Of the letters of ASCII alone.
    Ascii = 64,
    /// The C library, one character after the other; texts are UTF-8.
    Libc = 65,
    /// ICU; texts are UTF-8.
    Icu = 66,
}

impl Folder {
    /// The folder with this stored number.
    pub fn from_number(number: u8) -> Option<Folder> {
        [Folder::Ascii, Folder::Libc, Folder::Icu]
            .into_iter()
            .find(|folder| *folder as u8 == number)
    }
}

/// Lower case by a locale.
#[derive(Copy, Clone)]
pub struct Folding(&'static Entry);

struct Entry {
    folder: Folder,
    locale: String,
    opened: OnceLock<Opened>,
}

struct Opened {
    /// `None`: ASCII, or the machine does not have the locale.
    cases: Option<Box<dyn LowerCase>>,
    fingerprint: u64,
}

/// What a library makes of texts.
pub(super) trait LowerCase: Send + Sync {
    /// Hands over the text in lower case, in pieces.
    fn lower(&self, text: &[u8], push: Push<'_>) -> Result<(), EngineError>;

    /// The library's own name of its version.
    fn version(&self) -> String;
}

/// Every folding of this process.
static KNOWN: Mutex<Option<HashMap<(Folder, String), Folding>>> = Mutex::new(None);

impl Folding {
    /// The folding with this name; that of ASCII has an empty one.
    ///
    /// # Errors
    /// `Corrupt` for a name that does not fit the folder, is too long, or has a zero byte.
    pub fn named(folder: Folder, locale: &str) -> Result<Folding, EngineError> {
        let is_fit = locale.is_empty() == (folder == Folder::Ascii);
        if !is_fit || locale.len() > LOCALE_BYTES_MAX || locale.contains('\0') {
            return Err(EngineError::Corrupt {
                what: "the name of a folding's locale is malformed",
            });
        }
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        let folding = known.entry((folder, locale.to_owned())).or_insert_with(|| {
            Folding(Box::leak(Box::new(Entry {
                folder,
                locale: locale.to_owned(),
                opened: OnceLock::new(),
            })))
        });
        Ok(*folding)
    }

    /// What folds.
    pub fn folder(self) -> Folder {
        self.0.folder
    }

    /// The name of its locale.
    pub fn locale(self) -> &'static str {
        &self.0.locale
    }

    /// Whether this machine does not have the locale. No session can connect to a database of it
    /// then; texts are left as they are.
    pub fn is_missing(self) -> bool {
        self.0.folder != Folder::Ascii && self.opened().cases.is_none()
    }

    /// A number that two processes have in common which fold alike; 0 of a missing locale.
    pub(super) fn fingerprint(self) -> u64 {
        self.opened().fingerprint
    }

    /// Hands over a text in lower case, in pieces.
    pub(super) fn lower(self, text: &[u8], push: Push<'_>) -> Result<(), EngineError> {
        match (&self.opened().cases, self.0.folder) {
            (Some(cases), _) => cases.lower(text, push),
            (None, Folder::Ascii) => lower_ascii(text, push),
            (None, _) => push(text),
        }
    }

    fn opened(self) -> &'static Opened {
        self.0.opened.get_or_init(|| self.0.open())
    }
}

fn lower_ascii(text: &[u8], push: Push<'_>) -> Result<(), EngineError> {
    let mut piece = [0; 64];
    for chunk in text.chunks(piece.len()) {
        let piece = &mut piece[..chunk.len()];
        piece.copy_from_slice(chunk);
        piece.make_ascii_lowercase();
        push(piece)?;
    }
    Ok(())
}

impl Entry {
    #[cold]
    fn open(&self) -> Opened {
        let cases = CString::new(&*self.locale)
            .ok()
            .and_then(|name| match self.folder {
                Folder::Ascii => None,
                Folder::Libc => locale::open_cases(&name),
                Folder::Icu => icu::open_cases(&name),
            });
        let fingerprint = match (&cases, self.folder) {
            (Some(cases), _) => fingerprint(&**cases),
            (None, Folder::Ascii) => 1,
            (None, _) => 0,
        };
        Opened { cases, fingerprint }
    }
}

impl PartialEq for Folding {
    fn eq(&self, other: &Folding) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Folding {}

impl std::fmt::Debug for Folding {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:?} {}", self.0.folder, self.0.locale)
    }
}

/// Letters in whose lower case versions and locales have differed.
const PROBES: [&str; 6] = [
    "AZIi\u{130}\u{131}",
    "\u{c4}\u{df}\u{1e9e}\u{178}\u{1c4}\u{1c5}",
    "\u{391}\u{3a3}\u{3a3} \u{410}\u{42f}\u{531}\u{10a0}\u{1c90}",
    "\u{13a0}\u{ab70}\u{2c00}\u{2c2f}\u{a7ae}\u{a7c0}\u{a7d0}",
    "\u{10400}\u{104b0}\u{10570}\u{10c80}\u{118a0}\u{16e40}\u{1e900}",
    "\u{212a}\u{2126}\u{ff21}\u{24b6}\u{2160}",
];

/// Of a locale that is there.
fn fingerprint(cases: &dyn LowerCase) -> u64 {
    let mut print = Fingerprint::of(&cases.version());
    for probe in PROBES {
        print.add(|take| cases.lower(probe.as_bytes(), take));
    }
    print.number()
}
