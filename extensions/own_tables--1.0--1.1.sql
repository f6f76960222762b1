CREATE TABLE updated (id int PRIMARY KEY);
SELECT make('by_update');
