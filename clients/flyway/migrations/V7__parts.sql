CREATE TABLE event (
    id bigint NOT NULL,
    at date NOT NULL,
    account bigint REFERENCES account,
    PRIMARY KEY (id, at)
) PARTITION BY RANGE (at);
CREATE TABLE event_2025 PARTITION OF event FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE event_rest PARTITION OF event DEFAULT;
CREATE INDEX ON event (account) WHERE account IS NOT NULL;
INSERT INTO event SELECT i, date '2025-06-01' + i, 1 + i % 300 FROM generate_series(1, 400) i;
ALTER TABLE event DETACH PARTITION event_rest;
ALTER TABLE event ATTACH PARTITION event_rest DEFAULT;
