//! The process title that `ps` shows, behind the server's own prefix.
use super::text;
use pgrx::pg_sys;

/// The activity shown now.
pub fn current() -> String {
    let mut length = 0;
    // SAFETY: answers a buffer of this process and how much of it is used; never raises.
    unsafe {
        let text = pg_sys::get_ps_display(&mut length);
        if text.is_null() {
            return String::new();
        }
        let bytes = std::slice::from_raw_parts(text.cast::<u8>(), length.max(0) as usize);
        text::decode(bytes)
    }
}

/// Shows another activity, if the server shows any.
pub fn show(activity: &str) {
    let activity = text::to_c(activity);
    // SAFETY: a plain setting; the function copies the text and never raises.
    unsafe {
        if pg_sys::update_process_title {
            pg_sys::set_ps_display(activity.as_ptr());
        }
    }
}
