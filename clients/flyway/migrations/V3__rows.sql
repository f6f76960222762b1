INSERT INTO country VALUES ('AT', 'Austria'), ('FR', 'France'), ('SE', 'Sweden');
INSERT INTO account (email, country, state) SELECT 'User' || i || '@example.org', (ARRAY['AT', 'FR', 'SE'])[1 + i % 3],
    (ARRAY['open', 'frozen', 'closed'])[1 + i % 3]::account_state FROM generate_series(1, 300) i;
INSERT INTO purchase (account, number, details) SELECT 1 + i % 300, i, jsonb_build_object('note', i) FROM generate_series(1, 900) i;
INSERT INTO line SELECT p.id, n, 'article ' || n, n * 1.5 FROM purchase p, generate_series(1, 3) n;
UPDATE account SET parent = id - 1 WHERE id % 2 = 0;
