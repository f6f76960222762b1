//! The server's text as Rust's, and back, without loss.
//!
//! Names, expressions and messages of the server are in the database's encoding, which is any of
//! many (LATIN1, EUC_JP), and in SQL_ASCII none at all. Rust's text is UTF-8. So a byte that is not
//! part of UTF-8 becomes a character that represents it, and every way out makes the byte of it
//! again: texts that differ stay different, and what is put together of parts (a message, a
//! statement) comes out as the bytes of these parts. Server encodings have no ASCII bytes inside of
//! longer characters, so what is cut or quoted at ASCII is cut right.
//!
//! What is UTF-8 is itself, in whatever encoding it was meant, but for the stand-ins' own
//! characters: each of their bytes is stood for.
//!
//! Neither lengths nor `{:?}` of a decoded text are the server's. Text that pgrx is to make of a
//! datum (`&str`, `String`) is not decoded so: pgrx raises an error where it is no UTF-8.
use pgrx::pg_sys;
use std::borrow::Cow;
use std::ffi::{CStr, CString, c_char};

/// A byte's character is this plus the byte: bytes from 0x80 on at the very end of the last plane,
/// which is for private use.
const STAND_INS: u32 = 0x10_FF00;

/// What the server's bytes say.
pub fn decode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if is_stand_in(character) {
                let own = character.encode_utf8(&mut [0; 4]).as_bytes().to_vec();
                text.extend(own.into_iter().map(stand_in));
            } else {
                text.push(character);
            }
        }
        text.extend(chunk.invalid().iter().copied().map(stand_in));
    }
    text
}

/// The server's bytes for a text.
pub fn encode(text: &str) -> Cow<'_, [u8]> {
    if is_utf8(text) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        if is_stand_in(character) {
            bytes.push((character as u32 - STAND_INS) as u8);
        } else {
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    Cow::Owned(bytes)
}

/// Whether a text's own bytes are the server's, so that pgrx may hand it on.
pub fn is_utf8(text: &str) -> bool {
    !text.contains(is_stand_in)
}

/// What a C string of the server's says; nothing if it is NULL.
pub unsafe fn from_c(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: a NUL-terminated string (caller).
    decode(unsafe { CStr::from_ptr(string) }.to_bytes())
}

/// A C string for the server. A zero byte, which none of the server's own texts has, becomes a
/// space.
pub fn to_c(text: &str) -> CString {
    let mut bytes = encode(text).into_owned();
    for byte in &mut bytes {
        if *byte == 0 {
            *byte = b' ';
        }
    }
    CString::new(bytes).expect("the zero bytes are gone")
}

/// A C string in the current memory context.
pub fn to_palloc(text: &str) -> *mut c_char {
    let bytes = encode(text);
    // SAFETY: pnstrdup copies the given bytes and ends them; it raises for want of memory only, and
    // then by unwinding.
    unsafe { pg_sys::pnstrdup(bytes.as_ptr().cast(), bytes.len() as pg_sys::Size) }
}

/// A text that was not made in this database (an error of the load, say, with a system's message in
/// it), for a session in it: a character that its encoding may not have is shown as a question
/// mark.
pub fn foreign(text: &str) -> String {
    // SAFETY: a plain look-up.
    let is_utf8 = unsafe { pg_sys::GetDatabaseEncoding() == pg_sys::pg_enc::PG_UTF8 as i32 };
    let shown = |character: char| {
        if is_utf8 || character.is_ascii() {
            character
        } else {
            '?'
        }
    };
    text.chars().map(shown).collect()
}

fn stand_in(byte: u8) -> char {
    char::from_u32(STAND_INS + u32::from(byte)).expect("a character of the last plane")
}

fn is_stand_in(character: char) -> bool {
    character as u32 >= STAND_INS + 0x80
}

/// An LSN as PostgreSQL prints it.
pub fn show_lsn(lsn: mot_engine::Lsn) -> String {
    format!("{:X}/{:X}", lsn.0 >> 32, lsn.0 as u32)
}
