CREATE TABLE leftover (id int PRIMARY KEY);
ALTER TABLE account DROP COLUMN nickname;
INSERT INTO land VALUES ('AT', 'again');
