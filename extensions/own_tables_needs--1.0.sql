CREATE TABLE own_tables.needs (id int PRIMARY KEY);
