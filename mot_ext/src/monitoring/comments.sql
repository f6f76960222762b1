COMMENT ON VIEW mot.stat_memory IS 'memory of the server''s memory-optimized tables';
COMMENT ON COLUMN mot.stat_memory.arena_bytes_used IS
  'bytes of the arena in use, free blocks among them';
COMMENT ON COLUMN mot.stat_memory.arena_bytes_limit IS 'bytes of the arena: mot.max_memory';
COMMENT ON COLUMN mot.stat_memory.row_bytes IS 'bytes of row versions, dead ones too';
COMMENT ON COLUMN mot.stat_memory.anchor_bytes IS
  'bytes of the directories that find rows by their ids';
COMMENT ON COLUMN mot.stat_memory.index_bytes IS 'bytes of indexes';
COMMENT ON COLUMN mot.stat_memory.catalog_bytes IS 'bytes of definitions and counters';
COMMENT ON COLUMN mot.stat_memory.other_bytes IS 'bytes of everything else';
COMMENT ON COLUMN mot.stat_memory.block_bytes_free IS
  'bytes in use by no row and no index that wait for blocks of their size';
COMMENT ON COLUMN mot.stat_memory.processes IS 'processes and threads that use the memory';
COMMENT ON COLUMN mot.stat_memory.garbage_bytes_orphaned IS
  'bytes that ended or idle processes left to be freed by others';

COMMENT ON VIEW mot.stat_tables IS 'memory-optimized tables of this database';
COMMENT ON COLUMN mot.stat_tables.relid IS 'oid of the table';
COMMENT ON COLUMN mot.stat_tables.schemaname IS 'schema of the table';
COMMENT ON COLUMN mot.stat_tables.relname IS 'name of the table';
COMMENT ON COLUMN mot.stat_tables.table_id IS
  'number of the table''s storage in WAL and checkpoints';
COMMENT ON COLUMN mot.stat_tables.rows IS 'live rows';
COMMENT ON COLUMN mot.stat_tables.row_bytes IS
  'bytes of the live rows, with their headers and computed keys';
COMMENT ON COLUMN mot.stat_tables.anchor_bytes IS
  'bytes of the directory that finds rows by their ids';
COMMENT ON COLUMN mot.stat_tables.row_ids IS 'row ids that were given out, free ones among them';
COMMENT ON COLUMN mot.stat_tables.versions_stale IS
  'dead row versions that somebody may still see, or that are not removed yet';
COMMENT ON COLUMN mot.stat_tables.rows_inserted IS
  'committed or prepared insertions since the start of the server, or since a rewrite or TRUNCATE';
COMMENT ON COLUMN mot.stat_tables.rows_updated IS 'committed or prepared updates since then';
COMMENT ON COLUMN mot.stat_tables.rows_deleted IS 'committed or prepared deletions since then';
COMMENT ON COLUMN mot.stat_tables.scans IS
  'scans by compiled statements or parallel workers since then; pg_stat_user_tables counts all';
COMMENT ON COLUMN mot.stat_tables.rows_scanned IS
  'rows that scans in the order of rows have found since then, samples among them';

COMMENT ON VIEW mot.stat_indexes IS 'indexes of memory-optimized tables of this database';
COMMENT ON COLUMN mot.stat_indexes.relid IS 'oid of the table';
COMMENT ON COLUMN mot.stat_indexes.indexrelid IS 'oid of the index';
COMMENT ON COLUMN mot.stat_indexes.schemaname IS 'schema of both';
COMMENT ON COLUMN mot.stat_indexes.relname IS 'name of the table';
COMMENT ON COLUMN mot.stat_indexes.indexrelname IS 'name of the index';
COMMENT ON COLUMN mot.stat_indexes.is_unique IS 'whether a key may occur once only';
COMMENT ON COLUMN mot.stat_indexes.entries IS 'entries, an estimate while others write';
COMMENT ON COLUMN mot.stat_indexes.scans IS
  'ranges and keys looked for since the start of the server, or since a rewrite or TRUNCATE';

COMMENT ON VIEW mot.stat_transactions IS
  'what transactions have done to memory-optimized tables since the start of the server';
COMMENT ON COLUMN mot.stat_transactions.commits IS
  'committed transactions that changed or locked rows, or changed definitions; not the prepared '
  'ones';
COMMENT ON COLUMN mot.stat_transactions.aborts IS
  'transactions that were rolled back after such work';
COMMENT ON COLUMN mot.stat_transactions.row_waits IS 'waits for another transaction at a row';
COMMENT ON COLUMN mot.stat_transactions.key_waits IS
  'waits for another transaction at a unique key';
COMMENT ON COLUMN mot.stat_transactions.rows_changed_meanwhile IS
  'rows to be changed or locked that others had changed after the statement''s snapshot';
COMMENT ON COLUMN mot.stat_transactions.unique_violations IS
  'keys of rows that were refused with 23505';
COMMENT ON COLUMN mot.stat_transactions.log_records IS 'WAL records';
COMMENT ON COLUMN mot.stat_transactions.log_bytes IS 'bytes of those records';
COMMENT ON COLUMN mot.stat_transactions.horizon_xid IS
  'every transaction before this one is seen by all, as 64-bit transaction id';

COMMENT ON VIEW mot.stat_checkpoint IS 'checkpoints of memory-optimized tables';
COMMENT ON COLUMN mot.stat_checkpoint.generation IS
  'number of the newest checkpoint since the start of the server; 0 before the first one';
COMMENT ON COLUMN mot.stat_checkpoint.covered_lsn IS
  'WAL before this position is not needed any more; null until the tables are loaded';
COMMENT ON COLUMN mot.stat_checkpoint.checkpoints_written IS
  'checkpoints since the start of the server';
COMMENT ON COLUMN mot.stat_checkpoint.checkpoints_failed IS
  'attempts since then that failed, each with a line in the server''s log';
COMMENT ON COLUMN mot.stat_checkpoint.rows IS
  'rows that the newest one has; 0 before the first one';
COMMENT ON COLUMN mot.stat_checkpoint.files IS
  'files that the newest one has written; 0 before the first one';
COMMENT ON COLUMN mot.stat_checkpoint.bytes IS 'bytes of those files; 0 before the first one';
COMMENT ON COLUMN mot.stat_checkpoint.files_reused IS
  'files of older checkpoints that are part of it; 0 before the first one';
COMMENT ON COLUMN mot.stat_checkpoint.bytes_reused IS
  'bytes of those files; 0 before the first one';
COMMENT ON COLUMN mot.stat_checkpoint.write_ms IS
  'milliseconds that it took; 0 before the first one';
COMMENT ON COLUMN mot.stat_checkpoint.finished_at IS
  'when it was complete; null before the first one since the start of the server';
COMMENT ON COLUMN mot.stat_checkpoint.worker_pid IS
  'process id of the worker that writes checkpoints; null until it has started';

COMMENT ON VIEW mot.stat_progress_checkpoint IS
  'the checkpoint of memory-optimized tables that is being written';
COMMENT ON COLUMN mot.stat_progress_checkpoint.pid IS 'process id of the worker';
COMMENT ON COLUMN mot.stat_progress_checkpoint.phase IS
  'waiting for writers, writing rows, flushing WAL, writing manifest, removing old files';
COMMENT ON COLUMN mot.stat_progress_checkpoint.generation IS 'number of the checkpoint';
COMMENT ON COLUMN mot.stat_progress_checkpoint.redo_lsn IS
  'position in the WAL at which replay over it begins';
COMMENT ON COLUMN mot.stat_progress_checkpoint.started_at IS 'when it began';
COMMENT ON COLUMN mot.stat_progress_checkpoint.tables_total IS 'tables to be written';
COMMENT ON COLUMN mot.stat_progress_checkpoint.tables_done IS 'tables that are complete';
COMMENT ON COLUMN mot.stat_progress_checkpoint.ranges_total IS 'ranges of rows to be written';
COMMENT ON COLUMN mot.stat_progress_checkpoint.ranges_done IS 'ranges of those that are written';
COMMENT ON COLUMN mot.stat_progress_checkpoint.ranges_reused IS
  'other ranges, which older files have';
COMMENT ON COLUMN mot.stat_progress_checkpoint.bytes_written IS 'bytes written';
COMMENT ON COLUMN mot.stat_progress_checkpoint.bytes_reused IS
  'bytes of older files that are part of it';

COMMENT ON VIEW mot.stat_recovery IS
  'loading and replay of memory-optimized tables at the start, and on a standby';
COMMENT ON COLUMN mot.stat_recovery.state IS
  'empty, loading, replaying, ready or failed; tables can be used once it is ready, on a standby '
  'also while it is replaying';
COMMENT ON COLUMN mot.stat_recovery.failure IS 'why loading failed';
COMMENT ON COLUMN mot.stat_recovery.rows_total IS 'rows of the checkpoint';
COMMENT ON COLUMN mot.stat_recovery.rows_loaded IS 'rows that are loaded';
COMMENT ON COLUMN mot.stat_recovery.bytes_total IS 'bytes of the checkpoint''s files';
COMMENT ON COLUMN mot.stat_recovery.bytes_loaded IS 'bytes that are read';
COMMENT ON COLUMN mot.stat_recovery.indexes_total IS 'indexes to be built';
COMMENT ON COLUMN mot.stat_recovery.indexes_built IS 'indexes that are built';
COMMENT ON COLUMN mot.stat_recovery.index_entries_total IS 'entries of the indexes to be built';
COMMENT ON COLUMN mot.stat_recovery.index_entries_built IS 'entries that are built';
COMMENT ON COLUMN mot.stat_recovery.load_ms IS 'milliseconds that loading took';
COMMENT ON COLUMN mot.stat_recovery.gap_records IS
  'WAL records read from before the position at which PostgreSQL''s own replay began';
COMMENT ON COLUMN mot.stat_recovery.records_replayed IS 'WAL records that were replayed';
COMMENT ON COLUMN mot.stat_recovery.changes_replayed IS
  'changes of rows in those records, and in the ones before';
COMMENT ON COLUMN mot.stat_recovery.bytes_replayed IS 'bytes of all those records';
COMMENT ON COLUMN mot.stat_recovery.replay_ms IS 'milliseconds in which replay was at work';
COMMENT ON COLUMN mot.stat_recovery.replay_workers IS 'threads that replay: mot.replay_workers';
COMMENT ON COLUMN mot.stat_recovery.replayed_lsn IS
  'end of the last WAL record that was replayed, or handed over to the threads';
COMMENT ON COLUMN mot.stat_recovery.stalled_ms IS 'milliseconds that replay has waited for memory';
COMMENT ON COLUMN mot.stat_recovery.waits_for_memory IS 'whether replay waits for memory now';
COMMENT ON COLUMN mot.stat_recovery.is_warm IS
  'whether the memory of the server before was taken over (mot.warm_restart)';

COMMENT ON VIEW mot.stat_horizon IS 'who holds back row versions of memory-optimized tables';
COMMENT ON COLUMN mot.stat_horizon.kind IS
  'session, prepared transaction, replication slot or standby';
COMMENT ON COLUMN mot.stat_horizon.name IS
  'application of a session or standby, identifier of a prepared transaction, name of a slot';
COMMENT ON COLUMN mot.stat_horizon.pid IS 'process id, if there is a process';
COMMENT ON COLUMN mot.stat_horizon.datname IS 'its database';
COMMENT ON COLUMN mot.stat_horizon.usename IS 'its user';
COMMENT ON COLUMN mot.stat_horizon.state IS 'as in pg_stat_activity; of a slot: active or inactive';
COMMENT ON COLUMN mot.stat_horizon.since IS 'when its transaction began, or was prepared';
COMMENT ON COLUMN mot.stat_horizon.xmin IS 'the oldest transaction that it holds back';
COMMENT ON COLUMN mot.stat_horizon.age IS 'transactions since then';
COMMENT ON COLUMN mot.stat_horizon.keeps IS
  'what it sees: the row versions of its snapshot alone; all since: all row versions since xmin';

COMMENT ON FUNCTION mot.memory_usage() IS 'what mot.stat_memory shows';
COMMENT ON FUNCTION mot.table_usage() IS 'what mot.stat_tables shows';
COMMENT ON FUNCTION mot.index_usage() IS 'what mot.stat_indexes shows';
COMMENT ON FUNCTION mot.transaction_usage() IS 'what mot.stat_transactions shows';
COMMENT ON FUNCTION mot.checkpoint_usage() IS 'what mot.stat_checkpoint shows';
COMMENT ON FUNCTION mot.checkpoint_progress() IS 'what mot.stat_progress_checkpoint shows';
COMMENT ON FUNCTION mot.recovery_usage() IS 'what mot.stat_recovery shows';
COMMENT ON FUNCTION mot.published_snapshots() IS
  'processes whose snapshot is known exactly, for mot.stat_horizon';
COMMENT ON FUNCTION mot.storages() IS 'storages of memory-optimized tables, of all databases';
COMMENT ON FUNCTION mot.check(regclass) IS
  'checks a table and its indexes against each other and the catalog; raises XX001 with what '
  'disagrees';
COMMENT ON FUNCTION mot.index_size(regclass) IS 'bytes of an index, counted';
COMMENT ON FUNCTION mot.table_size(regclass) IS 'bytes of a table without its indexes, counted';
COMMENT ON FUNCTION mot.total_size(regclass) IS 'bytes of a table and its indexes, counted';
