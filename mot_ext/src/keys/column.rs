//! A key column of an index, as the catalog has it: from its operator class, type and collation to
//! its kind, its order, and whether it has an encoding.
use super::folding::{folding, folds};
use super::known_types::{compares_alike, is_core};
use super::row_types::{RowType, row_type};
use super::text_order::{TextOrder, text_order};
use super::{compares_bytes, kind};
use crate::errors::or_raise;
use crate::pg::catalog;
use crate::pg::relation::Relation;
use mot_engine::collation::Collation;
use mot_engine::key::{ElementKind, KeyColumn, KeyKind};
use pgrx::pg_sys;

/// What a key column's encoding and order follow from.
#[derive(Clone, Copy)]
pub struct IndexColumn {
    /// The input type of its operator class.
    pub input: pg_sys::Oid,
    /// The family of its operator class.
    pub family: pg_sys::Oid,
    /// The collation; invalid for types without one.
    pub collation: pg_sys::Oid,
    /// The column's own type, where the input type is polymorphic ([`is_polymorphic`]).
    pub own_type: pg_sys::Oid,
}

/// What the values of a column, or those that they hold, are compared by.
#[derive(Clone, Copy)]
struct Order {
    kind: KeyKind,
    /// Their own type.
    input: pg_sys::Oid,
    family: pg_sys::Oid,
    collation: pg_sys::Oid,
    /// Texts are compared in lower case.
    folds: bool,
    /// Of records.
    row_type: Option<RowType>,
}

/// Whether an operator class takes arrays, ranges, multiranges or records of whatever type: then
/// the key's kind follows from the column's own type.
pub fn is_polymorphic(input: pg_sys::Oid) -> bool {
    matches!(
        input,
        pg_sys::ANYARRAYOID | pg_sys::ANYRANGEOID | pg_sys::ANYMULTIRANGEOID | pg_sys::RECORDOID
    )
}

impl Order {
    /// Of values of an operator class's input type, which are of this type.
    ///
    /// Strings inside a jsonb lie in the database's own order, whatever the column's. Texts in a
    /// record lie in that of its own columns.
    fn new(column: IndexColumn) -> Option<Order> {
        let IndexColumn { input, family, .. } = column;
        let row_type = match input {
            pg_sys::RECORDOID => Some(row_type(column.own_type)?),
            _ => None,
        };
        let kind = match row_type {
            Some(row_type) => KeyKind::Record(row_type.record),
            None => kind(input)?,
        };
        Some(Order {
            kind,
            input,
            family,
            collation: match kind {
                KeyKind::Jsonb => pg_sys::DEFAULT_COLLATION_OID,
                _ => column.collation,
            },
            folds: folds(input),
            row_type,
        })
    }

    /// Whether keys lie in the order of their values, but for that of texts.
    fn can_lie_so(self) -> bool {
        let is_ordered = self.row_type.is_none_or(|row_type| row_type.is_ordered);
        is_ordered && self.kind.is_ordered()
    }

    /// The collation of keys whose texts lie as `order` has them, or by their bytes.
    fn named(self, order: Option<Collation>) -> Option<Collation> {
        match folding() {
            Some(folding) if self.folds => Some(Collation::folded(folding, order)),
            _ => order,
        }
    }

    /// In whose order texts lie; those without any lie by their bytes. May raise.
    fn of_texts(self) -> TextOrder {
        match self.kind.has_texts() && !compares_bytes(self.family, self.input) {
            true => text_order(self.collation),
            false => TextOrder::Bytes,
        }
    }
}

impl IndexColumn {
    /// A key column of an index, from 0.
    pub fn of(index: Relation<'_>, position: usize) -> IndexColumn {
        let column = index.key_column(position);
        IndexColumn {
            input: column.input,
            family: column.family,
            collation: column.collation,
            own_type: index.description().columns()[position].atttypid,
        }
    }

    /// The kind of its keys; `None`: they have no encoding. May raise.
    pub fn kind(self) -> Option<KeyKind> {
        let held = || ElementKind::of(self.order()?.kind);
        match self.input {
            pg_sys::ANYARRAYOID => held().map(KeyKind::Array),
            pg_sys::ANYRANGEOID => held().map(KeyKind::Range),
            pg_sys::ANYMULTIRANGEOID => held().map(KeyKind::Multirange),
            _ => Some(self.order()?.kind),
        }
    }

    /// As a column of a type is in an index with the type's own class. May raise.
    pub fn of_type(own_type: pg_sys::Oid, collation: pg_sys::Oid) -> IndexColumn {
        // SAFETY: a catalog look-up; the entry lives as long as the process.
        let entry = unsafe {
            let wanted = pg_sys::TYPECACHE_BTREE_OPFAMILY as i32;
            &*pg_sys::lookup_type_cache(own_type, wanted)
        };
        IndexColumn {
            input: entry.btree_opintype,
            family: entry.btree_opf,
            collation,
            own_type,
        }
    }

    /// The kind of its keys in an index. A computed key has no collations inside. May raise.
    pub fn kind_in(self, is_computed: bool) -> Option<KeyKind> {
        let kind = self.kind()?;
        Some(match is_computed {
            true => or_raise(kind.without_collations()),
            false => kind,
        })
    }

    /// In whose order its texts are to lie in a new index; `None`: in that of their bytes. May
    /// raise.
    ///
    /// A computed key gives back a text, but no text inside another value. Texts that are compared
    /// in lower case always have a collation, unless there is no key that is right.
    pub fn collation(self, is_computed: bool) -> Option<Collation> {
        let kind = self.kind()?;
        let can_lie_so = match is_computed {
            true => matches!(kind, KeyKind::Text | KeyKind::Bpchar),
            false => kind.has_texts(),
        };
        let order = self.order()?;
        if order.folds && !(can_lie_so && self.is_deterministic()) {
            return None;
        }
        order.named(match order.of_texts() {
            TextOrder::Collated(collation)
                if can_lie_so && (collation.is_exact() || kind.is_text()) =>
            {
                Some(collation)
            }
            _ => None,
        })
    }

    /// Whether its values have keys that lie together where its operator class calls them equal. If
    /// not, they get labels (`storage/labels.rs`). May raise.
    pub fn has_encoding(self, is_computed: bool) -> bool {
        let is_own = || {
            // SAFETY: a catalog look-up; the entry lives as long as the process.
            let entry = unsafe {
                let wanted = pg_sys::TYPECACHE_BTREE_OPFAMILY as i32;
                &*pg_sys::lookup_type_cache(self.input, wanted)
            };
            self.family == entry.btree_opf || compares_bytes(self.family, self.input)
        };
        self.kind().is_some() && is_own() && !self.lacks_collation(is_computed)
    }

    /// Whether keys of an index would have to have a collation, and cannot. May raise.
    pub(super) fn lacks_collation(self, is_computed: bool) -> bool {
        let Some(order) = self.order() else {
            return false;
        };
        let lacks_inside = |row_type: RowType| {
            row_type.lacks_collation || is_computed && row_type.needs_collations()
        };
        order.row_type.is_some_and(lacks_inside)
            || (order.folds || !self.is_deterministic()) && self.collation(is_computed).is_none()
    }

    /// Whether its keys lie in the order of its operator class, whatever an index says of
    /// collations. May raise.
    ///
    /// Those of an enum lie by the oids of the values, and ALTER TYPE may put a new one between two
    /// others.
    pub fn is_ordered(self) -> bool {
        self.order().is_some_and(|order| {
            let has_collations = |row_type: RowType| row_type.record.has_collations();
            order.can_lie_so()
                && order.of_texts() == TextOrder::Bytes
                && !order.row_type.is_some_and(has_collations)
        })
    }

    /// Whether keys that an index has as `column` says lie in the order of the operator class. If
    /// not, it answers equality alone, and of an enum's values which are asked for. May raise.
    ///
    /// An index of an earlier build has texts in the order of their bytes, whatever the collation.
    pub fn is_ordered_as(self, column: &KeyColumn) -> bool {
        if column.kind == KeyKind::Label {
            return true;
        }
        let Some(order) = self.order() else {
            return false;
        };
        let is_same = || order.row_type.is_none() || self.kind() == Some(column.kind);
        order.can_lie_so()
            && is_same()
            && match order.of_texts() {
                TextOrder::Bytes => order.named(None) == column.collation,
                TextOrder::Collated(collation) => order.named(Some(collation)) == column.collation,
                TextOrder::Other => false,
            }
    }

    /// The family in whose order scans give its keys, whichever class the index has: values that
    /// are equal in the one are equal in the other. `None`: there is none, or nothing is known of
    /// its keys. May raise.
    pub fn order_family(self, column: Option<&KeyColumn>) -> Option<pg_sys::Oid> {
        if column.is_some_and(|column| column.kind == KeyKind::Label) {
            return Some(self.family);
        }
        let is_collated = column.is_some_and(|column| column.collation.is_some());
        match self.kind()? {
            _ if self.is_ordered() || column.is_some_and(|column| self.is_ordered_as(column)) => {
                Some(self.family)
            }
            _ if is_collated => None,
            KeyKind::Text if column.is_some() => Some(pg_sys::TEXT_PATTERN_BTREE_FAM_OID),
            KeyKind::Bpchar if column.is_some() => Some(pg_sys::BPCHAR_PATTERN_BTREE_FAM_OID),
            // Scans put the values in order.
            KeyKind::Enum => Some(self.family),
            _ => None,
        }
    }

    /// Whether values that are equal have the same bytes, as far as collations say. May raise.
    pub fn is_deterministic(self) -> bool {
        let collation = self.order().map_or(self.collation, |order| order.collation);
        // SAFETY: a catalog look-up of a collation that is in use.
        collation == pg_sys::InvalidOid
            || unsafe { pg_sys::get_collation_isdeterministic(collation) }
    }

    /// Whether a value of an operator's argument type has the same encoding as the column's.
    pub fn is_alike(self, argument: pg_sys::Oid) -> bool {
        // A polymorphic operator takes the very type of the column.
        let is_alike = || match is_core(self.input) && is_core(argument) {
            true => kind(argument).is_some_and(|kind| self.kind() == Some(kind)),
            false => compares_alike(self.family, self.input, argument),
        };
        argument == self.input || is_alike()
    }

    /// The type from which an argument of this type is converted: none if its encoding is the
    /// column's, even where the type by itself has another.
    pub fn converted_from(self, argument: pg_sys::Oid) -> pg_sys::Oid {
        match self.is_alike(argument) {
            true => pg_sys::InvalidOid,
            false => argument,
        }
    }

    /// What its values, or those that they hold, are compared by.
    fn order(self) -> Option<Order> {
        let (element, family, collation) = match self.input {
            pg_sys::ANYARRAYOID => {
                // SAFETY: a catalog look-up; a domain over arrays counts as the array.
                let element = unsafe { pg_sys::get_base_element_type(self.own_type) };
                (element, None, self.collation)
            }
            pg_sys::ANYRANGEOID | pg_sys::ANYMULTIRANGEOID => {
                // SAFETY: catalog look-ups of the column's type, which is a range or a multirange
                // or a domain over one.
                let range = unsafe {
                    match pg_sys::getBaseType(self.own_type) {
                        range if self.input == pg_sys::ANYRANGEOID => range,
                        multirange => pg_sys::get_multirange_range(multirange),
                    }
                };
                let (family, collation) = range_order(range)?;
                // SAFETY: as above.
                let element = unsafe { pg_sys::get_range_subtype(range) };
                (element, Some(family), collation)
            }
            _ => return Order::new(self),
        };
        held(element, family, collation)
    }
}

/// The order of values that others hold: by their type's own family unless one is given.
fn held(
    element: pg_sys::Oid,
    family: Option<pg_sys::Oid>,
    collation: pg_sys::Oid,
) -> Option<Order> {
    if element == pg_sys::InvalidOid {
        return None;
    }
    // SAFETY: a catalog look-up; the entry lives as long as the process.
    let entry = unsafe {
        let wanted = pg_sys::TYPECACHE_BTREE_OPFAMILY as i32;
        &*pg_sys::lookup_type_cache(element, wanted)
    };
    let family = family.unwrap_or(entry.btree_opf);
    let order = Order::new(IndexColumn {
        input: entry.btree_opintype,
        family,
        collation,
        own_type: element,
    })?;
    // A user's type may borrow the class of another one, and lie otherwise.
    let lies_alike = entry.typlen == order.kind.width()
        && alignment(entry.typalign as u8) == Some(ElementKind::of(order.kind)?.align());
    let is_own = family == entry.btree_opf || compares_bytes(family, order.input);
    (lies_alike && is_own).then_some(order)
}

/// Bytes of an alignment of `pg_type`.
pub(super) fn alignment(typalign: u8) -> Option<u8> {
    match typalign {
        pg_sys::TYPALIGN_CHAR => Some(1),
        pg_sys::TYPALIGN_SHORT => Some(2),
        pg_sys::TYPALIGN_INT => Some(4),
        pg_sys::TYPALIGN_DOUBLE => Some(8),
        _ => None,
    }
}

/// The family and the collation by which a range type compares its bounds.
fn range_order(range: pg_sys::Oid) -> Option<(pg_sys::Oid, pg_sys::Oid)> {
    let (class, collation) = catalog::range(range)?;
    // SAFETY: a catalog look-up.
    let family = unsafe { pg_sys::get_opclass_family(class) };
    Some((family, collation))
}
