//! The receiver of the rows of a compiled statement: core's receiver or, past it, the client of an
//! extended-protocol Execute.
//!
//! Core's receiver for such a client (`printtup`) looks up the output function of each column anew
//! in every execution, and makes and frees a buffer and a memory context. [`Wire`] keeps all that
//! with the statement and writes the same message: the same functions of the same types, found
//! again whenever a type changes ([`watch::types`]). What the server's own functions do to
//! integers, booleans and texts is done here without a call, after a look that the type's function
//! is still the server's own.
//!
//! It serves plain types of the server's own only, whose functions remember nothing between calls,
//! and only where texts go to the client as they are stored. Everything else, the simple protocol
//! (which has row descriptions to send) and all other receivers go through core's.
use super::frame::{Frame, Row};
use super::watch;
use crate::pg::memory::within;
use crate::pg::node::Node;
use crate::pg::wire::{self, Message};
use pgrx::pg_sys;
use std::ffi::CStr;

/// How a value is written in one of the two forms.
#[derive(Clone, Copy)]
enum Way {
    /// A signed integer of so many bytes, in decimal digits.
    Digits(usize),
    /// A value of so many bytes, the highest one first.
    BigEndian(usize),
    /// `t` or `f`.
    Letter,
    /// A byte of 1 or 0.
    Flag,
    /// The bytes of a text, as they are.
    Stored,
    /// By the type's function.
    Function,
}

/// One form of a column: text or binary.
struct Output {
    /// [`watch::types`] when it was looked up; 0: never.
    generation: u64,
    way: Way,
    function: pg_sys::FmgrInfo,
}

struct Column {
    kind: pg_sys::Oid,
    text: Output,
    binary: Output,
}

/// Sends rows to the client by functions that are kept.
pub struct Wire {
    columns: Vec<Column>,
    message: Message,
    /// The statement's.
    context: pg_sys::MemoryContext,
}

/// Types whose output functions need only the value.
const PLAIN_TYPES: [pg_sys::Oid; 19] = [
    pg_sys::BOOLOID,
    pg_sys::BYTEAOID,
    pg_sys::CHAROID,
    pg_sys::NAMEOID,
    pg_sys::INT8OID,
    pg_sys::INT2OID,
    pg_sys::INT4OID,
    pg_sys::TEXTOID,
    pg_sys::OIDOID,
    pg_sys::FLOAT4OID,
    pg_sys::FLOAT8OID,
    pg_sys::BPCHAROID,
    pg_sys::VARCHAROID,
    pg_sys::DATEOID,
    pg_sys::TIMEOID,
    pg_sys::TIMESTAMPOID,
    pg_sys::TIMESTAMPTZOID,
    pg_sys::NUMERICOID,
    pg_sys::UUIDOID,
];

/// What a type's output function does, if it is one of the server's own that are done here.
fn way_of(function: pg_sys::Oid) -> Way {
    match function.to_u32() {
        pg_sys::F_BOOLOUT => Way::Letter,
        pg_sys::F_INT2OUT => Way::Digits(2),
        pg_sys::F_INT4OUT => Way::Digits(4),
        pg_sys::F_INT8OUT => Way::Digits(8),
        pg_sys::F_BOOLSEND => Way::Flag,
        pg_sys::F_INT2SEND => Way::BigEndian(2),
        pg_sys::F_INT4SEND => Way::BigEndian(4),
        // Timestamps are microseconds.
        pg_sys::F_INT8SEND | pg_sys::F_TIMESTAMP_SEND | pg_sys::F_TIMESTAMPTZ_SEND => {
            Way::BigEndian(8)
        }
        pg_sys::F_TEXTOUT
        | pg_sys::F_TEXTSEND
        | pg_sys::F_VARCHAROUT
        | pg_sys::F_VARCHARSEND
        | pg_sys::F_BPCHAROUT
        | pg_sys::F_BPCHARSEND => Way::Stored,
        _ => Way::Function,
    }
}

/// The forms in which the client of an Execute wants the columns.
#[derive(Clone, Copy)]
pub struct Formats(*const i16);

impl Formats {
    /// Whether it wants a column in binary form; `None`: in a form that there is not.
    ///
    /// # Safety
    /// The portal is the one that runs, and has the column.
    #[inline]
    unsafe fn is_binary(self, position: usize) -> Option<bool> {
        if self.0.is_null() {
            return Some(false);
        }
        // SAFETY: a format for each column (caller).
        match unsafe { *self.0.add(position) } {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Wire {
    /// For rows of this type; `None` if a column's type is not plain.
    ///
    /// # Safety
    /// The context lives as long as the value.
    pub unsafe fn new(
        row: Node<'_, pg_sys::TupleDescData>,
        context: pg_sys::MemoryContext,
    ) -> Option<Wire> {
        let kinds = row.columns().iter().map(|column| column.atttypid);
        let are_plain = kinds.clone().all(|kind| PLAIN_TYPES.contains(&kind));
        are_plain.then(|| Wire {
            columns: kinds.map(Column::new).collect(),
            message: Message::new(),
            context,
        })
    }

    /// Finds the functions for these formats; false if there is one that core has to refuse. May
    /// raise.
    ///
    /// # Safety
    /// As for [`Formats::is_binary`], for all columns.
    unsafe fn find(&mut self, formats: Formats) -> bool {
        let generation = watch::types();
        for (position, column) in self.columns.iter_mut().enumerate() {
            // SAFETY: the caller's.
            let Some(is_binary) = (unsafe { formats.is_binary(position) }) else {
                return false;
            };
            let kind = column.kind;
            let output = column.output(is_binary);
            if output.generation == generation {
                continue;
            }
            // SAFETY: the function stays where it is: the columns are never moved.
            unsafe { wire::find_output(kind, is_binary, &raw mut output.function, self.context) };
            output.way = way_of(output.function.fn_oid);
            output.generation = generation;
        }
        true
    }

    /// Gives memory back that only a very long row needed.
    pub fn trim(&mut self) {
        self.message.trim();
    }

    /// Sends a row; `context` is for what functions need.
    ///
    /// # Safety
    /// A filled slot of the row type, taken apart. `find` was asked about the formats.
    unsafe fn send(&mut self, row: Row<'_>, formats: Formats, context: pg_sys::MemoryContext) {
        // SAFETY: the caller's slot, which nobody changes meanwhile; the statement's own context.
        let (values, nulls) = unsafe {
            let columns = self.columns.len() as i16;
            self.message.begin_row(columns, self.context);
            row.columns()
        };
        let row = values.iter().zip(nulls);
        for (position, (column, (value, is_null))) in self.columns.iter_mut().zip(row).enumerate() {
            if *is_null {
                self.message.put_null();
                continue;
            }
            // SAFETY: as `find` asked.
            let is_binary = unsafe { formats.is_binary(position) } == Some(true);
            // SAFETY: a value of the column's type, for which the function was found.
            unsafe {
                put(
                    &mut self.message,
                    column.output(is_binary),
                    *value,
                    (is_binary, context),
                )
            };
        }
        self.message.send();
    }
}

impl Column {
    fn new(kind: pg_sys::Oid) -> Column {
        let unknown = || Output {
            generation: 0,
            way: Way::Function,
            // SAFETY: all-zero bytes are no function.
            function: unsafe { std::mem::zeroed() },
        };
        Column {
            kind,
            text: unknown(),
            binary: unknown(),
        }
    }

    #[inline]
    fn output(&mut self, is_binary: bool) -> &mut Output {
        if is_binary {
            &mut self.binary
        } else {
            &mut self.text
        }
    }
}

/// Appends a value that is not NULL. What a function makes of it, in binary form or not, lives in
/// the context.
///
/// # Safety
/// A value of the type whose output this is, and a live context.
#[inline]
unsafe fn put(
    message: &mut Message,
    output: &mut Output,
    value: pg_sys::Datum,
    (is_binary, context): (bool, pg_sys::MemoryContext),
) {
    match output.way {
        Way::Digits(width) => put_digits(message, signed(value, width)),
        Way::BigEndian(width) => {
            message.put_value(&(value.value() as u64).to_be_bytes()[8 - width..]);
        }
        // As core reads a boolean: all but 0 is true.
        Way::Letter => {
            let letter: &[u8] = if value.value() != 0 { b"t" } else { b"f" };
            message.put_value(letter);
        }
        Way::Flag => message.put_value(&[u8::from(value.value() != 0)]),
        // SAFETY: a text, as the way says.
        Way::Stored => match unsafe { wire::plain_bytes(value) } {
            Some(bytes) => message.put_value(bytes),
            // SAFETY: the caller's.
            None => unsafe { by_function(message, output, value, (is_binary, context)) },
        },
        // SAFETY: the caller's.
        Way::Function => unsafe { by_function(message, output, value, (is_binary, context)) },
    }
}

/// An integer passed by value.
#[inline]
fn signed(value: pg_sys::Datum, width: usize) -> i64 {
    match width {
        2 => i64::from(value.value() as i16),
        4 => i64::from(value.value() as i32),
        _ => value.value() as i64,
    }
}

/// Appends an integer in decimal digits.
fn put_digits(message: &mut Message, value: i64) {
    let mut room = [0_u8; 20];
    let mut at = room.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        room[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        room[at] = b'-';
    }
    message.put_value(&room[at..]);
}

/// Appends what the type's function makes of the value.
///
/// # Safety
/// As for [`put`].
unsafe fn by_function(
    message: &mut Message,
    output: &mut Output,
    value: pg_sys::Datum,
    (is_binary, context): (bool, pg_sys::MemoryContext),
) {
    let function = &raw mut output.function;
    if is_binary {
        // SAFETY: the caller's. What the function makes is copied into the message.
        message.put_value(unsafe {
            let made = within(context, || pg_sys::SendFunctionCall(function, value));
            pgrx::varlena_to_byte_slice(made)
        });
    } else {
        // SAFETY: as above.
        let made = unsafe {
            let made = within(context, || pg_sys::OutputFunctionCall(function, value));
            CStr::from_ptr(made)
        };
        message.put_value(made.to_bytes());
    }
}

/// The receiver of the rows of one execution, between its startup and its shutdown.
pub enum Client<'a> {
    Nobody,
    Receiver(Node<'a, pg_sys::DestReceiver>),
    Wire(&'a mut Wire, Formats),
}

impl<'a> Client<'a> {
    /// The client of a running query, which gets the description of the rows. May raise.
    ///
    /// # Safety
    /// The query's portal, if it has one, is the one that runs. Its receiver was not begun, or was
    /// ended. The wire was made for the query's rows.
    pub unsafe fn begin(
        query: Node<'a, pg_sys::QueryDesc>,
        gets_rows: bool,
        wire: Option<&'a mut Wire>,
    ) -> Client<'a> {
        if !gets_rows {
            return Client::Nobody;
        }
        let receiver = query.receiver();
        // SAFETY: the receiver of a running query.
        let formats = || unsafe { wire::formats_of_execute(receiver.as_ptr()) };
        if let Some(wire) = wire
            && let Some(formats) = formats().map(Formats)
            && wire::is_text_sent_as_stored()
            // SAFETY: the portal that runs, of a query with these columns.
            && unsafe { wire.find(formats) }
        {
            return Client::Wire(wire, formats);
        }
        // SAFETY: as above; it was not begun.
        unsafe { receiver.start_up(query.operation(), query.tupDesc()) };
        Client::Receiver(receiver)
    }

    /// Projects the row that the frame shows, and hands it over; false: no more is wanted.
    ///
    /// # Safety
    /// The frame's values show a filled row of its table.
    #[inline]
    pub unsafe fn send(&mut self, frame: &Frame) -> bool {
        let Some(projection) = &frame.projection else {
            return true;
        };
        // SAFETY: the caller's row.
        unsafe {
            match self {
                Client::Nobody => true,
                Client::Receiver(receiver) => projection.project_to(*receiver),
                Client::Wire(..) => self.send_projected(frame, projection.project()),
            }
        }
    }

    /// Hands a row over that was projected before; false: no more is wanted.
    ///
    /// # Safety
    /// A filled slot of the projection's.
    #[inline]
    pub unsafe fn send_projected(&mut self, frame: &Frame, row: Row<'_>) -> bool {
        match self {
            Client::Nobody => true,
            // SAFETY: a filled slot of the receiver's row type.
            Client::Receiver(receiver) => unsafe { receiver.receive(row) },
            Client::Wire(wire, formats) => {
                // SAFETY: a virtual slot has all its values; `begin` found the functions.
                unsafe { wire.send(row, *formats, frame.per_row()) };
                true
            }
        }
    }

    /// Hands a row of the table over as it is ([`Frame::sends_row_itself`]); false: no more is
    /// wanted.
    ///
    /// # Safety
    /// A filled slot of the table's row type, whose columns are the client's.
    #[inline]
    pub unsafe fn send_row(&mut self, frame: &Frame, row: Row<'_>) -> bool {
        if let Client::Wire(..) = self {
            let count = frame.row_type.view().columns().len();
            // SAFETY: the caller's slot.
            unsafe { row.take_apart(count as i32) };
        }
        // SAFETY: the caller's slot, whose values are there as far as they are read.
        unsafe { self.send_projected(frame, row) }
    }

    /// No more rows.
    pub fn end(self) {
        match self {
            Client::Nobody => {}
            Client::Wire(wire, _) => wire.trim(),
            // SAFETY: `begin` has begun it.
            Client::Receiver(receiver) => unsafe { receiver.shut_down() },
        }
    }
}
