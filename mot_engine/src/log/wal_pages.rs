//! How PostgreSQL's log lies in pages.

use crate::ids::Lsn;

/// The sizes of a server's log, in bytes.
pub struct WalPages {
    pub page: u64,
    /// What every page begins with, but the first of a segment.
    pub header: u64,
    pub segment: u64,
    /// What the first page of a segment begins with.
    pub long_header: u64,
}

impl WalPages {
    /// The end of the last record, for the position at which the next one will be put in: behind a
    /// page's header nothing has been put in yet. Where a page has the short header, as many bytes
    /// as the long one are that and the tail of a record.
    pub fn end_of_last_record(&self, insert: Lsn) -> Lsn {
        let is_first = insert.0 % self.segment < self.page;
        let header = if is_first {
            self.long_header
        } else {
            self.header
        };
        let in_page = insert.0 % self.page;
        if in_page == header {
            Lsn(insert.0 - in_page)
        } else {
            insert
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_as_long_as_a_header_is_a_record() {
        let pages = WalPages {
            page: 8192,
            header: 24,
            segment: 16 << 20,
            long_header: 40,
        };
        let segment = 3 * pages.segment;
        let page = segment + 5 * pages.page;
        for (insert, end) in [
            (page, page),
            (page + 24, page),
            (page + 32, page + 32),
            // A tail of 16 bytes.
            (page + 40, page + 40),
            (segment + 40, segment),
            (segment + 48, segment + 48),
            (page + 8000, page + 8000),
        ] {
            assert_eq!(pages.end_of_last_record(Lsn(insert)), Lsn(end));
        }
    }
}
