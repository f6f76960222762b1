CREATE INDEX CONCURRENTLY account_score ON account (score);
DROP INDEX CONCURRENTLY account_state_idx;
