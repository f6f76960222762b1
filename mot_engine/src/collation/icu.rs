//! ICU's sort keys, by the library that the server is linked with.
//!
//! Sort keys, compared by bytes, give the order of ICU's comparison, but not under every attribute.
//! With shifted punctuation, accents compared backward, or a last level of code points the two
//! contradict each other for some texts (ICU 72). Such a collator has no keys here.
//!
//! The library is looked up by name in the running program. Which version it is, the server
//! decides.

use super::folding::LowerCase;
use super::{Push, SortKeys};
use crate::errors::EngineError;
use std::cmp::Ordering;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// Versions of ICU that are looked for: its functions carry them in their names.
const VERSIONS: std::ops::RangeInclusive<u32> = 50..=120;

/// Units of a text in UTF-16, and bytes of its sort key, that need no memory of their own.
const TEXT_UNITS: usize = 256;
const KEY_BYTES: usize = 1024;

/// Its functions' status: above zero is an error.
type Status = c_int;
/// There is more than there was room for.
const BUFFER_OVERFLOW: Status = 15;

type Open = unsafe extern "C" fn(*const c_char, *mut Status) -> *mut c_void;
type GetSortKey = unsafe extern "C" fn(*const c_void, *const u16, i32, *mut u8, i32) -> i32;
type Compare = unsafe extern "C" fn(*const c_void, *const u16, i32, *const u16, i32) -> c_int;
type GetAttribute = unsafe extern "C" fn(*const c_void, c_int, *mut Status) -> c_int;
type ToLower =
    unsafe extern "C" fn(*mut u16, i32, *const u16, i32, *const c_char, *mut Status) -> i32;
type GetLibraryVersion = unsafe extern "C" fn(*mut [u8; 4]);
type GetVersion = unsafe extern "C" fn(*const c_void, *mut [u8; 4]);

/// The functions of one version of the library.
struct Functions {
    open: Open,
    get_sort_key: GetSortKey,
    compare: Compare,
    get_attribute: GetAttribute,
    get_version: GetVersion,
}

/// Attributes of a collator, and what they are where keys and comparison agree.
const ATTRIBUTE_FRENCH: c_int = 0;
const ATTRIBUTE_ALTERNATE: c_int = 1;
const ATTRIBUTE_STRENGTH: c_int = 5;
const VALUE_OFF: c_int = 16;
const VALUE_NON_IGNORABLE: c_int = 21;
const STRENGTH_QUATERNARY: c_int = 3;

impl Functions {
    /// Of the library that is in the program; `None`: there is none.
    fn found() -> Option<Functions> {
        suffixes().find_map(|suffix| Functions::with(&suffix))
    }

    fn with(suffix: &str) -> Option<Functions> {
        // SAFETY: ICU's functions of these names have these types in every version
        // (`unicode/ucol.h`).
        unsafe {
            Some(Functions {
                open: std::mem::transmute::<*mut c_void, Open>(symbol("ucol_open", suffix)?),
                get_sort_key: std::mem::transmute::<*mut c_void, GetSortKey>(symbol(
                    "ucol_getSortKey",
                    suffix,
                )?),
                compare: std::mem::transmute::<*mut c_void, Compare>(symbol(
                    "ucol_strcoll",
                    suffix,
                )?),
                get_attribute: std::mem::transmute::<*mut c_void, GetAttribute>(symbol(
                    "ucol_getAttribute",
                    suffix,
                )?),
                get_version: std::mem::transmute::<*mut c_void, GetVersion>(symbol(
                    "ucol_getVersion",
                    suffix,
                )?),
            })
        }
    }
}

/// What versions have behind the names of their functions.
fn suffixes() -> impl Iterator<Item = String> {
    let numbered = VERSIONS.rev().map(|version| format!("_{version}"));
    std::iter::once(String::new()).chain(numbered)
}

/// A function of the running program.
fn symbol(name: &str, suffix: &str) -> Option<*mut c_void> {
    let name = CString::new(format!("{name}{suffix}")).ok()?;
    // SAFETY: a string; looking a name up changes nothing.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// A collator of ICU's; never closed.
struct Collator {
    functions: Functions,
    collator: *mut c_void,
}

// SAFETY: a collator whose attributes do not change may be used by any number of threads.
unsafe impl Send for Collator {}
// SAFETY: as above.
unsafe impl Sync for Collator {}

/// The keys of a locale, as core opens it.
pub(super) fn open(locale: &CStr) -> Option<Box<dyn SortKeys>> {
    let functions = Functions::found()?;
    let mut status = 0;
    // SAFETY: a string, and a place for the status.
    let collator = unsafe { (functions.open)(locale.as_ptr(), &raw mut status) };
    if status > 0 || collator.is_null() {
        return None;
    }
    let opened = Collator {
        functions,
        collator,
    };
    opened
        .has_keys()
        .then(|| Box::new(opened) as Box<dyn SortKeys>)
}

impl SortKeys for Collator {
    fn of(&self, text: &[u8], take: Push<'_>) -> Result<(), EngineError> {
        let mut units = Units::new();
        let text = units.of(text)?;
        let mut key = [0_u8; KEY_BYTES];
        let length = self.get(text, &mut key)?;
        if length <= key.len() {
            return take(without_end(&key[..length]));
        }
        let mut key = Vec::new();
        key.try_reserve_exact(length)
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        key.resize(length, 0);
        let again = self.get(text, &mut key)?;
        debug_assert_eq!(again, length);
        take(without_end(&key[..again.min(length)]))
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Result<Ordering, EngineError> {
        let (mut first, mut second) = (Units::new(), Units::new());
        let (left, right) = (first.of(left)?, second.of(right)?);
        // SAFETY: an open collator, and two texts of these lengths.
        let order = unsafe {
            (self.functions.compare)(
                self.collator,
                left.as_ptr(),
                left.len() as i32,
                right.as_ptr(),
                right.len() as i32,
            )
        };
        Ok(order.cmp(&0))
    }

    /// As `u_versionToString` has it: at least two numbers, and no zeros behind them.
    fn version(&self) -> String {
        let mut version = [0; 4];
        // SAFETY: an open collator, and a place for its version.
        unsafe { (self.functions.get_version)(self.collator, &raw mut version) };
        let last = version.iter().rposition(|number| *number != 0);
        let count = last.map_or(0, |last| last + 1).max(2);
        let numbers: Vec<String> = version[..count].iter().map(u8::to_string).collect();
        numbers.join(".")
    }
}

impl Collator {
    /// Whether its sort keys agree with its comparison.
    fn has_keys(&self) -> bool {
        let attribute = |number| {
            let mut status = 0;
            // SAFETY: an open collator, a number that each version of ICU has, and a place.
            let value =
                unsafe { (self.functions.get_attribute)(self.collator, number, &raw mut status) };
            (status <= 0).then_some(value)
        };
        attribute(ATTRIBUTE_FRENCH) == Some(VALUE_OFF)
            && attribute(ATTRIBUTE_ALTERNATE) == Some(VALUE_NON_IGNORABLE)
            && attribute(ATTRIBUTE_STRENGTH).is_some_and(|strength| strength <= STRENGTH_QUATERNARY)
    }

    /// Writes a text's sort key, as far as there is room. Returns its length with the zero byte at
    /// its end.
    fn get(&self, text: &[u16], key: &mut [u8]) -> Result<usize, EngineError> {
        // SAFETY: an open collator, a text and a place of these lengths.
        let length = unsafe {
            (self.functions.get_sort_key)(
                self.collator,
                text.as_ptr(),
                text.len() as i32,
                key.as_mut_ptr(),
                key.len() as i32,
            )
        };
        // No key is empty: the library had no memory.
        match usize::try_from(length) {
            Ok(0) | Err(_) => Err(EngineError::OutOfProcessMemory),
            Ok(length) => Ok(length),
        }
    }
}

/// Lower case by a locale.
struct Cases {
    to_lower: ToLower,
    get_version: GetLibraryVersion,
    locale: CString,
}

/// Lower case by a locale, whose name core hands to ICU as it is.
pub(super) fn open_cases(locale: &CStr) -> Option<Box<dyn LowerCase>> {
    suffixes().find_map(|suffix| {
        // SAFETY: ICU's functions of these names have these types in every version
        // (`unicode/ustring.h`, `unicode/uversion.h`).
        let cases = unsafe {
            Cases {
                to_lower: std::mem::transmute::<*mut c_void, ToLower>(symbol(
                    "u_strToLower",
                    &suffix,
                )?),
                get_version: std::mem::transmute::<*mut c_void, GetLibraryVersion>(symbol(
                    "u_getVersion",
                    &suffix,
                )?),
                locale: locale.to_owned(),
            }
        };
        Some(Box::new(cases) as Box<dyn LowerCase>)
    })
}

impl Cases {
    /// Writes a text in lower case, as far as there is room. Returns its length.
    fn get(&self, text: &[u16], lower: &mut [u16]) -> Result<usize, EngineError> {
        let mut status = 0;
        // SAFETY: a text and a place of these lengths, a string, and a place for the status.
        let length = unsafe {
            (self.to_lower)(
                lower.as_mut_ptr(),
                lower.len() as i32,
                text.as_ptr(),
                text.len() as i32,
                self.locale.as_ptr(),
                &raw mut status,
            )
        };
        match usize::try_from(length) {
            Ok(length) if status <= 0 || status == BUFFER_OVERFLOW => Ok(length),
            _ => Err(EngineError::OutOfProcessMemory),
        }
    }
}

impl LowerCase for Cases {
    fn lower(&self, text: &[u8], push: Push<'_>) -> Result<(), EngineError> {
        let mut units = Units::new();
        let text = units.of(text)?;
        let mut short = [0; TEXT_UNITS];
        let mut long = Vec::new();
        let length = self.get(text, &mut short)?;
        let mut lower = &short[..length.min(TEXT_UNITS)];
        if length > TEXT_UNITS {
            long.try_reserve_exact(length)
                .map_err(|_| EngineError::OutOfProcessMemory)?;
            long.resize(length, 0);
            let again = self.get(text, &mut long)?;
            lower = &long[..length.min(again)];
        }
        for character in char::decode_utf16(lower.iter().copied()) {
            let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
            push(character.encode_utf8(&mut [0; 4]).as_bytes())?;
        }
        Ok(())
    }

    fn version(&self) -> String {
        let mut version = [0; 4];
        // SAFETY: a place for the version.
        unsafe { (self.get_version)(&raw mut version) };
        format!("{version:?}")
    }
}

fn without_end(key: &[u8]) -> &[u8] {
    key.strip_suffix(&[0]).unwrap_or(key)
}

/// Room for a text in UTF-16.
struct Units {
    short: [u16; TEXT_UNITS],
    long: Vec<u16>,
}

impl Units {
    fn new() -> Units {
        Units {
            short: [0; TEXT_UNITS],
            long: Vec::new(),
        }
    }

    /// A text of at most 1 GiB; what is no UTF-8 becomes U+FFFD, as ICU has it.
    fn of(&mut self, text: &[u8]) -> Result<&[u16], EngineError> {
        let place = if text.len() <= TEXT_UNITS {
            &mut self.short[..]
        } else {
            self.long
                .try_reserve_exact(text.len())
                .map_err(|_| EngineError::OutOfProcessMemory)?;
            self.long.resize(text.len(), 0);
            &mut self.long[..]
        };
        let mut length = 0;
        for chunk in text.utf8_chunks() {
            let replaced = match chunk.invalid() {
                [] => "",
                _ => "\u{fffd}",
            };
            for unit in chunk.valid().encode_utf16().chain(replaced.encode_utf16()) {
                // A text has no more units than bytes, whatever of it is replaced.
                place[length] = unit;
                length += 1;
            }
        }
        Ok(&place[..length])
    }
}
