//! Index keys: from PostgreSQL values to byte strings that `memcmp` orders as the type's btree
//! operator class would.
//!
//! Owns the encodings, the byte form of index definitions, and labels for values without an
//! encoding. May be called by every room of the engine; of these it calls only `collation`.
//! `kind.rs` says what it takes to add a type.
//!
//! Contract:
//! - Everything here is pure and total: no shared memory, no latch, no PostgreSQL call. Any bytes
//!   may be handed in; malformed ones give an error, never an out-of-bounds access.
//! - An encoded column is self-delimiting, and no encoded column is a proper prefix of another of
//!   the same kind. So the key of the first `n` columns is a byte prefix of the full key, and of no
//!   key whose first `n` columns differ.
//! - Values that the type's `=` calls equal encode to equal bytes (numeric 1.0 and 1.00, -0 and 0).
//! - The byte form of a definition and of a key is stored (checkpoint, log) and compared across
//!   versions of the program only in the definition's case. Keys are rebuilt on every load.

mod body;
mod buffer;
mod collations;
mod computed;
mod definition;
mod encode;
mod enums;
mod fixed;
mod kind;
pub mod label;
mod length;
mod list;
mod missing;
mod numeric;
mod prefix;
mod record;
mod rough;

#[cfg(test)]
mod tests;

pub use body::{Attribute, BODY_HEADER_BYTES, BODY_OFFSET_BYTES, BodyReader};
pub use buffer::KeyBuffer;
pub use computed::{TAIL_MARK, Tail, labels_in_tail, tail_bytes, without_tail};
pub(crate) use computed::{is_outside, row_checksum};
pub(crate) use definition::without_names;
pub use definition::{
    AttributeLayout, INDEX_COLUMNS_MAX, IndexDefinition, KeyColumn, TABLE_ATTRIBUTES_MAX,
    fixed_starts,
};
pub use encode::{
    HasNull, KeyValue, encode_end, encode_row, encode_row_if_any, encode_value,
    key_attributes_unchanged,
};
pub(crate) use encode::{encode_columns, encode_first_columns, none_if_too_long};
pub use enums::{EnumOrder, set_enum_order};
pub use fixed::FixedKey;
pub use kind::{ElementKind, KeyKind};
pub use list::KeyList;
pub use missing::{MISSING_BYTES_MAX, MissingValue};
pub use prefix::{prefix_number, prefix_numbers};
pub use record::{Field, RECORD_DEPTH_MAX, Record};

pub use crate::limits::KEY_BYTES_MAX;
