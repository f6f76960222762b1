--liquibase formatted sql

--changeset clients:index-forms
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
ALTER TABLE client ADD COLUMN mood mood NOT NULL DEFAULT 'ok';
CREATE UNIQUE INDEX client_lower ON client (lower(email));
CREATE INDEX client_happy ON client (name) WHERE mood = 'happy';
CREATE INDEX client_mood ON client (mood, born DESC NULLS LAST) INCLUDE (name);
--rollback DROP INDEX client_mood; DROP INDEX client_happy; DROP INDEX client_lower;
--rollback ALTER TABLE client DROP COLUMN mood; DROP TYPE mood;

--changeset clients:concurrently runInTransaction:false
CREATE INDEX CONCURRENTLY client_born ON client (born);
--rollback DROP INDEX client_born;
