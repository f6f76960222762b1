//! What libraries make of texts, held against how they compare them.

use super::*;
use proptest::prelude::*;
use std::ffi::CStr;

/// Locales of the C library that are looked at, where the machine has them.
const LOCALES: [&str; 4] = ["en_US.UTF-8", "cs_CZ.UTF-8", "de_DE.UTF-8", "C.UTF-8"];

/// Locales of ICU, with what changes its order.
const ICU_LOCALES: [&str; 5] = [
    "und",
    "en-US",
    "cs",
    "de-u-co-phonebk",
    "en@colNumeric=yes;colCaseFirst=upper",
];

/// Locales whose keys contradict their comparison.
const ICU_LOCALES_WITHOUT_KEYS: [&str; 4] = ["th", "fr-CA", "und-u-ka-shifted", "und-u-ks-identic"];

/// Puts ICU into the program, as the server has it.
fn load_icu() {
    let load = |version: u32| {
        let name = CString::new(format!("libicui18n.so.{version}")).expect("no zero byte");
        // SAFETY: a library that the system has.
        let loaded = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        !loaded.is_null()
    };
    assert!((50..=120).any(load), "the machine has ICU");
}

fn key(collation: Collation, text: &str) -> Vec<u8> {
    let mut key = Vec::new();
    collation
        .sort_key(text.as_bytes(), |bytes| {
            key.extend_from_slice(bytes);
            Ok(())
        })
        .expect("memory");
    assert!(!key.contains(&0));
    key
}

/// Letters with accents and without, marks that stand alone, blanks, punctuation, what is ignored,
/// and all the rest; often the same again.
fn character() -> impl Strategy<Value = char> {
    prop_oneof![
        4 => prop::sample::select(vec!['a', 'A', 'b', 'c', 'h', 'l', '1', '2', ' ', '-', '.', '_']),
        2 => prop::char::range(' ', '~'),
        2 => prop::char::range('\u{a0}', '\u{24f}'),
        1 => prop::char::range('\u{300}', '\u{36f}'),
        1 => prop::char::range('\u{1}', '\u{1f}'),
        1 => prop::char::range('\u{370}', '\u{10ff}'),
        1 => prop::char::range('\u{2000}', '\u{206f}'),
        1 => prop::char::range('\u{3000}', '\u{d7ff}'),
        1 => prop::char::range('\u{fe00}', '\u{1ffff}'),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => prop::collection::vec(character(), 0..8),
        1 => prop::collection::vec(character(), 100..600),
    ]
    .prop_map(String::from_iter)
}

/// Two texts, of which the second is often nearly the first.
fn texts() -> impl Strategy<Value = (String, String)> {
    prop_oneof![
        (text(), text()),
        (text(), any::<prop::sample::Index>(), character()).prop_map(|(text, at, character)| {
            let mut other: Vec<char> = text.chars().collect();
            other.insert(at.index(other.len() + 1), character);
            (text, String::from_iter(other))
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn keys_of_icu_order_as_icu_compares((left, right) in texts()) {
        load_icu();
        for locale in ICU_LOCALES {
            let collation = Collation::named(Provider::Icu, locale).expect("a name");
            prop_assert!(!collation.is_missing(), "{locale}");
            let by_keys = key(collation, &left).cmp(&key(collation, &right));
            let compared = collation.compare(left.as_bytes(), right.as_bytes()).expect("memory");
            prop_assert_eq!(by_keys.then_with(|| left.cmp(&right)), compared, "{}", locale);
            let loose = Collation::named(Provider::IcuEqual, locale).expect("a name");
            let compared = loose.compare(left.as_bytes(), right.as_bytes()).expect("memory");
            prop_assert_eq!(by_keys, compared, "{}", locale);
        }
    }

    #[test]
    fn first_levels_never_contradict_the_c_library((left, right) in texts()) {
        for locale in LOCALES {
            let collation = Collation::named(Provider::LibcFirstLevel, locale).expect("a name");
            if collation.is_missing() {
                continue;
            }
            let by_keys = key(collation, &left).cmp(&key(collation, &right));
            let compared = collation.compare(left.as_bytes(), right.as_bytes()).expect("memory");
            prop_assert!(by_keys.is_eq() || by_keys == compared, "{}: {:?} {:?}", locale, by_keys, compared);
        }
    }
}

#[test]
fn locales_whose_keys_contradict_their_comparison_have_none() {
    load_icu();
    for locale in ICU_LOCALES_WITHOUT_KEYS {
        let collation = Collation::named(Provider::Icu, locale).expect("a name");
        assert!(collation.is_missing(), "{locale}");
    }
}

#[test]
fn a_collation_is_the_same_whenever_it_is_named() {
    let named = |provider, locale| Collation::named(provider, locale).expect("a name");
    assert_eq!(named(Provider::Icu, "und"), named(Provider::Icu, "und"));
    assert_ne!(named(Provider::Icu, "und"), named(Provider::Icu, "en"));
    assert_ne!(
        named(Provider::Icu, "C.UTF-8"),
        named(Provider::LibcFirstLevel, "C.UTF-8")
    );
    assert!(Collation::named(Provider::Icu, "").is_err());
    assert!(Collation::named(Provider::Icu, "a\0b").is_err());
    assert!(Collation::named(Provider::Icu, &"a".repeat(LOCALE_BYTES_MAX + 1)).is_err());
}

#[test]
fn libraries_make_lower_case() {
    load_icu();
    let lower = |folder, locale, text: &str| {
        let folding = Folding::named(folder, locale).expect("a name");
        assert!(!folding.is_missing());
        let mut lower = Vec::new();
        let collation = Collation::folded(folding, None);
        let folded = collation.fold(text.as_bytes(), |piece| {
            lower.extend_from_slice(piece);
            Ok(())
        });
        folded.expect("memory");
        String::from_utf8(lower).expect("a text")
    };
    let long = "A\u{c9}".repeat(400);
    for (text, ascii, libc, icu, turkish) in [
        ("FoO1", "foo1", "foo1", "foo1", "foo1"),
        ("\u{c9}I", "\u{c9}i", "\u{e9}i", "\u{e9}i", "\u{e9}\u{131}"),
        // The last sigma of a word is another letter to ICU alone.
        (
            "\u{3a3}\u{3a3}",
            "\u{3a3}\u{3a3}",
            "\u{3c3}\u{3c3}",
            "\u{3c3}\u{3c2}",
            "\u{3c3}\u{3c2}",
        ),
        (
            &long,
            &long.replace('A', "a"),
            &long.to_lowercase(),
            &long.to_lowercase(),
            &long.to_lowercase(),
        ),
        ("", "", "", "", ""),
    ] {
        assert_eq!(lower(Folder::Ascii, "", text), ascii);
        assert_eq!(lower(Folder::Libc, "C.UTF-8", text), libc);
        assert_eq!(lower(Folder::Icu, "en-US", text), icu);
        assert_eq!(lower(Folder::Icu, "tr", text), turkish);
    }
}

#[test]
fn a_missing_locale_adds_nothing_and_differs_from_all_others() {
    let missing = Collation::named(Provider::LibcFirstLevel, "xx_YY.UTF-8").expect("a name");
    assert!(missing.is_missing());
    assert_eq!(missing.fingerprint(), 0);
    assert_eq!(key(missing, "a"), b"");
    let there = Collation::named(Provider::LibcFirstLevel, "C.UTF-8").expect("a name");
    assert!(!there.is_missing());
    assert_ne!(there.fingerprint(), 0);
}

#[test]
fn only_locales_without_levels_compare_bytes() {
    let compares = |name: &CStr| locale::compares_bytes(name);
    assert!(compares(c"C.UTF-8"));
    assert!(compares(c"C"));
    assert!(!compares(c"xx_YY.UTF-8"), "it is missing");
}
