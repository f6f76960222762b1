//! What memory-optimized tables do not support, said in one way.
use crate::pg::report;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

/// Raises 0A000.
pub fn unsupported(message: impl Into<String>, hint: impl Into<String>) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        message,
        None,
        Some(hint.into()),
    )
}

/// Raises an error.
pub fn raise(
    code: PgSqlErrorCode,
    message: impl Into<String>,
    detail: Option<String>,
    hint: Option<String>,
) -> ! {
    let message = message.into();
    report::raise_unless_utf8(code, &message, detail.as_deref(), hint.as_deref());
    let mut report = ErrorReport::new(code, message, "mot");
    if let Some(detail) = detail {
        report = report.set_detail(detail);
    }
    if let Some(hint) = hint {
        report = report.set_hint(hint);
    }
    report.report(PgLogLevel::ERROR);
    unreachable!("an error report at level ERROR unwinds")
}
