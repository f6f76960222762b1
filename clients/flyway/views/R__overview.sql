CREATE OR REPLACE VIEW overview AS
SELECT a.state, l.name, count(*) AS accounts, sum(a.score) AS score
FROM account a JOIN land l ON l.code = a.country GROUP BY a.state, l.name;
