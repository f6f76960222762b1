ALTER TYPE account_state ADD VALUE 'suspended' BEFORE 'closed';
ALTER TYPE account_state RENAME VALUE 'frozen' TO 'blocked';
