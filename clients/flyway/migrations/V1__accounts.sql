CREATE TYPE account_state AS ENUM ('open', 'frozen', 'closed');
CREATE TABLE country (
    code char(2) PRIMARY KEY,
    name text NOT NULL UNIQUE
);
CREATE TABLE account (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email varchar(200) NOT NULL,
    country char(2) NOT NULL REFERENCES country,
    state account_state NOT NULL DEFAULT 'open',
    balance numeric(12,2) NOT NULL DEFAULT 0 CHECK (balance >= 0),
    parent bigint REFERENCES account ON DELETE CASCADE,
    opened timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX account_email ON account (lower(email));
CREATE INDEX account_frozen ON account (opened DESC) WHERE state = 'frozen';
CREATE INDEX account_state_idx ON account (state, country);
COMMENT ON TABLE account IS 'Who pays';
