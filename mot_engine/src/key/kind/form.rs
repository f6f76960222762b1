//! What a kind's values are, in a row and in a key, as far as it takes no code to say it.

use crate::key::definition::AttributeLayout;

/// What a kind's values are in a row and in a key.
#[derive(Copy, Clone)]
pub(super) struct Form {
    pub(super) in_row: AttributeLayout,
    pub(super) in_key: InKey,
}

/// What a key has of a value.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(in crate::key) enum InKey {
    /// An integer with a sign: big-endian, with the sign bit flipped.
    Signed,
    /// An integer without a sign: big-endian.
    Unsigned,
    /// Other bytes, as many as in a row.
    SameLength,
    /// Bytes whose number is not that of the row's, or differs between values.
    Other,
}

/// Of types of which a datum holds the value itself. All such types are aligned to their width.
pub(super) const fn by_value(width: u8, in_key: InKey) -> Form {
    Form {
        in_row: AttributeLayout {
            len: width as i16,
            align: width,
            by_value: true,
        },
        in_key,
    }
}

/// Of types of which a datum points to a value of this width.
pub(super) const fn by_reference(width: u8, align: u8, in_key: InKey) -> Form {
    Form {
        in_row: AttributeLayout {
            len: width as i16,
            align,
            by_value: false,
        },
        in_key,
    }
}

/// Of varlenas.
pub(super) const fn varlena(align: u8) -> Form {
    Form {
        in_row: AttributeLayout {
            len: -1,
            align,
            by_value: false,
        },
        in_key: InKey::Other,
    }
}
