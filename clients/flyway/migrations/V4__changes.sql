ALTER TABLE account ADD COLUMN nickname text NOT NULL DEFAULT 'none', ADD COLUMN score int;
ALTER TABLE account ALTER COLUMN email TYPE text;
ALTER TABLE purchase ALTER COLUMN number TYPE bigint USING number * 10;
ALTER TABLE line RENAME COLUMN article TO item;
ALTER TABLE line ADD CONSTRAINT line_price CHECK (price > 0) NOT VALID;
ALTER TABLE line VALIDATE CONSTRAINT line_price;
ALTER TABLE country RENAME TO land;
ALTER TABLE account ADD CONSTRAINT account_nick UNIQUE (nickname, id);
ALTER TABLE account ALTER COLUMN score SET DEFAULT 5, DROP COLUMN opened;
UPDATE account SET score = id % 10;
ALTER TABLE account ALTER COLUMN score SET NOT NULL;
CREATE TABLE account_log (id bigint, old numeric, new numeric);
CREATE FUNCTION log_balance() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO account_log VALUES (NEW.id, OLD.balance, NEW.balance);
    RETURN NEW;
END $$;
CREATE TRIGGER account_balance AFTER UPDATE OF balance ON account FOR EACH ROW
    WHEN (OLD.balance IS DISTINCT FROM NEW.balance) EXECUTE FUNCTION log_balance();
UPDATE account SET balance = id WHERE id <= 10;
