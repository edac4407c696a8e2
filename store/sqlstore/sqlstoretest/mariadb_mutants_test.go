package sqlstoretest

// mariadbMutants has mistakes in the procedures of MySQL and MariaDB that the
// comparison with the rule finds.
var mariadbMutants = []mutant{
	{"a lease outlasts its end", "IF l_owner IS NOT NULL AND l_ends > at THEN LEAVE settled; END IF;", "IF l_owner IS NOT NULL AND l_ends >= at THEN LEAVE settled; END IF;"},
	{"an ask shortens a lease", "SET l_ends = GREATEST(l_ends, at + p_ttl);", "SET l_ends = at + p_ttl;"},
	{"a renewal shortens a lease", "UPDATE locks SET ends = GREATEST(ends, at + SUBSTRING_INDEX(p_ttls, ' ', 1))", "UPDATE locks SET ends = at + SUBSTRING_INDEX(p_ttls, ' ', 1)"},
	{"a renewal revives a lease", "IF l_owner = o_owner AND l_ends > at AND NOT is_buried THEN", "IF l_owner = o_owner AND NOT is_buried THEN"},
	{"any owner renews", "IF l_owner = o_owner AND l_ends > at AND NOT is_buried THEN", "IF l_ends > at AND NOT is_buried THEN"},
	{"any owner releases", "SET done = COALESCE(l_owner = p_owner AND l_ends > at, FALSE)", "SET done = COALESCE(l_owner IS NOT NULL AND l_ends > at, FALSE)"},
	{"tokens stand still", "SET l_granted = GREATEST(l_token + 1, at);", "SET l_granted = GREATEST(l_token, 1);"},
	{"no floor of tokens", "SET l_granted = GREATEST(l_token + 1, at);", "SET l_granted = l_token + 1;"},
	{"tombstones are ignored", "IF l_buried > at THEN CALL look_for_tomb(p_name, p_owner, p_attempt, at, is_buried); END IF;\n    IF l_owner = ''", "IF l_owner = ''"},
	{"tombstones stay", "CONCAT(p_owner, ' ', p_attempt)) AND t.ends > at);", "CONCAT(p_owner, ' ', p_attempt)));"},
	{"a tombstone refuses all owners", "AND t.owner = IF(p_attempt = '', p_owner, CONCAT(p_owner, ' ', p_attempt)) AND t.ends > at);", "AND t.ends > at);"},
	{"a tombstone ends earlier", "ON DUPLICATE KEY UPDATE ends = GREATEST(ends, p_ends);", "ON DUPLICATE KEY UPDATE ends = p_ends - 1;"},
	{"the last waiter is first", "FROM places WHERE name = p_name ORDER BY seq LIMIT 1;\n    IF q_seq", "FROM places WHERE name = p_name ORDER BY seq DESC LIMIT 1;\n    IF q_seq"},
	{"dead waiters are handed the lock", "IF q_ends <= at THEN ITERATE waiters; END IF;", ""},
	{"a hand-off lasts longer than the place", "l_meta = q_meta, l_ends = q_ends,", "l_meta = q_meta, l_ends = q_ends + 1,"},
	{"a waiter that barges is handed the lock", "IF q_barge THEN LEAVE settled; END IF;", ""},
	{"a refreshed place goes to the end", "IF NOT EXISTS (SELECT 1 FROM places WHERE name = p_name AND owner = p_owner AND ends > at) THEN\n          DELETE", "IF TRUE THEN\n          DELETE"},
	{"a place is shortened", "UPDATE places SET ends = GREATEST(ends, at + p_ttl), attempt", "UPDATE places SET ends = at + p_ttl, attempt"},
	{"a release keeps the place", "IF l_line THEN DELETE FROM places WHERE name = p_name AND owner = p_owner; END IF;\n    IF p_tomb", "IF p_tomb"},
	{"a release hands nothing on", "    IF strong THEN\n      CALL settled(", "    IF strong AND done THEN SET l_owner = NULL; ELSEIF strong THEN\n      CALL settled("},
	{"a release writes nothing", "      UPDATE locks SET buried = l_buried WHERE name = p_name;\n    END IF;\n    IF strong THEN", "      UPDATE locks SET buried = l_buried WHERE name = p_name;\n    END IF;\n    IF FALSE THEN"},
	{"an ask does not settle", "IF strong AND (NOT p_barge OR NOT p_wait) THEN", "IF FALSE THEN"},
	{"a waiter overtakes those before it", "ELSEIF l_owner IS NULL AND (p_barge OR NOT p_wait OR NOT l_line OR", "ELSEIF l_owner IS NULL AND (TRUE OR"},
	{"the position is one off", "AND seq <= mine AND ends > at;", "AND seq < mine AND ends > at;"},
	{"ended places count", "AND seq <= mine AND ends > at;", "AND seq <= mine;"},
	{"a look does not refresh the place", "UPDATE places SET ends = GREATEST(ends, at + p_ttl), `signal`", "UPDATE places SET ends = ends, `signal`"},
	{"the first place is forgotten", "ELSEIF l_line AND NOT had_line THEN", "ELSEIF FALSE THEN"},
}
