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
use super::frame::{Frame, within};
use super::watch;
use crate::pg::wire::{self, Message};
use crate::pg::{self, version};
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

impl Wire {
    /// For rows of this type; `None` if a column's type is not plain.
    pub unsafe fn new(row: pg_sys::TupleDesc, context: pg_sys::MemoryContext) -> Option<Wire> {
        // SAFETY: a live row type.
        let kinds: Vec<pg_sys::Oid> = unsafe {
            let attributes = version::attributes(row);
            (0..(*row).natts as usize)
                .map(|position| (*attributes.add(position)).atttypid)
                .collect()
        };
        let are_plain = kinds.iter().all(|kind| PLAIN_TYPES.contains(kind));
        are_plain.then(|| Wire {
            columns: kinds.into_iter().map(Column::new).collect(),
            message: Message::new(),
            context,
        })
    }

    /// Finds the functions for these formats; false if there is one that core has to refuse. May
    /// raise.
    unsafe fn find(&mut self, formats: *const i16) -> bool {
        let generation = watch::types();
        for (position, column) in self.columns.iter_mut().enumerate() {
            // SAFETY: a format for each column, or NULL.
            let Some(is_binary) = (unsafe { is_binary(formats, position) }) else {
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

    /// Sends a row whose values are all in the slot; `context` is for what functions need.
    unsafe fn send(
        &mut self,
        slot: *mut pg_sys::TupleTableSlot,
        formats: *const i16,
        context: pg_sys::MemoryContext,
    ) {
        // SAFETY: a slot of the row type with all its values; `find` was asked about the formats.
        unsafe {
            self.message
                .begin_row(self.columns.len() as i16, self.context);
            for (position, column) in self.columns.iter_mut().enumerate() {
                if *(*slot).tts_isnull.add(position) {
                    self.message.put_null();
                    continue;
                }
                let is_binary = is_binary(formats, position) == Some(true);
                let value = *(*slot).tts_values.add(position);
                let output = column.output(is_binary);
                match output.way {
                    Way::Digits(width) => put_digits(&mut self.message, signed(value, width)),
                    Way::BigEndian(width) => self
                        .message
                        .put_value(&(value.value() as u64).to_be_bytes()[8 - width..]),
                    // As core reads a boolean: all but 0 is true.
                    Way::Letter => {
                        let letter: &[u8] = if value.value() != 0 { b"t" } else { b"f" };
                        self.message.put_value(letter);
                    }
                    Way::Flag => self.message.put_value(&[u8::from(value.value() != 0)]),
                    Way::Stored => match wire::plain_bytes(value) {
                        Some(bytes) => self.message.put_value(bytes),
                        None => by_function(&mut self.message, output, is_binary, value, context),
                    },
                    Way::Function => {
                        by_function(&mut self.message, output, is_binary, value, context);
                    }
                }
            }
            self.message.send();
        }
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

/// Whether the client wants a column in binary form; `None`: in a form that there is not.
#[inline]
unsafe fn is_binary(formats: *const i16, position: usize) -> Option<bool> {
    if formats.is_null() {
        return Some(false);
    }
    // SAFETY: a format for each column.
    match unsafe { *formats.add(position) } {
        0 => Some(false),
        1 => Some(true),
        _ => None,
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
unsafe fn by_function(
    message: &mut Message,
    output: &mut Output,
    is_binary: bool,
    value: pg_sys::Datum,
    context: pg_sys::MemoryContext,
) {
    // SAFETY: a value of the function's type, not NULL; what the function makes lives in the
    // context.
    unsafe {
        let function = &raw mut output.function;
        if is_binary {
            let made = within(context, || pg_sys::SendFunctionCall(function, value));
            message.put_value(pgrx::varlena_to_byte_slice(made));
        } else {
            let made = within(context, || pg_sys::OutputFunctionCall(function, value));
            message.put_value(CStr::from_ptr(made).to_bytes());
        }
    }
}

/// The receiver of the rows of one execution.
pub enum Client<'a> {
    Nobody,
    Receiver(*mut pg_sys::DestReceiver),
    Wire(&'a mut Wire, *const i16),
}

impl<'a> Client<'a> {
    /// The client of a running query, which gets the description of the rows. May raise.
    pub unsafe fn begin(
        query: *mut pg_sys::QueryDesc,
        gets_rows: bool,
        wire: Option<&'a mut Wire>,
    ) -> Client<'a> {
        if !gets_rows {
            return Client::Nobody;
        }
        // SAFETY: core's query descriptor and receiver; may raise.
        unsafe {
            let receiver = (*query).dest;
            if let Some(wire) = wire
                && let Some(formats) = wire::formats_of_execute(receiver)
                && wire::is_text_sent_as_stored()
                && wire.find(formats)
            {
                return Client::Wire(wire, formats);
            }
            let startup = (*receiver).rStartup.expect("a receiver's function");
            let (operation, kind) = ((*query).operation as i32, (*query).tupDesc);
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                #[allow(ffi_unwind_calls)]
                startup(receiver, operation, kind)
            });
            Client::Receiver(receiver)
        }
    }

    /// Hands the projected row over; false: no more is wanted.
    pub unsafe fn send(&mut self, frame: &Frame) -> bool {
        // SAFETY: core's receiver, between startup and shutdown; may raise.
        unsafe {
            match self {
                Client::Nobody => true,
                Client::Receiver(receiver) => {
                    crate::executor::expressions::project_to(frame.projection, *receiver)
                }
                Client::Wire(..) => {
                    let slot = crate::executor::expressions::project(frame.projection);
                    self.send_projected(frame, slot)
                }
            }
        }
    }

    /// Hands a row over that was projected before; false: no more is wanted.
    pub unsafe fn send_projected(
        &mut self,
        frame: &Frame,
        slot: *mut pg_sys::TupleTableSlot,
    ) -> bool {
        // SAFETY: as for `send`; the projection's filled slot.
        unsafe {
            match self {
                Client::Nobody => true,
                Client::Receiver(receiver) => receive(*receiver, slot),
                Client::Wire(wire, formats) => {
                    wire.send(slot, *formats, frame.per_row());
                    true
                }
            }
        }
    }

    /// Hands a row of the table over as it is ([`Frame::sends_row_itself`]); false: no more is
    /// wanted.
    pub unsafe fn send_row(&mut self, frame: &Frame, slot: *mut pg_sys::TupleTableSlot) -> bool {
        // SAFETY: as for `send`; a filled slot of the table's row type, whose columns are the
        // client's.
        unsafe {
            match self {
                Client::Nobody => true,
                Client::Receiver(receiver) => receive(*receiver, slot),
                Client::Wire(wire, formats) => {
                    pg::take_row_apart(slot, (*frame.row_type).natts);
                    wire.send(slot, *formats, frame.per_row());
                    true
                }
            }
        }
    }

    /// No more rows.
    pub unsafe fn end(self) {
        match self {
            Client::Nobody => {}
            Client::Wire(wire, _) => wire.trim(),
            // SAFETY: core's receiver; may raise.
            Client::Receiver(receiver) => unsafe {
                let shutdown = (*receiver).rShutdown.expect("a receiver's function");
                pg_sys::ffi::pg_guard_ffi_boundary(|| {
                    #[allow(ffi_unwind_calls)]
                    shutdown(receiver)
                });
            },
        }
    }
}

/// Hands a row to core's receiver; false: no more is wanted.
unsafe fn receive(receiver: *mut pg_sys::DestReceiver, slot: *mut pg_sys::TupleTableSlot) -> bool {
    // SAFETY: a receiver between startup and shutdown, and a filled slot of its row type; may
    // raise.
    unsafe {
        let receive = (*receiver).receiveSlot.expect("a receiver's function");
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            #[allow(ffi_unwind_calls)]
            receive(slot, receiver)
        })
    }
}
