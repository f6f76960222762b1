//! The C library's locales: the first level of what `strxfrm` makes of a text.
//!
//! The GNU library's `strxfrm` and `strcoll` disagree about a few texts: about accents beside
//! characters that a level ignores, and about where ignored characters stand. On the first level
//! they agree: it has no such rules, and compares weight by weight. So a key has that level alone,
//! and a reader that wants an order compares the texts of one such key with `strcoll`.

use super::folding::LowerCase;
use super::{Push, SortKeys};
use crate::errors::EngineError;
use std::cmp::Ordering;
use std::ffi::{CStr, c_char, c_int};
use std::ptr::null_mut;

/// The C library's number of the item "how many levels does this locale compare": none, and it
/// compares bytes (`_NL_COLLATE_NRULES` of `langinfo.h`).
const LEVELS_ITEM: c_int = libc::LC_COLLATE << 16;

/// Bytes of a text, and of what is made of it, that need no memory of their own.
const TEXT_BYTES: usize = 256;
const KEY_BYTES: usize = 2048;

/// Between levels; no weight has this byte.
const LEVEL_END: u8 = 1;

unsafe extern "C" {
    fn strxfrm_l(
        to: *mut c_char,
        from: *const c_char,
        bytes: usize,
        locale: libc::locale_t,
    ) -> usize;
    fn towlower_l(character: u32, locale: libc::locale_t) -> u32;
    fn strcoll_l(left: *const c_char, right: *const c_char, locale: libc::locale_t) -> c_int;
}

/// A locale of the C library's; never freed.
struct Locale(libc::locale_t);

// SAFETY: a locale is read alone, by functions that any thread may call.
unsafe impl Send for Locale {}
// SAFETY: as above.
unsafe impl Sync for Locale {}

impl Locale {
    /// With the name as core opens it, or none if the machine does not have it.
    fn named(name: &CStr) -> Option<Locale> {
        let categories = libc::LC_COLLATE_MASK | libc::LC_CTYPE_MASK;
        // SAFETY: a string, and no locale to begin from.
        let locale = unsafe { libc::newlocale(categories, name.as_ptr(), null_mut()) };
        (!locale.is_null()).then_some(Locale(locale))
    }

    /// Whether it compares bytes, as `C.UTF-8` does.
    fn compares_bytes(&self) -> bool {
        // SAFETY: an open locale. The item is a number, in the place of a pointer.
        let levels = unsafe { libc::nl_langinfo_l(LEVELS_ITEM, self.0) } as usize as u32;
        levels == 0
    }
}

/// Whether a locale of the C library compares texts by their bytes; not one that is missing.
pub fn compares_bytes(name: &CStr) -> bool {
    Locale::named(name).is_some_and(|locale| {
        let compares_bytes = locale.compares_bytes();
        // SAFETY: opened above, and used by no other code.
        unsafe { libc::freelocale(locale.0) };
        compares_bytes
    })
}

/// The keys of a locale.
pub(super) fn open(name: &CStr) -> Option<Box<dyn SortKeys>> {
    Some(Box::new(Locale::named(name)?))
}

impl SortKeys for Locale {
    fn of(&self, text: &[u8], take: Push<'_>) -> Result<(), EngineError> {
        let mut short = [0; TEXT_BYTES];
        let mut long = Vec::new();
        let text = with_end(text, &mut short, &mut long)?;
        let mut key = [0_u8; KEY_BYTES];
        // SAFETY: a string with its end, a place of these bytes, and an open locale.
        let length =
            unsafe { strxfrm_l(key.as_mut_ptr().cast(), text.as_ptr(), key.len(), self.0) };
        if length < key.len() {
            return take(first_level(&key[..length]));
        }
        let mut key = Vec::new();
        key.try_reserve_exact(length + 1)
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        key.resize(length + 1, 0);
        // SAFETY: as above.
        let again = unsafe { strxfrm_l(key.as_mut_ptr().cast(), text.as_ptr(), key.len(), self.0) };
        debug_assert_eq!(again, length);
        take(first_level(&key[..length.min(again)]))
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Result<Ordering, EngineError> {
        let (mut short, mut long) = ([[0; TEXT_BYTES]; 2], [Vec::new(), Vec::new()]);
        let ([first, second], [first_long, second_long]) = (&mut short, &mut long);
        let left = with_end(left, first, first_long)?;
        let right = with_end(right, second, second_long)?;
        // SAFETY: two strings with their ends, and an open locale.
        let order = unsafe { strcoll_l(left.as_ptr(), right.as_ptr(), self.0) };
        Ok(order.cmp(&0))
    }

    fn version(&self) -> String {
        // SAFETY: the library's own string, which stays.
        let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
        version.to_string_lossy().into_owned()
    }
}

/// Lower case by a locale, of texts in UTF-8.
pub(super) fn open_cases(name: &CStr) -> Option<Box<dyn LowerCase>> {
    Some(Box::new(Locale::named(name)?))
}

impl LowerCase for Locale {
    fn lower(&self, text: &[u8], push: Push<'_>) -> Result<(), EngineError> {
        for chunk in text.utf8_chunks() {
            for character in chunk.valid().chars() {
                // SAFETY: any number may be a character, and the locale is open.
                let lower = unsafe { towlower_l(u32::from(character), self.0) };
                let lower = char::from_u32(lower).unwrap_or(character);
                push(lower.encode_utf8(&mut [0; 4]).as_bytes())?;
            }
            push(chunk.invalid())?;
        }
        Ok(())
    }

    fn version(&self) -> String {
        SortKeys::version(self)
    }
}

/// What is in front of the second level.
fn first_level(key: &[u8]) -> &[u8] {
    let end = key.iter().position(|byte| *byte == LEVEL_END);
    &key[..end.unwrap_or(key.len())]
}

/// A text without zero bytes as a string of C's, in one of the two places.
fn with_end<'a>(
    text: &[u8],
    short: &'a mut [u8; TEXT_BYTES],
    long: &'a mut Vec<u8>,
) -> Result<&'a CStr, EngineError> {
    let place = if text.len() < TEXT_BYTES {
        &mut short[..=text.len()]
    } else {
        long.try_reserve_exact(text.len() + 1)
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        long.resize(text.len() + 1, 0);
        &mut long[..]
    };
    place[..text.len()].copy_from_slice(text);
    place[text.len()] = 0;
    CStr::from_bytes_with_nul(place).map_err(|_| EngineError::Corrupt {
        what: "string holds a zero byte",
    })
}
