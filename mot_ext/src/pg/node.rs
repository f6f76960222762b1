//! Typed views of core's nodes: what reads them is safe code.
//!
//! A callback makes views of what core passes to it, once ([`Node::enter`]). Everything below it
//! reads fields by value, and gets on to other nodes by fields whose types core's headers give, or
//! by a cast that looks at the tag. `unsafe` is left where core is called.
//!
//! A view is a pointer and may be copied. It is no reference: core may write the fields between two
//! reads, and so may we (`set_...`), since one thread runs all of it. What core frees must not be
//! read any more: a call of core that frees nodes is `unsafe`, and says that no view of them is
//! left.
//!
//! New nodes are made in the current memory context, of fields that may be raw pointers: that is
//! `unsafe`. A view of a node is for the callback at hand. It is kept in no static, and in nothing
//! that outlives that context. What we keep longer, in memory of ours, is [`Owned`].
//!
//! `planner` has the fields of the planner's structures, `expression` those of expressions, `plan`
//! those of finished plans, `executor` those of the executor's structures, `plan_state` those of
//! the states of nodes, `trigger` those of triggers, `index` those of an index that is built,
//! `statement` those of statements. To read another field, or another type of node, add a line
//! there ([`views!`]).
mod executor;
mod expression;
mod index;
mod owned;
mod plan;
mod plan_state;
mod planner;
mod row_type;
mod scalars;
mod statement;
mod trigger;

pub use owned::Owned;
pub use plan::Compared;
pub use planner::KeyColumn;
pub use scalars::Scalars;

use super::argument::Argument;
use super::list;
use pgrx::pg_sys;
use std::ffi::{CStr, c_char};
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// A node of core's, of this type, for the time `'p`.
#[repr(transparent)]
pub struct Node<'p, T> {
    pointer: NonNull<T>,
    time: PhantomData<&'p T>,
}

/// A node of any type.
pub type Any<'p> = Node<'p, pg_sys::Node>;

/// A type that begins with a node's tag.
///
/// # Safety
/// It does.
pub unsafe trait NodeType {}

/// A node's type that has a tag of its own.
///
/// # Safety
/// A node with this tag is of this type.
pub unsafe trait Tagged: NodeType {
    /// The tag.
    const TAG: pg_sys::NodeTag;
}

// SAFETY: it is the tag.
unsafe impl NodeType for pg_sys::Node {}

impl<T> Clone for Node<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Node<'_, T> {}

impl<T> PartialEq for Node<'_, T> {
    /// Whether both are the same node.
    fn eq(&self, other: &Self) -> bool {
        self.pointer == other.pointer
    }
}

impl<T> Argument<*mut T> for Node<'_, T> {
    #[inline]
    unsafe fn of(passed: *mut T) -> Self {
        // SAFETY: the caller's.
        unsafe { Node::enter(passed) }
    }
}

impl<'p, T> Node<'p, T> {
    /// A view of a node, which must not be NULL.
    ///
    /// # Safety
    /// A node of this type that is live for `'p`, and so is what its fields lead to. Nobody
    /// changes it meanwhile but core, where it is called, and the setters here. The time ends
    /// before the memory context that is current does, in which nodes are made.
    #[inline]
    pub unsafe fn enter(node: *mut T) -> Node<'p, T> {
        debug_assert!(!node.is_null());
        // SAFETY: a live node (caller).
        unsafe { Node::at(NonNull::new_unchecked(node)) }
    }

    /// The same, of what may be NULL.
    ///
    /// # Safety
    /// As of [`Node::enter`], if it is not NULL.
    #[inline]
    pub unsafe fn enter_if_any(node: *mut T) -> Option<Node<'p, T>> {
        // SAFETY: the caller's.
        NonNull::new(node).map(|node| unsafe { Node::at(node) })
    }

    /// # Safety
    /// As of [`Node::enter`].
    #[inline]
    unsafe fn at(pointer: NonNull<T>) -> Node<'p, T> {
        Node {
            pointer,
            time: PhantomData,
        }
    }

    /// The pointer, for calls of core.
    #[inline]
    pub fn as_ptr(self) -> *mut T {
        self.pointer.as_ptr()
    }

    /// All fields, as they are now.
    #[inline]
    pub fn fields(self) -> T
    where
        T: Copy,
    {
        // SAFETY: a live node.
        unsafe { self.pointer.read() }
    }
}

impl<'p, T: NodeType> Node<'p, T> {
    /// The same as a node of any type.
    #[inline]
    pub fn any(self) -> Any<'p> {
        // SAFETY: it begins with a tag, by its type.
        unsafe { Node::at(self.pointer.cast()) }
    }

    /// The tag.
    #[inline]
    pub fn tag(self) -> pg_sys::NodeTag {
        // SAFETY: a live node begins with its tag.
        unsafe { self.pointer.cast::<pg_sys::Node>().as_ref().type_ }
    }

    /// The same as what its tag says; `None`: it is something else.
    #[inline]
    pub fn cast<U: Tagged>(self) -> Option<Node<'p, U>> {
        // SAFETY: a live node with the tag of the type.
        (self.tag() == U::TAG).then(|| unsafe { Node::at(self.pointer.cast()) })
    }

    /// A deep copy, in the current memory context.
    pub fn copied(self) -> Node<'p, T> {
        // SAFETY: a live node; the copy is one of the same type. The context outlives the time.
        unsafe { Node::enter(pg_sys::copyObjectImpl(self.as_ptr().cast()).cast()) }
    }
}

impl<'p, T: Tagged> Node<'p, T> {
    /// A new node in the current memory context.
    ///
    /// # Safety
    /// Pointers among the fields lead to what the type says, as live as [`Node::enter`] wants it.
    /// The current memory context outlives `'p`.
    pub unsafe fn new(fields: T) -> Node<'p, T> {
        // SAFETY: memory of the type's size, filled here.
        unsafe {
            let node = pg_sys::palloc(size_of::<T>()).cast::<T>();
            node.write(fields);
            (*node.cast::<pg_sys::Node>()).type_ = T::TAG;
            Node::enter(node)
        }
    }
}

/// A list of core's, of nodes of this type; empty where the pointer is NULL.
#[repr(transparent)]
pub struct List<'p, T> {
    pointer: *mut pg_sys::List,
    items: PhantomData<Node<'p, T>>,
}

impl<T> Clone for List<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for List<'_, T> {}

impl<'p, T> List<'p, T> {
    /// A view of a list, or of NULL.
    ///
    /// # Safety
    /// A list of pointers to such nodes; each, and the list, as [`Node::enter`] wants it.
    #[inline]
    pub unsafe fn enter(pointer: *mut pg_sys::List) -> List<'p, T> {
        List {
            pointer,
            items: PhantomData,
        }
    }

    /// A new list in the current memory context; the nodes are gone through twice.
    pub fn of(nodes: impl Iterator<Item = Node<'p, T>> + Clone) -> List<'p, T> {
        // SAFETY: live nodes. The context outlives their time.
        unsafe { List::enter(list::list_of(nodes.map(Node::as_ptr))) }
    }

    /// The pointer, for calls of core.
    #[inline]
    pub fn as_ptr(self) -> *mut pg_sys::List {
        self.pointer
    }

    /// The list itself as a node, for walks over trees; `None`: it is empty.
    #[inline]
    pub fn tree(self) -> Option<Any<'p>> {
        // SAFETY: NULL, or a live list, which begins with a tag.
        unsafe { Node::enter_if_any(self.pointer.cast()) }
    }

    /// How many cells it has.
    #[inline]
    pub fn len(self) -> usize {
        // SAFETY: NULL or a live list.
        unsafe { self.pointer.as_ref() }.map_or(0, |list| list.length as usize)
    }

    /// Whether it has none. (Core's empty list is NULL.)
    #[inline]
    pub fn is_empty(self) -> bool {
        self.pointer.is_null()
    }

    /// A node by its place, from 0; `None`: there is no such cell, or NULL in it.
    #[inline]
    pub fn get(self, place: usize) -> Option<Node<'p, T>> {
        if place >= self.len() {
            return None;
        }
        // SAFETY: the list has such a cell, which holds NULL or a live node.
        unsafe { Node::enter_if_any((*(*self.pointer).elements.add(place)).ptr_value.cast()) }
    }

    /// Puts another node in the place of one.
    pub fn set(self, place: usize, node: Node<'p, T>) {
        assert!(place < self.len());
        // SAFETY: the list has such a cell.
        unsafe { (*(*self.pointer).elements.add(place)).ptr_value = node.as_ptr().cast() };
    }

    /// The nodes, where they are, without cells of NULL. Each step reads the list as it is then.
    #[inline]
    pub fn iter(self) -> Items<'p, T> {
        Items {
            list: self,
            next: 0,
        }
    }
}

impl<'p, T> IntoIterator for List<'p, T> {
    type Item = Node<'p, T>;
    type IntoIter = Items<'p, T>;

    #[inline]
    fn into_iter(self) -> Items<'p, T> {
        self.iter()
    }
}

/// The nodes of a list.
#[derive(Clone)]
pub struct Items<'p, T> {
    list: List<'p, T>,
    next: usize,
}

impl<'p, T> Iterator for Items<'p, T> {
    type Item = Node<'p, T>;

    #[inline]
    fn next(&mut self) -> Option<Node<'p, T>> {
        while self.next < self.list.len() {
            self.next += 1;
            if let Some(node) = self.list.get(self.next - 1) {
                return Some(node);
            }
        }
        None
    }
}

impl<T> FusedIterator for Items<'_, T> {}

/// A field of a node, or a value that core passes, which may get another value.
pub struct Field<'p, V> {
    place: NonNull<V>,
    time: PhantomData<&'p V>,
}

impl<V> Clone for Field<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Field<'_, V> {}

impl<V: Copy> Argument<*mut V> for Field<'_, V> {
    #[inline]
    unsafe fn of(passed: *mut V) -> Self {
        // SAFETY: a value of core's (caller).
        unsafe { Field::enter(passed) }
    }
}

impl<'p, V: Copy> Field<'p, V> {
    /// # Safety
    /// A field of a node that is as [`Node::enter`] wants it.
    #[inline]
    unsafe fn enter(place: *mut V) -> Field<'p, V> {
        Field {
            // SAFETY: a field of a live node (caller).
            place: unsafe { NonNull::new_unchecked(place) },
            time: PhantomData,
        }
    }

    /// The pointer, for calls of core.
    #[inline]
    pub fn as_ptr(self) -> *mut V {
        self.place.as_ptr()
    }

    /// Its value.
    #[inline]
    pub fn get(self) -> V {
        // SAFETY: a live node's.
        unsafe { self.place.read() }
    }

    /// Gives it another one.
    #[inline]
    pub fn set(self, value: V) {
        // SAFETY: as above; one thread, and nobody holds a reference.
        unsafe { self.place.write(value) };
    }
}

/// A field with a string, or NULL.
#[derive(Clone, Copy)]
pub struct TextField<'p>(Field<'p, *mut c_char>);

impl<'p> TextField<'p> {
    /// The string; `None`: NULL.
    pub fn get(self) -> Option<&'p CStr> {
        // SAFETY: the field has NULL, or a string as live as the node.
        unsafe { string(self.0.get()) }
    }

    /// Gives it a copy of a string, in the current memory context.
    pub fn set(self, text: &CStr) {
        // SAFETY: a string. The context outlives the time.
        self.0.set(unsafe { pg_sys::pstrdup(text.as_ptr()) });
    }
}

/// A string of a node's; `None`: NULL.
///
/// # Safety
/// NULL, or a string that is live for `'p`.
unsafe fn string<'p>(text: *const c_char) -> Option<&'p CStr> {
    // SAFETY: the caller's.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// Methods that read fields, one for each, of types of core's nodes, with their tags:
///
/// - `value`: as it is. `set`: set by the method that follows. `cell`: both;
/// - `node`: another node, or NULL. `list`: a list of nodes. `scalars`: one of numbers or oids;
/// - `base`: the node that this begins with;
/// - `string`: a string, or NULL. `text`: its place, to be read and set;
/// - `field`: the place of a value, to be read and set;
/// - `has`: whether a pointer or a list is there.
macro_rules! views {
    ($($of:ident $(= $tag:ident)? { $($kind:ident $field:ident $(/ $set:ident)? $(: $type:ty)?,)* })*) => {$(
        $(
            // SAFETY: core's headers say so.
            unsafe impl $crate::pg::node::NodeType for pg_sys::$of {}
            // SAFETY: as above.
            unsafe impl $crate::pg::node::Tagged for pg_sys::$of {
                const TAG: pg_sys::NodeTag = pg_sys::NodeTag::$tag;
            }
        )?
        #[allow(non_snake_case)]
        impl<'p> $crate::pg::node::Node<'p, pg_sys::$of> {
            $($crate::pg::node::views!(@$kind $field $($set)? $(: $type)?);)*
        }
    )*};
    (@value $field:ident: $type:ty) => {
        #[doc = concat!("The field `", stringify!($field), "`.")]
        #[inline]
        pub fn $field(self) -> $type {
            // SAFETY: a live node of the type.
            unsafe { (*self.as_ptr()).$field }
        }
    };
    (@cell $field:ident $set:ident: $type:ty) => {
        $crate::pg::node::views!(@value $field: $type);
        $crate::pg::node::views!(@set $field $set: $type);
    };
    (@set $field:ident $set:ident: $type:ty) => {
        #[doc = concat!("Sets the field `", stringify!($field), "`.")]
        #[inline]
        pub fn $set(self, value: $type) {
            // SAFETY: as above; one thread, and nobody holds a reference.
            unsafe { (*self.as_ptr()).$field = value };
        }
    };
    (@node $field:ident: $type:ty) => {
        #[doc = concat!("The node `", stringify!($field), "`.")]
        #[inline]
        pub fn $field(self) -> Option<$crate::pg::node::Node<'p, $type>> {
            // SAFETY: a live node of the type has there NULL, or one of that type, as live.
            unsafe { $crate::pg::node::Node::enter_if_any((*self.as_ptr()).$field.cast()) }
        }
    };
    (@list $field:ident: $type:ty) => {
        #[doc = concat!("The list `", stringify!($field), "`.")]
        #[inline]
        pub fn $field(self) -> $crate::pg::node::List<'p, $type> {
            // SAFETY: a live node of the type has there a list of that type, as live.
            unsafe { $crate::pg::node::List::enter((*self.as_ptr()).$field) }
        }
    };
    (@scalars $field:ident) => {
        #[doc = concat!("The list `", stringify!($field), "`.")]
        #[inline]
        pub fn $field(self) -> $crate::pg::node::Scalars<'p> {
            // SAFETY: a live node of the type has there such a list, as live.
            unsafe { $crate::pg::node::Scalars::enter((*self.as_ptr()).$field) }
        }
    };
    (@base $field:ident: $type:ty) => {
        #[doc = concat!("The part `", stringify!($field), "`, which it begins with.")]
        #[inline]
        pub fn $field(self) -> $crate::pg::node::Node<'p, $type> {
            // SAFETY: a live node of the type has it within.
            unsafe { $crate::pg::node::Node::enter(&raw mut (*self.as_ptr()).$field) }
        }
    };
    (@string $field:ident) => {
        #[doc = concat!("The string `", stringify!($field), "`.")]
        #[inline]
        pub fn $field(self) -> Option<&'p std::ffi::CStr> {
            // SAFETY: a live node of the type has there NULL, or a string, as live.
            unsafe { $crate::pg::node::string((*self.as_ptr()).$field) }
        }
    };
    (@field $field:ident: $type:ty) => {
        #[doc = concat!("The place of the field `", stringify!($field), "`.")]
        #[inline]
        pub fn $field(self) -> $crate::pg::node::Field<'p, $type> {
            // SAFETY: a live node of the type.
            unsafe { $crate::pg::node::Field::enter(&raw mut (*self.as_ptr()).$field) }
        }
    };
    (@text $field:ident) => {
        #[doc = concat!("The place of the string `", stringify!($field), "`.")]
        #[inline]
        pub fn $field(self) -> $crate::pg::node::TextField<'p> {
            // SAFETY: a live node of the type has there NULL, or a string, as live.
            $crate::pg::node::TextField(unsafe {
                $crate::pg::node::Field::enter(&raw mut (*self.as_ptr()).$field)
            })
        }
    };
    (@has $field:ident) => {
        #[doc = concat!("Whether it has `", stringify!($field), "`.")]
        #[inline]
        pub fn $field(self) -> bool {
            // SAFETY: a live node of the type.
            unsafe { !(*self.as_ptr()).$field.is_null() }
        }
    };
}
use views;
