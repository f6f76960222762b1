CREATE TABLE purchase (
    id serial PRIMARY KEY,
    account bigint NOT NULL REFERENCES account ON DELETE RESTRICT,
    number int NOT NULL,
    tags text[] NOT NULL DEFAULT '{}',
    during tstzrange,
    details jsonb,
    UNIQUE (account, number) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE line (
    purchase int NOT NULL,
    position smallint NOT NULL,
    article text NOT NULL,
    price numeric(10,2) NOT NULL,
    PRIMARY KEY (purchase, position),
    CONSTRAINT line_of FOREIGN KEY (purchase) REFERENCES purchase ON DELETE CASCADE DEFERRABLE INITIALLY IMMEDIATE
);
CREATE INDEX line_article ON line (article text_pattern_ops) INCLUDE (price);
CREATE UNIQUE INDEX purchase_one_note ON purchase (account, (details ->> 'note')) WHERE details ? 'note';
