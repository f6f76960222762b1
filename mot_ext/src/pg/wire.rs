//! What core's sender of rows to a client (`printtup`) has to be asked for: whose rows it sends,
//! and in which encoding.
use super::small_context;
use crate::pg::local::ProcessLocal;
use pgrx::pg_sys;
use std::cell::Cell;
use std::ffi::c_int;

unsafe extern "C" {
    /// Reads a variable of this process; raises nothing.
    #[link_name = "pg_get_client_encoding"]
    fn client_encoding() -> c_int;
    /// Reads a variable of this process; raises nothing.
    #[link_name = "GetDatabaseEncoding"]
    fn database_encoding() -> c_int;
}

/// The code of SQL_ASCII (`mb/pg_wchar.h`): to such a client everything goes as it is.
const SQL_ASCII: c_int = 0;

struct ReceiverCache {
    /// Address of `printtup`; 0: not known yet.
    printtup: Cell<usize>,
}

static RECEIVER_CACHE: ProcessLocal<ReceiverCache> = ProcessLocal(ReceiverCache {
    printtup: Cell::new(0),
});

/// Whether a text goes to the client byte by byte as it is stored.
pub fn is_text_sent_as_stored() -> bool {
    // SAFETY: neither raises.
    let (client, database) = unsafe { (client_encoding(), database_encoding()) };
    client == database || client == SQL_ASCII
}

/// The formats that the client of an extended-protocol Execute wants the columns in, NULL for text
/// in all of them; `None` unless the receiver is core's own for just that, at work for the portal
/// that runs.
///
/// A receiver's portal is behind its public part, in a structure that is private to core. It is
/// believed only if it is the portal that runs.
pub unsafe fn formats_of_execute(receiver: *mut pg_sys::DestReceiver) -> Option<*const i16> {
    // SAFETY: a receiver of the running query; core's own have a pointer behind their public part
    // (`DR_printtup`).
    unsafe {
        if (*receiver).mydest != pg_sys::CommandDest::DestRemoteExecute
            || (*receiver).receiveSlot.map_or(0, |send| send as usize) != printtup()
        {
            return None;
        }
        let portal = receiver.add(1).cast::<pg_sys::Portal>().read();
        let is_running = !portal.is_null() && portal == pg_sys::ActivePortal;
        is_running.then(|| (*portal).formats.cast_const())
    }
}

fn printtup() -> usize {
    let known = RECEIVER_CACHE.printtup.get();
    if known != 0 {
        return known;
    }
    // SAFETY: a receiver that is made, read and given back to the memory context; may raise
    // for want of memory.
    let found = unsafe {
        let receiver = pg_sys::CreateDestReceiver(pg_sys::CommandDest::DestRemoteExecute);
        let found = (*receiver).receiveSlot.map_or(0, |send| send as usize);
        pg_sys::pfree(receiver.cast());
        found
    };
    RECEIVER_CACHE.printtup.set(found);
    found
}

/// A row of a text as core's `StringInfo` holds it, grown where need be: 54000 beyond a gigabyte,
/// as core raises it.
pub struct Message {
    text: pg_sys::StringInfoData,
    /// Of its own, so that views of a backend's memory show its name; NULL before the
    /// first row.
    context: pg_sys::MemoryContext,
}

impl Message {
    /// Without memory as yet.
    pub fn new() -> Message {
        Message {
            text: no_text(),
            context: std::ptr::null_mut(),
        }
    }

    /// Begins a DataRow of so many columns. Memory is taken under `parent`, which must live as long
    /// as the message.
    pub unsafe fn begin_row(&mut self, columns: i16, parent: pg_sys::MemoryContext) {
        if self.text.data.is_null() {
            // SAFETY: a live parent (caller); may raise for want of memory.
            unsafe {
                if self.context.is_null() {
                    self.context = small_context(parent, c"mot rows for a client");
                }
                let old = pg_sys::MemoryContextSwitchTo(self.context);
                pg_sys::initStringInfo(&raw mut self.text);
                pg_sys::MemoryContextSwitchTo(old);
            }
        }
        self.text.len = 0;
        self.text.cursor = c_int::from(b'D');
        self.put(&columns.to_be_bytes());
    }

    /// A NULL.
    #[inline]
    pub fn put_null(&mut self) {
        self.put(&(-1_i32).to_be_bytes());
    }

    /// A value, with its length before it.
    #[inline]
    pub fn put_value(&mut self, bytes: &[u8]) {
        // No value of PostgreSQL's is longer than a gigabyte.
        self.put(&(bytes.len() as u32).to_be_bytes());
        self.put(bytes);
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        // SAFETY: the room is there after the test; the string keeps a byte behind its end as
        // core's do.
        unsafe {
            if (self.text.len as usize) + bytes.len() >= self.text.maxlen as usize {
                let needed = c_int::try_from(bytes.len()).unwrap_or(c_int::MAX);
                pg_sys::enlargeStringInfo(&raw mut self.text, needed);
            }
            let end = self.text.data.add(self.text.len as usize).cast::<u8>();
            end.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        self.text.len += bytes.len() as c_int;
    }

    /// Sends it. May raise, also what interrupts a wait for the client.
    pub fn send(&mut self) {
        // SAFETY: a filled message.
        unsafe { pg_sys::pq_endmessage_reuse(&raw mut self.text) };
    }

    /// Gives memory back that only a very long row needed.
    pub fn trim(&mut self) {
        if self.text.maxlen > KEPT_BYTES_MAX {
            // SAFETY: the message's own memory.
            unsafe { pg_sys::pfree(self.text.data.cast()) };
            self.text = no_text();
        }
    }
}

/// A string without memory.
fn no_text() -> pg_sys::StringInfoData {
    // SAFETY: all-zero bytes are NULL and lengths of 0.
    unsafe { std::mem::zeroed() }
}

/// Bytes a message may keep between two executions.
const KEPT_BYTES_MAX: c_int = 32 << 10;

/// Bytes of a text, varchar, bpchar or bytea that is neither compressed nor kept elsewhere; `None`
/// for one that is.
#[inline]
pub unsafe fn plain_bytes<'a>(datum: pg_sys::Datum) -> Option<&'a [u8]> {
    let value = datum.cast_mut_ptr::<pg_sys::varlena>();
    // SAFETY: a datum of such a type, not NULL.
    unsafe {
        if pgrx::varatt_is_1b_e(value) || pgrx::varatt_is_4b_c(value) {
            return None;
        }
        Some(pgrx::varlena_to_byte_slice(value))
    }
}

/// Looks up the function that writes values of a type for the client, in text or binary form, into
/// `function`, which lives as long as `context`. May raise.
pub unsafe fn find_output(
    kind: pg_sys::Oid,
    is_binary: bool,
    function: *mut pg_sys::FmgrInfo,
    context: pg_sys::MemoryContext,
) {
    let (mut oid, mut _is_varlena) = (pg_sys::InvalidOid, false);
    // SAFETY: a catalog look-up, and a live place and context (caller).
    unsafe {
        if is_binary {
            pg_sys::getTypeBinaryOutputInfo(kind, &mut oid, &mut _is_varlena);
        } else {
            pg_sys::getTypeOutputInfo(kind, &mut oid, &mut _is_varlena);
        }
        pg_sys::fmgr_info_cxt(oid, function, context);
    }
}
